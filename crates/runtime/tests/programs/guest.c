// A scavenger that misbehaves: `guest MODE [STEPS]` chases for a while, does what MODE says, chases
// on, and prints a checksum. Compiled as C++, so that it can throw, too. Each mode is a function
// below; to add one: a function, a line in the table.
#include "yields.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long steps = 300000;
static char *memory;
enum { LINES = 1 << 16 };

static size_t work(size_t from, unsigned long n) {
  char *at = (char *)chase(memory + 64 * from, n);
  return (size_t)(at - memory) / 64;
}

static void prepare(void) {
  memory = (char *)mmap(0, LINES * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint32_t *order = (uint32_t *)malloc(LINES * sizeof *order);
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

// Faults right behind a yield, so mostly aboard.
__attribute__((noinline)) static void touch(volatile char *p) {
  SITE(memory);
  *p = 1;
}
static void segv(void) {
  work(0, steps);
  touch((char *)16);
}
static void bus(void) {
  FILE *f = tmpfile();
  char *p = (char *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
  work(0, steps);
  touch(p);
}
static void fpe(void) {
  volatile int zero = 0;
  work(0, steps);
  SITE(memory);
  zero = 12345 / zero;
}
static void ill(void) {
  work(0, steps);
  SITE(memory);
  __asm__ volatile("ud2");
}
static void leave_abort(void) {
  LEAVE();
  abort();
}
static void leave_exit(void) {
  LEAVE();
  exit(7);
}
static void kill_self(void) {
  LEAVE();
  raise(SIGKILL);
}
static sigjmp_buf back;
static volatile int caught;
static void catch_segv(int s) {
  caught = s;
  siglongjmp(back, 1);
}
static void recover(void) {
  LEAVE();
  signal(SIGSEGV, catch_segv);
  if (!sigsetjmp(back, 1)) {
    work(0, steps);
    touch((char *)16);
  }
  LEAVE();
  printf("caught %d\n", caught);
}
static volatile long handled;
// Another signal may come in the midst of it.
static void on_usr1(int s) { __atomic_fetch_add(&handled, s, __ATOMIC_RELAXED); }
static void raise_usr1(void) {
  LEAVE();
  signal(SIGUSR1, on_usr1);
  for (int i = 0; i < 20; i++) {
    work((size_t)i, 2000);
    LEAVE();
    raise(SIGUSR1);
  }
  printf("handled %ld\n", handled);
}
static void alarms(void) {
  LEAVE();
  signal(SIGALRM, on_usr1);
  alarm(1);
  size_t at = 0;
  unsigned long n = 0;
  while (!handled && n < 4000) {
    at = work(at, 100000);
    n++;
    LEAVE();
  }
  printf("alarm %ld\n", handled);
}
#include "called.h"
static void forks(void) {
  for (int i = 0; i < 5; i++) {
    LEAVE();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
      size_t at = work(0, 20000);
      LEAVE();
      _exit(at == 0 ? 100 : i);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    work(0, 20000);
    LEAVE();
  }
}
static void execs(void) {
  LEAVE();
  fflush(stdout);
  execl("/bin/echo", "echo", "another program", (char *)0);
}
static void pipes(void) {
  int fd[2];
  LEAVE();
  if (pipe(fd))
    exit(99);
  if (!fork()) {
    for (int i = 0; i < 50; i++) {
      usleep(2000);
      if (write(fd[1], "x", 1) != 1)
        _exit(1);
    }
    _exit(0);
  }
  close(fd[1]);
  char c;
  int n = 0;
  LEAVE();
  while (read(fd[0], &c, 1) == 1) {
    n++;
    work((size_t)n, 2000);
    LEAVE();
  }
  wait(0);
  printf("read %d\n", n);
}
static void allocs(void) {
  unsigned long sum = 0;
  for (int i = 1; i < 400; i++) {
    LEAVE();
    size_t size = (size_t)i * 977 % 300000 + 16;
    char *p = (char *)malloc(size);
    memset(p, i, size);
    work(0, 500);
    sum += (unsigned char)p[size / 2];
    LEAVE();
    free(p);
  }
  printf("allocated %lu\n", sum);
}
static void spin(void) {
  volatile unsigned long n = 0;
  while (n < 300000000)
    n = n + 1;
}
static void *thread(void *x) {
  size_t at = work((size_t)x, 50000);
  LEAVE();
  return (void *)at;
}
static void threads(void) {
  pthread_t t[4];
  unsigned long sum = 0;
  LEAVE();
  for (long i = 0; i < 4; i++)
    if (pthread_create(&t[i], 0, thread, (void *)i))
      exit(98);
  for (int i = 0; i < 4; i++) {
    void *r;
    LEAVE();
    pthread_join(t[i], &r);
    sum += (unsigned long)r;
  }
  printf("threads %lu\n", sum);
}
// More threads than rings take, one after the other and four at a time; they come and go
// while others are aboard.
static void *short_thread(void *x) {
  size_t at = work((size_t)x, 500);
  LEAVE();
  return (void *)at;
}
static void many(void) {
  unsigned long sum = 0;
  LEAVE();
  for (long i = 0; i < 400; i++) {
    pthread_t t[4];
    for (long k = 0; k < 4; k++)
      if (pthread_create(&t[k], 0, short_thread, (void *)(i + k)))
        exit(97);
    for (int k = 0; k < 4; k++) {
      void *r;
      pthread_join(t[k], &r);
      sum += (unsigned long)r;
    }
  }
  printf("threads %lu\n", sum);
}
// The process goes on without the thread that began it.
static void *after_main(void *x) {
  work((size_t)x, 100000);
  LEAVE();
  printf("without main\n");
  fflush(stdout);
  exit(6);
}
static void main_ends(void) {
  pthread_t t;
  LEAVE();
  if (pthread_create(&t, 0, after_main, (void *)9))
    exit(97);
  pthread_exit(0);
}
// The same, until it is ended.
static void churn(void) {
  for (;;) {
    many();
    LEAVE();
    free(malloc(3 << 20));
  }
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turns, whose;
static void *takes_turns(void *x) {
  long me = (long)x;
  for (int i = 0; i < 100; i++) {
    LEAVE();
    pthread_mutex_lock(&lock);
    while (whose != me) {
      LEAVE();
      pthread_cond_wait(&turned, &lock);
    }
    work((size_t)me, 300); // aboard with the lock held
    turns++;
    whose = (me + 1) % 3;
    LEAVE();
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&lock);
  }
  LEAVE();
  return 0;
}
static void locks(void) {
  pthread_t t[3];
  LEAVE();
  for (long i = 0; i < 3; i++)
    if (pthread_create(&t[i], 0, takes_turns, (void *)i))
      exit(97);
  for (int i = 0; i < 3; i++)
    pthread_join(t[i], 0);
  printf("turns %ld\n", turns);
}
// A lock between processes, whose holder dies.
static void robust(void) {
  LEAVE();
  pthread_mutex_t *m = (pthread_mutex_t *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(m, &a);
  pid_t child = fork();
  if (!child) {
    pthread_mutex_lock(m);
    work(0, 2000);
    LEAVE();
    raise(SIGKILL);
  }
  waitpid(child, 0, 0);
  printf("its owner died: %d\n", pthread_mutex_lock(m) == EOWNERDEAD);
}
// Takes what it gets, up to a bound; the memory is this address space's as much as the primary's.
static void endless(void) {
  unsigned long n = 0;
  for (; n < 192; n++) {
    LEAVE();
    char *p = (char *)malloc(1 << 20);
    if (!p)
      break;
    memset(p, 1, 1 << 20);
    work(n, 300);
  }
  LEAVE();
  printf("took %lu\n", n);
  raise(SIGKILL);
}
static void vforks(void) {
  for (int i = 0; i < 10; i++) {
    LEAVE();
    pid_t child = vfork();
    if (!child) {
      execl("/bin/sh", "sh", "-c", "exit 9", (char *)0);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    work((size_t)i, 2000);
    LEAVE();
    if (WEXITSTATUS(status) != 9)
      printf("child ended %d\n", status);
  }
}
// Stops itself; a child lets it go on.
static void stops(void) {
  LEAVE();
  for (int i = 0; i < 3; i++) {
    pid_t me = getpid(), child = fork();
    if (!child) {
      for (;;) {
        usleep(3000);
        if (kill(me, SIGCONT) || getppid() != me)
          _exit(0);
      }
    }
    raise(SIGSTOP);
    work(0, 2000);
    LEAVE();
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
  }
  printf("went on\n");
}
// Another program while threads of this one are aboard.
static void *computes(void *x) {
  size_t at = (size_t)x;
  for (;;)
    at = work(at, 1000);
  return 0;
}
static void among_threads(void) {
  pthread_t t;
  LEAVE();
  for (long i = 0; i < 3; i++)
    if (pthread_create(&t, 0, computes, (void *)i))
      exit(97);
  work(3, 50000);
  LEAVE();
}
static void exec_threads(void) {
  among_threads();
  execl("/bin/sh", "sh", "-c", "echo another program; exit 8", (char *)0);
}
static void exit_threads(void) {
  among_threads();
  exit(9);
}
// Threads that get a signal before their first instruction.
static volatile long misled;
static size_t expected_kick;
static void kick(int s) {
  if (s != SIGUSR2 || work(11, 200) != expected_kick)
    __atomic_add_fetch(&misled, 1, __ATOMIC_RELAXED);
}
static void kicks(void) {
  unsigned long sum = 0;
  expected_kick = work(11, 200);
  LEAVE();
  signal(SIGUSR2, kick);
  for (long round = 0; round < 60; round++) {
    pthread_t t[3];
    for (long i = 0; i < 3; i++) {
      if (pthread_create(&t[i], 0, short_thread, (void *)(round + i)))
        exit(97);
      pthread_kill(t[i], SIGUSR2);
      work((size_t)i, 1000);
      LEAVE();
    }
    for (int i = 0; i < 3; i++) {
      void *r;
      pthread_join(t[i], &r);
      sum += (unsigned long)r;
    }
  }
  printf("kicks, misled %ld, sum %lu\n", misled, sum);
}
// Threads that may be cancelled at any moment.
static void *cancelled(void *x) {
  LEAVE();
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
  for (size_t at = (size_t)x;;)
    at = work(at, 1000);
  return 0;
}
static void cancels(void) {
  long right = 0;
  LEAVE();
  for (int i = 0; i < 20; i++) {
    pthread_t t;
    void *r = 0;
    if (pthread_create(&t, 0, cancelled, (void *)1))
      exit(97);
    work((size_t)i, 5000);
    LEAVE();
    pthread_cancel(t);
    pthread_join(t, &r);
    right += r == PTHREAD_CANCELED;
  }
  printf("cancelled %ld\n", right);
}
// Threads that libc makes by itself to call a function in them.
static volatile long calls, amiss;
static size_t expected_of[2];
static void called(union sigval v) {
  size_t i = (size_t)v.sival_int;
  if (work(i, 700) != expected_of[i])
    __atomic_add_fetch(&amiss, 1, __ATOMIC_RELAXED);
  LEAVE();
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}
static void timers(void) {
  timer_t t[2];
  for (int i = 0; i < 2; i++)
    expected_of[i] = work((size_t)i, 700);
  LEAVE();
  for (int i = 0; i < 2; i++) {
    struct sigevent e = {};
    struct itimerspec every = {{0, 3000000}, {0, 3000000}};
    e.sigev_notify = SIGEV_THREAD;
    e.sigev_notify_function = called;
    e.sigev_value.sival_int = i;
    if (timer_create(CLOCK_MONOTONIC, &e, &t[i]) || timer_settime(t[i], 0, &every, 0))
      exit(97);
  }
  size_t at = 0;
  while (calls < 60)
    at = work(at, 5000);
  LEAVE();
  for (int i = 0; i < 2; i++)
    timer_delete(t[i]);
  printf("timers, amiss %ld\n", amiss);
}
// A thread on a stack that is all but used up, until it is ended.
enum { NARROW = 1 << 17 };
static void *narrow_thread(void *x) {
  char here;
  char *low = (char *)x + 800;
  volatile char *used = (char *)__builtin_alloca((size_t)(&here - low));
  used[0] = 1;
  for (size_t at = 5;;)
    at = work(at, 1000);
  return (void *)used;
}
static void narrow(void) {
  pthread_attr_t a;
  pthread_t t;
  LEAVE();
  char *stack = (char *)mmap(0, NARROW + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 65536;
  mprotect(stack, NARROW, PROT_READ | PROT_WRITE);
  pthread_attr_init(&a);
  pthread_attr_setstack(&a, stack, NARROW);
  if (pthread_create(&t, &a, narrow_thread, stack))
    exit(97);
  pthread_join(t, 0);
}
#ifdef __cplusplus
struct Counts {
  long &n;
  ~Counts() { n++; }
};
__attribute__((noinline)) static void deep(long depth, long &unwound) {
  Counts counts{unwound};
  work((size_t)depth, 200);
  LEAVE();
  if (!depth)
    throw depth + 42;
  deep(depth - 1, unwound);
}
static void throws(void) {
  long unwound = 0, sum = 0;
  for (long i = 0; i < 200; i++) {
    LEAVE();
    try {
      deep(i % 20, unwound);
    } catch (long what) {
      sum += what;
    }
  }
  printf("unwound %ld, caught %ld\n", unwound, sum);
}
static void uncaught(void) {
  long unwound = 0;
  LEAVE();
  fclose(stderr);
  deep(3, unwound);
}
#endif
static void vectors(void) {
  double sum = 0;
  for (int i = 1; i < 3000; i++) {
    double x = 1.0 / i;
    work((size_t)i, 20);
    sum += x * x;
  }
  LEAVE();
  printf("sum %.12f\n", sum);
}
static void forever(void) {
  size_t at = 0;
  for (;;)
    at = work(at, 100000);
}
// Fills registers that others hold, and looks after its own.
static void holds(void) {
  unsigned long held[3];
  for (size_t at = 0;; at++) {
    volatile int inside;
    hold(memory + 64 * (at % LINES), 1000, 0x2020202, &inside, held);
    if (held[0] != 0x2020202 || held[1] != 0x2020203 || held[2] != 0x2020204) {
      LEAVE();
      exit(96);
    }
    BOUND();
  }
}
static void nothing(void) {}

static const struct {
  const char *name;
  void (*act)(void);
} modes[] = {{"segv", segv},       {"bus", bus},         {"fpe", fpe},         {"ill", ill},
             {"abort", leave_abort}, {"exit", leave_exit}, {"kill", kill_self},  {"recover", recover},
             {"raise", raise_usr1}, {"alarm", alarms},    {"called", called_often}, {"once", once}, {"fork", forks},      {"exec", execs},
             {"pipe", pipes},       {"alloc", allocs},    {"spin", spin},       {"threads", threads},
             {"vectors", vectors},  {"forever", forever}, {"nothing", nothing},
             {"many", many},        {"churn", churn},     {"main-ends", main_ends}, {"locks", locks},  {"robust", robust},
             {"endless", endless},  {"vfork", vforks},    {"stop", stops},      {"exec-threads", exec_threads},
             {"cancels", cancels},  {"narrow", narrow},    {"timers", timers},   {"holds", holds},    {"kicks", kicks},
#ifdef __cplusplus
             {"throw", throws},     {"uncaught", uncaught},
#endif
             {"exit-threads", exit_threads}};

int main(int argc, char **argv) {
  if (argc > 2)
    steps = strtoul(argv[2], 0, 10);
  prepare();
  size_t at = work(1, steps);
  for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
    LEAVE();
    if (!strcmp(modes[i].name, argv[1]))
      modes[i].act();
  }
  at = work(at, steps);
  LEAVE();
  printf("%s ends at %zu\n", argv[1], at);
  fclose(fopen("done", "w")); // a primary may wait for it
  return 3;
}
