// A chase that reads the clock every 200,000 loads, and says its pace at the end:
// clocked MEGABYTES SECONDS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct line {
  struct line *next;
  char rest[56];
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  size_t lines = (size_t)atol(argv[1]) << 14;
  struct line *all = aligned_alloc(sizeof *all, lines * sizeof *all);
  uint32_t *order = malloc(lines * sizeof *order);
  uint64_t random = 1;
  for (size_t i = 0; i < lines; i++) {
    random = random * 6364136223846793005 + 1442695040888963407;
    size_t other = (random >> 33) % (i + 1);
    order[i] = order[other];
    order[other] = (uint32_t)i;
  }
  for (size_t i = 0; i < lines; i++)
    all[order[i]].next = &all[order[(i + 1) % lines]];
  free(order);
  struct line *at = all;
  double begin = now(), end = begin + atof(argv[2]), time;
  uint64_t loads = 0;
  do {
    for (int i = 0; i < 200000; i++)
      at = at->next;
    loads += 200000;
  } while ((time = now()) < end);
  printf("%.6g %p\n", (double)loads / (time - begin), (void *)at);
}
