// A pointer chase: `chase MIB STEPS [EVERY]` prints where it ended, and how far it is every EVERY
// steps. With STEPS 0 it runs until it is killed. GLEANER_TIME set: the time for a step, on
// standard error.
#include "yields.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  size_t n = (size_t)atoi(argv[1]) << 14;
  unsigned long steps = strtoul(argv[2], 0, 10), every = argc > 3 ? strtoul(argv[3], 0, 10) : 1000000;
  char *memory = mmap(0, n * 64 + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory = (char *)(((uintptr_t)memory + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
  madvise(memory, n * 64, MADV_HUGEPAGE);
  uint32_t *order = malloc(n * 4);
  uint64_t r = 88172645463325252ull;
  for (size_t i = 0; i < n; i++)
    order[i] = (uint32_t)i;
  for (size_t i = n - 1; i > 0; i--) {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    size_t j = r % i;
    uint32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (size_t i = 0; i < n; i++)
    *(void **)(memory + 64 * i) = memory + 64 * (size_t)order[i];
  free(order);
  char *at = memory;
  double start = now();
  unsigned long done = 0;
  while (!steps || done < steps) {
    unsigned long part = steps && steps - done < every ? steps - done : every;
    at = chase(at, part);
    done += part;
    LEAVE();
    if (getenv("GLEANER_TIME")) {
      fprintf(stderr, "%d %lu %.6f\n", getpid(), done, now() - start);
      fflush(stderr);
    }
  }
  printf("%lu steps end at %zu\n", done, (size_t)(at - memory) / 64);
  return 0;
}
