// What a scavenger does about signals that come while it is aboard. Part of guest.c, which has
// work() and a handler that adds up.
#pragma once

// A handler that is asked for once only: the next fault ends it.
static void once(void) {
  LEAVE();
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_usr1, action.sa_flags = (int)SA_RESETHAND;
  sigaction(SIGSEGV, &action, 0);
  raise(SIGSEGV);
  printf("once %ld\n", handled);
  fflush(stdout);
  for (size_t at = 0;; at++) {
    at = work(at, 100000);
    *(volatile int *)(at >> 40) = 1;
  }
}
// Goes on until it was called ten times, and does not come home for anything else.
static void called_often(void) {
  LEAVE();
  static const int signals[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGIO};
  for (int i = 0; i < 4; i++)
    signal(signals[i], on_usr1);
  struct itimerval every = {{0, 3000}, {0, 3000}};
  setitimer(ITIMER_REAL, &every, 0);
  size_t at = 0;
  while (handled < 10 * SIGALRM)
    at = work(at, 1000);
  LEAVE();
  memset(&every, 0, sizeof every);
  setitimer(ITIMER_REAL, &every, 0);
  // Each once, as fast as another process sends them: none is lost.
  for (int round = 0; round < 20; round++) {
    LEAVE();
    handled = 0;
    pid_t child = fork();
    if (!child) {
      for (int i = 0; i < 4; i++)
        kill(getppid(), signals[i]);
      _exit(0);
    }
    while (handled < SIGUSR1 + SIGUSR2 + SIGALRM + SIGIO)
      at = work(at, 1000);
    LEAVE();
    while (waitpid(child, 0, 0) < 0 && errno == EINTR)
      ;
  }
  printf("called\n");
}
