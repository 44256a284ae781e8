#pragma once

// What is mapped in this address space that is a scavenger's, by the kernel's own word: mappings of
// /dev/zero, and instances of the runtime but the first. Looked at until there were some and, for a
// while, no more of them. On a busy machine it takes minutes until the last of them has ended.

#include <stdio.h>
#include <string.h>
#include <time.h>

static int others_mappings(int tell) {
  char line[4400];
  int marked = 0, instances = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    int mark = strstr(line, "/dev/zero") != 0, instance = strstr(line, " r-xp ") && strstr(line, "gleaner-runtime");
    marked += mark;
    instances += instance;
    if (tell && (mark || instance))
      fputs(line, stderr);
  }
  fclose(maps);
  return marked + (instances > 1 ? instances - 1 : 0);
}

static void left(void) {
  size_t at = 0;
  int seen = 0;
  time_t begin = time(0), last = begin;
  while (time(0) - begin < 240 && time(0) - last < 3) {
    at = work(at, 100000);
    if (others_mappings(0)) {
      seen = 1;
      last = time(0);
    }
  }
  int now = others_mappings(1);
  printf("%s, %s\n", seen ? "some were there" : "none were there", now ? "and are left" : "none is left");
}
