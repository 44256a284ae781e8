// Lets scavengers go on and stops them in turns, and looks at a program that answers requests meanwhile: how long its answers
// take beside them and without them, in one process, so that neither luck with memory nor the hour tells them apart.
// usage: turns SECONDS TURNS STORE-FILE COUNT PROGRESS-FILE... PID...   (COUNT scavengers, each with its file and its process)
// prints a line for each turn: 1 or 0 (with scavengers or without), seconds, requests, p50, p95, p99 (us), the scavengers' steps,
// and the time they had on processors of their own, in seconds
#include "../programs/common.h"
#include "../programs/latency.h"
#include <signal.h>
#include <string.h>

static uint32_t before[LENGTHS], after[LENGTHS];

static void rest(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, 0);
}

static double percentile(uint64_t all, double share) {
    uint64_t above = 0;
    for (unsigned part = LENGTHS; part-- > 0;)
        if ((above += after[part] - before[part]) > all * (1 - share))
            return end_of(part) / 1e3;
    return 0;
}

// What the kernel gave to a process's first thread.
static double ran(pid_t process) {
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", process);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%llu", &ns) != 1)
        ns = 0;
    if (file)
        fclose(file);
    return ns / 1e9;
}

static void *view(const char *path, size_t at, size_t size) {
    int file = open(path, O_RDONLY);
    void *map = file < 0 ? MAP_FAILED : mmap(0, size, PROT_READ, MAP_SHARED, file, at);
    if (map == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(file);
    return map;
}

int main(int argc, char **argv) {
    enum { MOST = 64 };
    const struct progress *scavenger[MOST];
    pid_t process[MOST];
    int count = argc > 4 ? atoi(argv[4]) : -1;
    if (count < 0 || count > MOST || argc != 5 + 2 * count) {
        fprintf(stderr, "usage: %s SECONDS TURNS STORE-FILE COUNT PROGRESS-FILE... PID...\n", argv[0]);
        return 2;
    }
    double seconds = atof(argv[1]);
    const struct answers *answers = view(argv[3], 4096, sizeof *answers);
    for (int i = 0; i < count; i++) {
        scavenger[i] = view(argv[5 + i], 0, sizeof *scavenger[i]);
        process[i] = atoi(argv[5 + count + i]);
    }
    for (int turn = 0; turn < atoi(argv[2]); turn++) {
        // Of two turns the first is now the one, now the other.
        int with = (turn ^ turn >> 1) & 1;
        for (int i = 0; i < count; i++)
            kill(process[i], with ? SIGCONT : SIGSTOP);
        rest(seconds / 4); // they come or go, and caches are whose they are
        uint64_t from = now_ns(), steps = 0, all = 0;
        double own = 0;
        for (int i = 0; i < count; i++)
            steps -= scavenger[i]->steps, own -= ran(process[i]);
        memcpy(before, (const void *)answers->counts, sizeof before);
        rest(seconds);
        memcpy(after, (const void *)answers->counts, sizeof after);
        uint64_t to = now_ns();
        for (int i = 0; i < count; i++)
            steps += scavenger[i]->steps, own += ran(process[i]);
        for (unsigned part = 0; part < LENGTHS; part++)
            all += after[part] - before[part];
        printf("%d %.4f %lu %.3f %.3f %.3f %lu %.4f\n", with, (to - from) / 1e9, all, percentile(all, 0.5), percentile(all, 0.95),
               percentile(all, 0.99), steps, own);
        fflush(stdout);
    }
    for (int i = 0; i < count; i++)
        kill(process[i], SIGCONT);
    return 0;
}
