// A speech decoder, as Sphinx is one: Viterbi search through a network of hidden Markov states.
// Each frame, the best states move on along their arcs; what the frame sounds like in a state is a
// mixture of Gaussians, of which one half of the memory is full; the other half is the network.
// States that fall behind the best one are dropped. A request is some frames of speech; it comes as
// requests.h says.
// usage: sphinx MIB WORK [PROGRESS-FILE [REQUESTS-A-SECOND [FRAMES]]]
#include "common.h"
#include "requests.h"

enum { FRAMES = 4, DIMENSIONS = 40, MIXTURE = 4, ARCS = 4, FEWEST = 200, MOST = 600 };

struct sound { // means and weights of the squares
    float mean[MIXTURE][DIMENSIONS], weight[MIXTURE][DIMENSIONS], constant[MIXTURE];
};

struct state {
    uint32_t sound, arc[ARCS];
    float cost[ARCS];
};

struct token {
    float score;
    uint32_t frame; // of which the score is
};

static float uniform(void) { return (float)(random_number() >> 40) / (1 << 24); }

// The best of the mixture, as decoders approximate the sum.
__attribute__((noinline)) static float likeness(const struct sound *s, const float *heard) {
    float best = -1e30f;
    for (int m = 0; m < MIXTURE; m++) {
        float score = s->constant[m];
        for (int d = 0; d < DIMENSIONS; d++) {
            float off = heard[d] - s->mean[m][d];
            score -= off * off * s->weight[m][d];
        }
        if (score > best)
            best = score;
    }
    return best;
}

struct decoder {
    const struct sound *sounds;
    const struct state *states;
    struct token *tokens;
    uint32_t *active, *next;
    size_t count;
    float beam;
    uint32_t frame;
};

// Moves all active states on along their arcs; returns how many the next frame has.
__attribute__((noinline)) static size_t spread(struct decoder *d) {
    size_t count = 0;
    for (size_t i = 0; i < d->count; i++) {
        float score = d->tokens[d->active[i]].score;
        const struct state *from = &d->states[d->active[i]];
        for (int a = 0; a < ARCS; a++) {
            struct token *to = &d->tokens[from->arc[a]];
            float here = score - from->cost[a];
            if (to->frame == d->frame + 1) {
                if (here > to->score)
                    to->score = here;
            } else if (to->frame != d->frame) { // those of this frame stay until it is over
                *to = (struct token){here, d->frame + 1};
                d->next[count++] = from->arc[a];
            }
        }
    }
    return count;
}

// Hears one frame; returns the best score.
static float hear(struct decoder *d, const float *heard) {
    size_t count = spread(d);
    float best = -1e30f;
    for (size_t i = 0; i < count; i++) {
        struct token *t = &d->tokens[d->next[i]];
        t->score += likeness(&d->sounds[d->states[d->next[i]].sound], heard);
        if (t->score > best)
            best = t->score;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < MOST; i++) {
        struct token *t = &d->tokens[d->next[i]];
        if (t->score >= best - d->beam) {
            t->score -= best; // so that scores stay small
            d->active[kept++] = d->next[i];
        }
    }
    // As many states as a decoder has, whatever is heard.
    d->beam *= kept < FEWEST ? 1.1f : kept == MOST ? 0.9f : 1;
    d->count = kept;
    d->frame++;
    return best;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    struct requests r = requests(argc, argv, FRAMES);
    size_t half = (a.mib << 20) / 2;
    uint32_t sounds = half / sizeof(struct sound);
    uint32_t states = half / (sizeof(struct state) + sizeof(struct token));
    struct sound *all = area(sounds * sizeof *all);
    struct state *network = area(states * sizeof *network);
    for (uint32_t i = 0; i < sounds; i++)
        for (int m = 0; m < MIXTURE; m++) {
            for (int k = 0; k < DIMENSIONS; k++) {
                all[i].mean[m][k] = uniform();
                all[i].weight[m][k] = uniform() * 0.1f;
            }
            all[i].constant[m] = uniform();
        }
    for (uint32_t i = 0; i < states; i++) {
        network[i].sound = random_number() % sounds;
        for (int k = 0; k < ARCS; k++) {
            network[i].arc[k] = random_number() % states;
            network[i].cost[k] = uniform();
        }
    }
    struct decoder d = {all, network, area(states * sizeof(struct token)), 0, 0, 1, 1, 1};
    d.active = malloc(MOST * sizeof *d.active);
    d.next = malloc(MOST * ARCS * sizeof *d.next);
    d.active[0] = 0;
    d.tokens[0] = (struct token){0, 1};
    first_request(&r);
    uint64_t done = 0;
    double sum = 0;
    while (goes_on(done, a.work)) {
        next_request(&r);
        for (int i = 0; i < r.size; i++) {
            float heard[DIMENSIONS];
            for (int k = 0; k < DIMENSIONS; k++)
                heard[k] = uniform();
            sum += hear(&d, heard);
        }
        answered(&r);
        done++;
    }
    if (a.work)
        printf("sphinx %zu MiB, %lu requests, %zu states, sum %.0f\n", a.mib, done, d.count, sum);
    return 0;
}
