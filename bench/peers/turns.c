// Lets running benchmark programs work in turns, each while all others pause: what changes from one
// second to the next is the same for all.
// usage: turns ROUNDS SECONDS FILE...   waits (up to two minutes) until all of them work; prints
// the steps a second of each, a line for each round; -1 if they never all worked. The programs stay
// paused.
#include "../programs/common.h"

int main(int argc, char **argv) {
    enum { MOST = 16 };
    static struct progress *told[MOST];
    double pace[MOST];
    int count = argc - 3;
    if (count < 1 || count > MOST) {
        fprintf(stderr, "usage: %s ROUNDS SECONDS FILE...\n", argv[0]);
        return 2;
    }
    int rounds = atoi(argv[1]);
    double seconds = atof(argv[2]);
    for (int i = 0; i < count; i++) {
        progress_to(argv[3 + i]);
        told[i] = progress;
        // Until it pauses, the ones before have to.
        double waited = 0;
        for (; !told[i]->working || !told[i]->steps; waited += 0.05) {
            if (waited > 120) {
                printf("-1\n");
                return 1;
            }
            rest(0.05);
        }
        told[i]->pause = 1;
    }
    rest(1);
    for (int round = 0; round < rounds; round++) {
        for (int step = 0; step < count; step++) {
            // There and back again: the first one is no better off.
            int i = round % 2 ? count - 1 - step : step;
            told[i]->pause = 0;
            rest(0.03);
            uint64_t steps = told[i]->steps, from = now_ns();
            rest(seconds);
            pace[i] = (double)(told[i]->steps - steps) * 1e9 / (double)(now_ns() - from);
            told[i]->pause = 1;
            rest(0.005);
        }
        for (int i = 0; i < count; i++)
            printf("%s%.0f", i ? "\t" : "", pace[i]);
        printf("\n");
    }
    return 0;
}
