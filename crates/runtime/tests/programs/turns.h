// The host's mode `turns`: a part of host.c, which has the headers and `work`.
#pragma once

static size_t work(size_t from, unsigned long n);

// Busy-waits, for another thread's store and for a time in turns, and works in between; handlers
// that work, too, come wherever it is.
static volatile long said, heard;
static void *says(void *x) {
  for (long i = 1; i <= (long)x; i++) {
    while (heard != i - 1)
      usleep(20);
    usleep(i % 5 * 40);
    said = i;
  }
  return 0;
}
static volatile long alarms;
static void on_alarm(int s) {
  (void)s;
  alarms += work(0, 20) < LINES;
}
static long nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void turns(void) {
  enum { TURNS = 1500 };
  signal(SIGALRM, on_alarm);
  struct itimerval t = {{0, 1100}, {0, 1100}}, none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &t, 0);
  pthread_t other;
  said = heard = 0;
  if (pthread_create(&other, 0, says, (void *)TURNS))
    exit(96);
  size_t at = 0;
  for (long i = 1; i <= TURNS; i++) {
    while (said < i)
      ;
    at = work(at, 300);
    for (long due = nanoseconds() + i % 7 * 5000; nanoseconds() < due;)
      ;
    at = work(at, 100);
    heard = i;
  }
  pthread_join(other, 0);
  setitimer(ITIMER_REAL, &none, 0);
  signal(SIGALRM, SIG_IGN);
  printf("turned, end %zu%s\n", at, alarms > 0 ? "" : ", never alarmed");
}
// Busy-waits until a scavenger is done, and comes to no yield.
static void waits(void) {
  while (access("done", F_OK))
    for (long due = nanoseconds() + 1000000; nanoseconds() < due;)
      ;
  printf("done\n");
}
