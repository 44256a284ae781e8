// What a primary does that sleeps. Part of host.c, which has work().
#pragma once

static void sleeps(void) {
  size_t at = 0;
  for (int i = 0; i < 60; i++) {
    at = work(at, 20000);
    usleep(5000);
  }
  printf("slept, end %zu\n", at);
}
// Threads that sleep for good once they have worked.
static void *falls_asleep(void *x) {
  work((size_t)x, 1000);
  for (;;)
    pause();
}
static void sleepers(void) {
  pthread_t t;
  for (long i = 0; i < 60; i++)
    if (pthread_create(&t, 0, falls_asleep, (void *)i))
      exit(97);
}
