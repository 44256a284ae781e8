// Company for real programs: `chaser` chases through memory until it is ended; `chaser NAME` until
// a sibling that was called NAME is gone, and ends with 4. If none shows for a long time it ends
// with 5: it may have been gone before.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 1 << 16, PATIENCE = 20 };
static void *memory[LINES][8];

__attribute__((noinline)) static void **chase(void **at, long steps) {
  while (steps--)
    at = *at;
  return at;
}

static int lives(const char *name) {
  DIR *all = opendir("/proc");
  int found = 0;
  for (struct dirent *entry; all && !found && (entry = readdir(all));) {
    char path[300], text[512], *end;
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : 0;
    if (!file)
      continue;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    if ((end = strrchr(text, ')')) && atoi(end + 4) == getppid() && end[2] != 'Z') {
      *end = 0;
      found = !strcmp(strchr(text, '(') + 1, name);
    }
  }
  if (all)
    closedir(all);
  return found;
}

int main(int argc, char **argv) {
  static uint32_t order[LINES];
  uint64_t r = 88172645463325252ull;
  for (uint32_t i = 0; i < LINES; i++)
    order[i] = i;
  for (uint32_t i = LINES - 1; i > 0; i--) {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    uint32_t j = (uint32_t)(r % i), t = order[i];
    order[i] = order[j], order[j] = t;
  }
  for (uint32_t i = 0; i < LINES; i++)
    memory[i][0] = memory[order[i]];
  void **at = memory[0];
  time_t begin = time(0);
  for (int seen = 0;;) {
    // A process of a few milliseconds is to be seen, too.
    int now = argc > 1 && lives(argv[1]);
    at = chase(at, seen || argc < 2 ? 4000000 : 100000);
    if (argc < 2)
      continue;
    if (seen && !now)
      return at ? 4 : 0;
    seen |= now;
    if (!seen && time(0) - begin > PATIENCE)
      return at ? 5 : 0;
  }
}
