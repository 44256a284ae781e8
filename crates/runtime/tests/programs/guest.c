// A scavenger that misbehaves: `guest MODE [STEPS]` chases for a while, does what MODE says, chases on, and prints a checksum.
// Each mode is a function below; to add one: a function, a line in the table.
#include "yields.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long steps = 300000;
static char *memory;
enum { LINES = 1 << 16 };

static size_t work(size_t from, unsigned long n) {
  char *at = chase(memory + 64 * from, n);
  return (size_t)(at - memory) / 64;
}

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
  char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
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
static void on_usr1(int s) { handled += s; }
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
    char *p = malloc(size);
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
static void nothing(void) {}

static const struct {
  const char *name;
  void (*act)(void);
} modes[] = {{"segv", segv},       {"bus", bus},         {"fpe", fpe},         {"ill", ill},
             {"abort", leave_abort}, {"exit", leave_exit}, {"kill", kill_self},  {"recover", recover},
             {"raise", raise_usr1}, {"alarm", alarms},    {"fork", forks},      {"exec", execs},
             {"pipe", pipes},       {"alloc", allocs},    {"spin", spin},       {"threads", threads},
             {"vectors", vectors},  {"forever", forever}, {"nothing", nothing}};

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
