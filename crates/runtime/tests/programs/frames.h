// The host's mode `frames`: a part of host.c, which has the headers and `memory`.
#pragma once

// What handlers find in their frames, and change there, is the program's, wherever they come: three
// registers hold what they hold throughout a loop that yields; the handler counts in one of them. A
// thread's own: the timer may meet others that a schedule left running.
static __thread volatile int inside;
static volatile long looks, amiss_there;
static volatile uint64_t added;
static void look(int s, siginfo_t *info, void *uc) {
  (void)s, (void)info;
  greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
  if (!inside)
    return;
  looks++;
  if (g[REG_R13] != 0x1010101 || g[REG_R14] != 0x1010102 || (uint64_t)g[REG_R15] != 0x1010103 + added)
    amiss_there++;
  if (looks % 4 == 0)
    g[REG_R15]++, added++;
}
static void frames(void) {
  struct sigaction a = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGALRM, &a, 0);
  struct itimerval t = {{0, 1500}, {0, 1500}}, none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &t, 0);
  long wrong_there = 0;
  for (unsigned long n = 0; looks < 400; n++) {
    uint64_t held[3];
    added = 0;
    hold(memory + 64 * (n % LINES), 3000, 0x1010101, &inside, held);
    if (held[0] != 0x1010101 || held[1] != 0x1010102 || held[2] != 0x1010103 + added)
      wrong_there++;
  }
  setitimer(ITIMER_REAL, &none, 0);
  printf("frames amiss %ld, wrong %ld\n", amiss_there, wrong_there);
}
