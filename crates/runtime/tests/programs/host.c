// A primary that does all that may disturb its guests, and must come out the same with and without
// them: `host MODE…`. What it prints does not depend on time. Each mode is a function below; to add
// one: a function, a line in the table.
#define _GNU_SOURCE
#include "yields.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static char *memory;
enum { LINES = 1 << 18 };
#include "frames.h"
#include "turns.h"

static size_t work(size_t from, unsigned long n) { return (size_t)((char *)chase(memory + 64 * from, n) - memory) / 64; }

static void prepare(void) {
  memory = mmap(0, LINES * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint32_t *order = malloc(LINES * sizeof *order);
  uint64_t r = 88172645463325252ull;
  for (uint32_t i = 0; i < LINES; i++)
    order[i] = i;
  for (uint32_t i = LINES - 1; i > 0; i--) {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    uint32_t j = (uint32_t)(r % i), t = order[i];
    order[i] = order[j], order[j] = t;
  }
  for (uint32_t i = 0; i < LINES; i++)
    *(void **)(memory + 64 * i) = memory + 64 * (size_t)order[i];
  free(order);
}

// Signals that interrupt yields, guests and the runtime alike; the handlers run twins too.
static volatile long ticks, wrong;
static char alternative[1 << 16];
static __thread long mark;
static long whose; // the thread with the mark, asked of the kernel: thread-local storage is what is tried
static void tick(int s, siginfo_t *info, void *uc) {
  char here;
  int on = &here >= alternative && &here < alternative + sizeof alternative;
  // The timer is the process's: while this thread is in the handler, the signal comes to others, if
  // an earlier mode left some.
  int other = syscall(SYS_gettid) != whose;
  if (s != SIGALRM || info->si_signo != s || !uc || (!other && (!on || mark != 4711 || errno != 77)))
    __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
  if (work((size_t)(ticks % 1000), 64) >= LINES)
    __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}
static void plain(int s) {
  char here;
  if (s != SIGUSR1 || (&here >= alternative && &here < alternative + sizeof alternative))
    wrong++;
}
static void signals(void) {
  stack_t ss = {alternative, 0, sizeof alternative}, was;
  mark = 4711;
  whose = syscall(SYS_gettid);
  sigaltstack(&ss, &was);
  printf("signal stack was %s\n", was.ss_flags & SS_DISABLE ? "none" : "there");
  struct sigaction a = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, old;
  sigaction(SIGALRM, &a, &old);
  printf("handler was %s\n", old.sa_handler == SIG_DFL ? "default" : "there");
  sigaction(SIGALRM, 0, &old);
  printf("handler is %s\n", old.sa_sigaction == tick && old.sa_flags == a.sa_flags ? "ours" : "another's");
  signal(SIGUSR1, plain);
  struct itimerval t = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};
  errno = 77;
  setitimer(ITIMER_REAL, &t, 0);
  size_t at = 0;
  unsigned long rounds = 0;
  while (ticks < 400 && rounds < 20000) {
    at = work(at, 5000);
    if (rounds++ % 16 == 0) {
      raise(SIGUSR1);
      errno = 77;
    }
  }
  setitimer(ITIMER_REAL, &none, 0);
  size_t end = work(0, 123456);
  printf("signals %s, wrong %ld, end %zu\n", ticks >= 400 ? "came" : "did not come", wrong, end);
}

static sigjmp_buf back;
static volatile uintptr_t address;
static void on_segv(int s, siginfo_t *info, void *uc) {
  (void)s, (void)uc;
  address = (uintptr_t)info->si_addr;
  siglongjmp(back, 1);
}
static void skip(int s, siginfo_t *info, void *uc) {
  (void)s, (void)info;
  ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += 2; // ud2
}
static void faults(void) {
  struct sigaction a = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &a, 0);
  long sum = 0;
  for (int i = 1; i < 200; i++) {
    if (!sigsetjmp(back, 1)) {
      work((size_t)i, 1000);
      *(volatile char *)(uintptr_t)i = 1;
    }
    sum += (long)address;
  }
  a.sa_sigaction = skip;
  sigaction(SIGILL, &a, 0);
  for (int i = 0; i < 200; i++) {
    work((size_t)i, 1000);
    __asm__ volatile("ud2");
  }
  sigset_t all, was;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &was);
  size_t at = work(5, 100000); // guests may fault meanwhile
  sigset_t now;
  sigprocmask(SIG_SETMASK, &was, &now);
  // What they jump back to ends here; a mode that crashes may follow.
  signal(SIGSEGV, SIG_DFL);
  signal(SIGILL, SIG_DFL);
  printf("faults %ld, blocked %d %d, end %zu\n", sum, sigismember(&now, SIGSEGV), sigismember(&now, SIGUSR2), at);
}

static void *thread(void *x) {
  mark = (long)x;
  size_t at = work((size_t)x, 3000);
  return (void *)(at + (size_t)(mark - (long)x));
}
static void threads(void) {
  unsigned long sum = 0;
  for (long round = 0; round < 250; round++) {
    pthread_t t[4];
    for (long i = 0; i < 4; i++)
      if (pthread_create(&t[i], 0, thread, (void *)(round * 4 + i)))
        exit(97);
    for (int i = 0; i < 4; i++) {
      void *r;
      pthread_join(t[i], &r);
      sum += (unsigned long)r;
    }
  }
  printf("threads %lu\n", sum);
}

static void *detached(void *x) {
  size_t at = (size_t)x;
  for (;;)
    at = work(at, 1000);
  return 0;
}
static void leave_running(void) {
  pthread_t t;
  for (long i = 0; i < 2; i++)
    pthread_create(&t, 0, detached, (void *)i);
  printf("running %zu\n", work(0, 300000));
}

static void forks(void) {
  unsigned long sum = 0;
  for (int i = 0; i < 40; i++) {
    fflush(stdout);
    work((size_t)i, 3000);
    pid_t child = fork();
    if (!child) {
      pthread_t t;
      void *r;
      pthread_create(&t, 0, thread, (void *)5);
      pthread_join(t, &r);
      _exit((int)(((unsigned long)r + work((size_t)i, 5000)) % 100));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
    sum += WIFEXITED(status) ? (unsigned long)WEXITSTATUS(status) : 100000;
  }
  fflush(stdout);
  FILE *p = popen("echo from a shell", "r");
  char line[64] = "";
  if (!fgets(line, sizeof line, p))
    line[0] = 0;
  int status = pclose(p);
  printf("children %lu, %d %s, more %d\n", sum, status, strtok(line, "\n"), waitpid(-1, 0, WNOHANG) < 0 && errno == ECHILD);
}

// Children that share the memory until they execute something; what they run before that has sites,
// too.
static void vforks(void) {
  size_t at = 0;
  int odd = 0;
  for (int i = 0; i < 40; i++) {
    at = work(at, 3000);
    pid_t child = vfork();
    if (!child) {
      if (work((size_t)i, 5000) >= LINES)
        _exit(1);
      if (i % 2)
        _exit(9);
      execl("/bin/sh", "sh", "-c", "exit 9", (char *)0);
      _exit(2);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
      odd = status;
  }
  printf("vforks, odd %d, end %zu\n", odd, at);
}

// Out of handlers by a jump, and on.
static sigjmp_buf out;
static _Thread_local int jumper;
static void jump(int s) {
  (void)s;
  // The timer is the process's: where other threads run, it may be one of them that the signal
  // comes to.
  if (jumper)
    siglongjmp(out, 1);
}
static void jumps(void) {
  struct itimerval t = {{0, 700}, {0, 700}}, none = {{0, 0}, {0, 0}};
  volatile long jumped = 0;
  volatile size_t at = 0;
  jumper = 1;
  signal(SIGVTALRM, jump);
  // Before the timer: where other threads run, it may be over before this one goes on.
  if (!sigsetjmp(out, 1))
    setitimer(ITIMER_VIRTUAL, &t, 0);
  for (volatile int i = 0; jumped < 200 && i < 100000; i++) {
    if (sigsetjmp(out, 1))
      jumped++;
    else
      work((size_t)i % LINES, 100000);
  }
  setitimer(ITIMER_VIRTUAL, &none, 0);
  printf("jumps %s, end %zu\n", jumped >= 200 ? "came" : "did not come", work(7, 200000));
}

// The thread that began the process ends; another goes on.
static void *after_main(void *x) {
  size_t at = 0;
  for (int i = 0; i < 40; i++) {
    at = work(at, 20000);
    usleep(2000);
  }
  printf("without main, end %zu\n", at + (size_t)x);
  exit(7);
}
static void main_ends(void) {
  pthread_t t;
  if (pthread_create(&t, 0, after_main, 0))
    exit(97);
  work(3, 300000);
  pthread_exit(0);
}

// A child by a function of libc that forks for itself.
static void daemons(void) {
  int fd[2];
  char line[32] = "";
  fflush(stdout);
  if (pipe(fd))
    exit(97);
  pid_t child = fork();
  if (!child) {
    if (daemon(1, 1))
      _exit(1);
    size_t at = work(2, 50000);
    dprintf(fd[1], "end %zu", at);
    _exit(0);
  }
  close(fd[1]);
  while (waitpid(child, 0, 0) < 0 && errno == EINTR)
    ;
  size_t size = 0;
  for (ssize_t n; (n = read(fd[0], line + size, sizeof line - 1 - size)) > 0 || (n < 0 && errno == EINTR);)
    size += n > 0 ? (size_t)n : 0;
  close(fd[0]);
  printf("daemon %s\n", line);
}
static void daemon_itself(void) {
  printf("daemon\n");
  fflush(stdout);
  work(2, 500000);
  if (daemon(1, 1))
    exit(97);
  _exit(work(2, 50000) == 0);
}

// Threads come and go, work, sleep, wait for each other and fork, for SOAK seconds, and until the
// file SOAK_FOR is there.
static volatile int enough;
static void *restless(void *x) {
  size_t at = (size_t)x % LINES;
  for (int i = 0; i < 20 && !enough; i++) {
    at = work(at, 3000 + (at & 0x3fff));
    usleep((useconds_t)(at % 3000));
  }
  return (void *)(size_t)(at < LINES);
}
static void *lives(void *x) {
  for (long n = (long)x; !enough; n += 7) {
    pthread_t t;
    void *fine = 0;
    if (pthread_create(&t, 0, restless, (void *)n))
      exit(97);
    pthread_join(t, &fine);
    if (!fine)
      exit(96);
    if (n % 50 == 0) {
      pid_t child = fork();
      if (!child)
        _exit(work((size_t)n % LINES, 1000) < LINES ? 0 : 1);
      int status = 1;
      while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
      if (status)
        exit(95);
    }
  }
  return 0;
}
static void soak(void) {
  pthread_t t[4];
  const char *asked = getenv("SOAK"), *awaited = getenv("SOAK_FOR");
  long naps = 100 * (asked ? atoi(asked) : 1);
  for (long i = 0; i < 4; i++)
    if (pthread_create(&t[i], 0, lives, (void *)i))
      exit(97);
  // Where the machine sleeps meanwhile, that is one nap.
  for (long n = 0; n < naps || (awaited && access(awaited, F_OK) && n < 30 * naps); n++)
    usleep(10000);
  enough = 1;
  for (int i = 0; i < 4; i++)
    pthread_join(t[i], 0);
  printf("soaked, end %zu\n", work(1, 100000));
}

// Threads that are cancelled while they work, at any instruction: what they pushed is run, and
// nobody else is hurt.
static volatile long cleaned;
static void clean(void *x) { __atomic_add_fetch(&cleaned, (long)x, __ATOMIC_RELAXED); }
static void *cancelled(void *x) {
  int before;
  pthread_cleanup_push(clean, x);
  if (pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before) || before != PTHREAD_CANCEL_DEFERRED)
    exit(94);
  for (size_t at = (size_t)x;;)
    at = work(at, 1000);
  pthread_cleanup_pop(1);
  return 0;
}
static void *changes(void *x) {
  size_t at = work((size_t)x, 3000);
  for (int i = 0; i < 30; i++) {
    pthread_setcanceltype(i % 2 ? PTHREAD_CANCEL_DEFERRED : PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    at = work(at, 20000);
  }
  return (void *)at;
}
static void cancels(void) {
  long right = 0;
  void *at = 0;
  pthread_t t[3], u;
  if (pthread_create(&u, 0, changes, (void *)3))
    exit(97);
  for (int round = 0; round < 15; round++) {
    for (long i = 0; i < 3; i++)
      if (pthread_create(&t[i], 0, cancelled, (void *)(i + 1)))
        exit(97);
    usleep((useconds_t)(round * 200));
    for (int i = 0; i < 3; i++)
      pthread_cancel(t[i]);
    for (int i = 0; i < 3; i++) {
      void *r = 0;
      pthread_join(t[i], &r);
      right += r == PTHREAD_CANCELED;
    }
  }
  pthread_join(u, &at);
  printf("cancelled %ld, cleaned %ld, end %zu\n", right, cleaned, (size_t)at);
}

// Libc has every thread make the call, wherever it is: by a signal of its own.
static volatile int no_more;
static void *meanwhile(void *x) {
  size_t at = (size_t)x;
  while (!no_more)
    at = work(at, 1000);
  return 0;
}
static void identities(void) {
  pthread_t t[4];
  long wrongly = 0;
  for (long i = 0; i < 4; i++)
    if (pthread_create(&t[i], 0, meanwhile, (void *)i))
      exit(97);
  size_t at = 0;
  for (int i = 0; i < 100; i++) {
    at = work(at, 2000);
    wrongly += setuid(getuid()) != 0 || setgid(getgid()) != 0;
  }
  no_more = 1;
  for (int i = 0; i < 4; i++)
    pthread_join(t[i], 0);
  printf("identities, wrong %ld, end %zu\n", wrongly, at);
}

// Threads that libc makes by itself to call a function in them.
static volatile long calls, amiss;
static size_t expected_of[3];
static void called(union sigval v) {
  size_t i = (size_t)v.sival_int;
  if (work(i, 700) != expected_of[i])
    __atomic_add_fetch(&amiss, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}
static void timers(void) {
  timer_t t[3];
  for (int i = 0; i < 3; i++)
    expected_of[i] = work((size_t)i, 700);
  for (int i = 0; i < 3; i++) {
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = called, .sigev_value.sival_int = i};
    struct itimerspec every = {{0, 700000 + i * 1000}, {0, 700000}};
    if (timer_create(CLOCK_MONOTONIC, &e, &t[i]) || timer_settime(t[i], 0, &every, 0))
      exit(97);
  }
  size_t at = 0;
  int wrong = 0;
  for (long n = 0; calls < 300 && n < 100000; n++) {
    size_t before = at;
    at = work(at, 5000);
    wrong += n % 100 == 0 && work(before, 5000) != at;
  }
  for (int i = 0; i < 3; i++)
    timer_delete(t[i]);
  usleep(20000);
  printf("timers %s, amiss %ld and %d\n", calls >= 300 ? "came" : "did not come", amiss, wrong);
}

// Threads that get a signal before their first instruction, while their creator is in its ring; the
// handler runs twins.
static volatile long misled;
static size_t expected_kick;
static void kick(int s) {
  if (s != SIGUSR2 || work(11, 200) != expected_kick)
    __atomic_add_fetch(&misled, 1, __ATOMIC_RELAXED);
}
static void *kickable(void *x) { return (void *)work((size_t)x, 1000); }
static void kicks(void) {
  size_t at = 0, sum = 0;
  expected_kick = work(11, 200);
  signal(SIGUSR2, kick);
  for (long round = 0; round < 150; round++) {
    pthread_t t[3];
    for (long i = 0; i < 3; i++) {
      if (pthread_create(&t[i], 0, kickable, (void *)(round + i)))
        exit(97);
      pthread_kill(t[i], SIGUSR2);
      at = work(at, 3000);
    }
    for (int i = 0; i < 3; i++) {
      void *r;
      pthread_join(t[i], &r);
      sum += (size_t)r;
    }
  }
  printf("kicks, misled %ld, sum %zu, end %zu\n", misled, sum, at);
}

// Children of the system call's bare kind, which share the memory, or do not, or have it while the
// parent waits.
static int cloned(void *x) { return (int)(work((size_t)x, 30000) % 100); }
static void clones(void) {
  static char stacks[4][1 << 16] __attribute__((aligned(16)));
  static const int flags[] = {CLONE_VM | SIGCHLD, CLONE_VM | SIGCHLD, SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD};
  size_t at = 0;
  long sum = 0;
  for (int round = 0; round < 30; round++) {
    pid_t child[4];
    for (long i = 0; i < 4; i++) {
      child[i] = clone(cloned, stacks[i] + sizeof stacks[i], flags[i], (void *)(i + round));
      at = work(at, 3000);
    }
    for (int i = 0; i < 4; i++) {
      int status = 0;
      while (waitpid(child[i], &status, 0) < 0 && errno == EINTR)
        ;
      sum += WIFEXITED(status) ? WEXITSTATUS(status) : 100000;
    }
  }
  printf("clones %ld, end %zu\n", sum, at);
}

// All but four system calls are forbidden, on pain of death; guests fault meanwhile.
static void sandboxed(void) {
  char line[64];
  fflush(stdout);
  work(0, 300000);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
    exit(97);
  size_t at = work(0, 3000000);
  int size = snprintf(line, sizeof line, "sandboxed, end %zu\n", at);
  write(1, line, (size_t)size);
  syscall(SYS_exit, 5);
}

#include "sleeps.h"
#include "left.h"
// Works until a scavenger is done.
static void company(void) {
  size_t at = 0;
  while (access("done", F_OK))
    at = work(at, 100000);
  printf("done\n");
}
// As servers say for themselves.
static void cancellable(void) { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); }
// Works until a scavenger is done, and sleeps after each little work.
static void naps(void) {
  size_t at = 0;
  for (int n = 0; n % 64 || access("done", F_OK); n++) {
    at = work(at, 3000);
    nanosleep(&(struct timespec){0, 1000}, 0);
  }
  printf("done\n");
}
static void long_work(void) { printf("end %zu\n", work(0, 2000000)); }
static void leave_main(void) { exit(5); }
static void crash(void) {
  printf("crash\n");
  fflush(stdout);
  work(0, 100000);
  *(volatile char *)16 = 1;
}
static void killed(void) {
  printf("killed\n");
  fflush(stdout);
  work(0, 100000);
  raise(SIGKILL);
}
static void aborted(void) {
  work(0, 100000);
  abort();
}
static void terminated(void) {
  printf("terminated\n");
  fflush(stdout);
  work(0, 100000);
  raise(SIGTERM);
}
static void exec_threads(void) {
  leave_running();
  fflush(stdout);
  execl("/bin/sh", "sh", "-c", "echo another program; exit 6", (char *)0);
}
static void execs(void) {
  fflush(stdout);
  work(0, 500000);
  execl("/bin/sh", "sh", "-c", "echo another program; exit 6", (char *)0);
}

static const struct {
  const char *name;
  void (*act)(void);
} modes[] = {{"signals", signals}, {"faults", faults}, {"threads", threads}, {"running", leave_running},
             {"forks", forks},     {"sleeps", sleeps}, {"sleepers", sleepers}, {"work", long_work},  {"exit", leave_main},
             {"crash", crash},     {"killed", killed}, {"abort", aborted},   {"term", terminated},
             {"exec", execs},       {"company", company}, {"cancellable", cancellable}, {"naps", naps}, {"vforks", vforks}, {"soak", soak},   {"jumps", jumps},
             {"main-ends", main_ends}, {"daemons", daemons}, {"daemon", daemon_itself}, {"exec-threads", exec_threads},
             {"cancels", cancels}, {"identities", identities},
             {"timers", timers},   {"frames", frames},   {"clones", clones}, {"kicks", kicks}, {"turns", turns}, {"waits", waits},
             {"sandboxed", sandboxed}, {"left", left}};

int main(int argc, char **argv) {
  prepare();
  printf("begin %zu\n", work(0, 200000));
  for (int k = 1; k < argc; k++)
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
      if (!strcmp(modes[i].name, argv[k]))
        modes[i].act();
  return 4;
}
