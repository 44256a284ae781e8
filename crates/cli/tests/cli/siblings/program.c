/* Threads that chase through memory, and what else threads do meanwhile. The first argument says
 * what; the output does not depend on the order in which threads run. To add one: a function, a
 * line in main, a line in the test. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 64

struct node { struct node *next; uint64_t value; uint64_t pad[6]; };
struct worker { pthread_t thread; long number; struct node *start; long steps; uint64_t result; };

static struct worker workers[MOST];
static long count = 6, mib = 4, rounds = 20;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long shared_value, turn;

/* One cycle through all nodes, in an order that hangs on the seed. */
static struct node *ring_of(long nodes, uint64_t seed) {
    struct node *all = aligned_alloc(64, nodes * sizeof *all);
    uint32_t *order = malloc(nodes * sizeof *order);
    for (long i = 0; i < nodes; i++) order[i] = i;
    for (long i = nodes - 1; i > 0; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        long j = (seed >> 33) % i;
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (long i = 0; i < nodes; i++) {
        all[order[i]].next = &all[order[(i + 1) % nodes]];
        all[order[i]].value = order[i] * 2654435761u;
    }
    free(order);
    return all;
}

__attribute__((noinline)) static struct node *chase(struct node *at, long steps, uint64_t *sum) {
    uint64_t mine = *sum;
    while (steps--) {
        at = at->next;
        mine = mine * 31 + at->value;
    }
    *sum = mine;
    return at;
}

static void run(void *(*body)(void *), long threads) {
    for (long i = 0; i < threads; i++) {
        workers[i].number = i;
        if (!workers[i].start) workers[i].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17 + i);
        if (pthread_create(&workers[i].thread, 0, body, &workers[i])) exit(90);
    }
    for (long i = 0; i < threads; i++) pthread_join(workers[i].thread, 0);
}

static void print_results(long threads) {
    for (long i = 0; i < threads; i++) printf("%ld %016lx\n", i, workers[i].result);
}

static void *only_chase(void *argument) {
    struct worker *self = argument;
    chase(self->start, rounds * 100000, &self->result);
    return 0;
}

/* Numbers, and no memory that is waited for. */
static void *computing(void *argument) {
    struct worker *self = argument;
    uint64_t seed = self->number + 1;
    for (long i = 0; i < rounds * 1000000; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        self->result += seed;
    }
    return 0;
}

/* Misses, and a library's function at each of them, which has no twin. */
static void *calling(void *argument) {
    struct worker *self = argument;
    unsigned seed = self->number + 1;
    long nodes = mib * 1024 * 1024 / sizeof(struct node);
    for (long i = 0; i < rounds * 50000; i++)
        self->result += self->start[rand_r(&seed) % nodes].value;
    return 0;
}

/* Locks, conditions: a baton goes round, and each leaves something. */
static void *with_locks(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 0; i < rounds; i++) {
        at = chase(at, 2000, &self->result);
        pthread_mutex_lock(&mutex);
        while (turn != self->number) pthread_cond_wait(&changed, &mutex);
        chase(at, 500, &self->result);
        shared_value = shared_value * 7 + self->number;
        turn = (turn + 1) % count;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

/* A spin lock; the thread that holds it chases. */
static atomic_int spin;
static void *with_spin_lock(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 0; i < rounds; i++) {
        while (atomic_exchange_explicit(&spin, 1, memory_order_acquire)) __builtin_ia32_pause();
        at = chase(at, 3000, &self->result);
        shared_value++;
        atomic_store_explicit(&spin, 0, memory_order_release);
        at = chase(at, 1000, &self->result);
    }
    return 0;
}

/* The same, but the turning is in libc, where nobody yields. */
static pthread_spinlock_t libcs;
static void *with_libcs_spin_lock(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 0; i < rounds; i++) {
        pthread_spin_lock(&libcs);
        at = chase(at, 3000, &self->result);
        shared_value++;
        pthread_spin_unlock(&libcs);
        at = chase(at, 1000, &self->result);
    }
    return 0;
}

/* Each waits for all others in every round, turning. */
static atomic_long arrived;
static void *with_barrier(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 1; i <= rounds; i++) {
        at = chase(at, 2000 + 1000 * self->number, &self->result);
        atomic_fetch_add(&arrived, 1);
        while (atomic_load(&arrived) < i * count) if (self->number % 2) sched_yield();
    }
    return 0;
}

/* Counters without locks. */
static atomic_long counted;
static void *lock_free(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 0; i < rounds * 50; i++) {
        at = chase(at, 100, &self->result);
        atomic_fetch_add(&counted, 1);
        long old = atomic_load(&counted);
        while (!atomic_compare_exchange_weak(&counted, &old, old + 2)) at = chase(at, 3, &self->result);
    }
    self->result = at != 0;
    return 0;
}

static __thread long own = 5;
static __thread char name[40];
static void *thread_local(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    snprintf(name, sizeof name, "thread %ld", self->number);
    for (long i = 0; i < rounds * 10; i++) {
        at = chase(at, 1000, &self->result);
        own += self->number + name[7];
        errno = (int)self->number;
        at = chase(at, 100, &self->result);
        if (errno != self->number) self->result = 0xbad;
    }
    self->result = self->result * 1000003 + own;
    return 0;
}

static atomic_long caught;
static __thread volatile sig_atomic_t mine_caught;
static void count_signal(int signal) { (void)signal; atomic_fetch_add(&caught, 1); mine_caught++; }
static atomic_long finished;
static void *signalled(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    while (mine_caught < 3) at = chase(at, 5000, &self->result);
    self->result = mine_caught >= 3;
    atomic_fetch_add(&finished, 1);
    return 0;
}
static void *nudges(void *argument) {
    (void)argument;
    while (atomic_load(&finished) < count) {
        for (long i = 0; i < count; i++) pthread_kill(workers[i].thread, SIGUSR1);
        usleep(2000);
    }
    return 0;
}
static void signals(void) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGALRM, &action, 0);
    for (long i = 0; i < count; i++) {
        workers[i].number = i;
        workers[i].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17 + i);
        pthread_create(&workers[i].thread, 0, signalled, &workers[i]);
    }
    timer_t timer;
    struct itimerspec often = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    timer_create(CLOCK_MONOTONIC, 0, &timer);
    timer_settime(timer, 0, &often, 0);
    pthread_t nudger;
    pthread_create(&nudger, 0, nudges, 0);
    pthread_join(nudger, 0);
    for (long i = 0; i < count; i++) pthread_join(workers[i].thread, 0);
    timer_delete(timer);
    print_results(count);
}

static _Thread_local sigjmp_buf back;
static void jump_back(int signal) { siglongjmp(back, signal); }
__attribute__((noinline)) static long fault(volatile long *at) { return *at; }
static void *faulting(void *argument) {
    struct worker *self = argument;
    for (volatile long i = 0; i < rounds; i++) {
        if (sigsetjmp(back, 1) == 0) {
            chase(self->start, 20000, &self->result);
            fault((long *)(uintptr_t)(i % 8));
        }
    }
    return 0;
}

static void clean(void *argument) { atomic_fetch_add((atomic_long *)argument, 1); }
static atomic_long cleaned;
static void *until_cancelled(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    pthread_cleanup_push(clean, &cleaned);
    for (;;) {
        at = chase(at, 20000, &self->result);
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return 0;
}
static void cancel(void *(*body)(void *)) {
    for (long i = 0; i < count; i++) {
        workers[i].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17 + i);
        pthread_create(&workers[i].thread, 0, body, &workers[i]);
    }
    usleep(30000 + rounds * 1000);
    for (long i = 0; i < count; i++) pthread_cancel(workers[i].thread);
    long cancelled = 0;
    for (long i = 0; i < count; i++) {
        void *result;
        pthread_join(workers[i].thread, &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    /* Some libcs forget the result where a thread finds out by itself that it was cancelled. */
    if (body == until_cancelled) printf("%ld cancelled, ", cancelled);
    printf("%ld cleaned\n", atomic_load(&cleaned));
}

/* The same at any moment: while others run on this thread, and while it runs on theirs. */
static void *until_cancelled_anywhere(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    pthread_cleanup_push(clean, &cleaned);
    for (int i = 0; i < 20; i++) {
        at = chase(at, 20000, &self->result);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
        pthread_setcanceltype(i % 2 ? PTHREAD_CANCEL_DEFERRED : PTHREAD_CANCEL_ASYNCHRONOUS, 0);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
    }
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    for (;;) at = chase(at, 20000, &self->result);
    pthread_cleanup_pop(0);
    return 0;
}

static void *short_lived(void *argument) {
    struct worker *self = argument;
    uint64_t sum = 0;
    chase(self->start, 2000, &sum);
    __atomic_fetch_add(&self->result, sum, __ATOMIC_RELAXED);
    return 0;
}
/* Threads by the hundred, some of them joined, some not. */
static void many(void) {
    workers[0].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17);
    for (long i = 0; i < rounds * 10; i++) {
        pthread_t threads[10];
        for (int j = 0; j < 10; j++) if (pthread_create(&threads[j], 0, short_lived, &workers[0])) exit(91);
        for (int j = 0; j < 10; j++) pthread_join(threads[j], 0);
    }
    print_results(1);
}

/* Signals that arrive at threads before these have executed anything; the handlers check what
 * belongs to their thread. */
static __thread struct { long here; char name[24]; } mark = {77, "as it was made"};
static atomic_long wrong;
static void look_at_mark(int signal) {
    (void)signal;
    atomic_fetch_add(&caught, 1);
    if (mark.here != 77 || mark.name[0] != 'a') atomic_fetch_add(&wrong, 1);
    mark.name[0] = 'b';
    uint64_t sum = 0;
    chase(workers[0].start, 50, &sum);
    if (mark.name[0] != 'b') atomic_fetch_add(&wrong, 1);
    mark.name[0] = 'a';
}
static void *marked(void *argument) {
    struct worker *self = argument;
    uint64_t sum = 0;
    mark.here = 77;
    chase(self->start, 5000, &sum);
    if (mark.here != 77) atomic_fetch_add(&wrong, 1);
    __atomic_fetch_add(&self->result, sum, __ATOMIC_RELAXED);
    return 0;
}
static void newborn(void) {
    workers[0].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17);
    struct sigaction action = {.sa_handler = look_at_mark, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    for (long i = 0; i < rounds; i++) {
        pthread_t threads[8];
        for (int j = 0; j < 8; j++) {
            if (pthread_create(&threads[j], 0, marked, &workers[0])) exit(91);
            pthread_kill(threads[j], SIGUSR1);
        }
        for (int j = 0; j < 8; j++) pthread_join(threads[j], 0);
    }
    print_results(1);
    printf("%ld wrong, %d caught\n", atomic_load(&wrong), atomic_load(&caught) > 0);
}

/* Threads that libc makes by itself. */
static void on_time(union sigval value) {
    struct worker *self = value.sival_ptr;
    uint64_t sum = 0;
    own += 1;
    chase(self->start, 5000, &sum);
    own -= 1;
    if (own != 5 || mark.here != 77) atomic_fetch_add(&wrong, 1);
    __atomic_store_n(&self->result, sum, __ATOMIC_RELAXED);
    atomic_fetch_add(&caught, 1);
}
static void *until_notified(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    uint64_t sum = 0;
    own = 1000 + self->number;
    while (atomic_load(&caught) < 20) at = chase(at, 5000, &sum);
    if (own != 1000 + self->number) atomic_fetch_add(&wrong, 1);
    return 0;
}
static void notified(void) {
    struct worker *first = &workers[MOST - 1];
    first->start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_ptr = first};
    event.sigev_notify_function = on_time;
    timer_t timer;
    struct itimerspec often = {.it_interval.tv_nsec = 2000000, .it_value.tv_nsec = 2000000};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) exit(94);
    timer_settime(timer, 0, &often, 0);
    run(until_notified, count);
    timer_delete(timer);
    printf("%016lx, %ld wrong\n", first->result, atomic_load(&wrong));
}

/* All threads of a process are told when one changes who it is. */
static void *changing_identity(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 0; i < rounds; i++) {
        at = chase(at, 20000, &self->result);
        if (setgid(getgid())) exit(95);
    }
    return 0;
}

static void *forking(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (long i = 0; i < rounds / 4 + 1; i++) {
        at = chase(at, 20000, &self->result);
        pid_t child = fork();
        if (child == 0) {
            uint64_t sum = 0;
            chase(at, 20000, &sum);
            if (i % 2) execl("/bin/sh", "sh", "-c", "exit 3", (char *)0);
            _exit((int)(sum % 50));
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child) exit(92);
        self->result = self->result * 31 + WEXITSTATUS(status);
        if (i % 2 == 0 && system("exit 5") >> 8 != 5) exit(93);
    }
    return 0;
}

static void *endless(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    for (;;) at = chase(at, 10000, &self->result);
    return 0;
}
static void *ends_all(void *argument) {
    struct worker *self = argument;
    chase(self->start, 300000, &self->result);
    if (self->number == 1) exit(42);
    if (self->number == 2) _exit(43);
    if (self->number == 3) execl("/bin/sh", "sh", "-c", "echo another; exit 44", (char *)0);
    if (self->number == 4) raise(SIGTERM);
    *(volatile int *)(uintptr_t)self->number = 1;
    return 0;
}
static void end_by(long way) {
    for (long i = 0; i < count; i++) {
        workers[i].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17 + i);
        workers[i].number = i;
    }
    workers[0].number = way;
    pthread_create(&workers[0].thread, 0, ends_all, &workers[0]);
    for (long i = 1; i < count; i++) pthread_create(&workers[i].thread, 0, endless, &workers[i]);
    if (way == 6) pthread_exit(0);
    pthread_join(workers[0].thread, 0);
}

/* For how far everybody gets in a second: count, MiB each, seconds. */
static atomic_int stop;
static void *until_stopped(void *argument) {
    struct worker *self = argument;
    struct node *at = self->start;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        at = chase(at, 1000, &self->result);
        self->steps += 1000;
    }
    return 0;
}
static void pace(double seconds) {
    for (long i = 0; i < count; i++) {
        workers[i].start = ring_of(mib * 1024 * 1024 / sizeof(struct node), 17 + i);
        pthread_create(&workers[i].thread, 0, until_stopped, &workers[i]);
    }
    usleep(200000);
    long before = 0, after = 0;
    for (long i = 0; i < count; i++) before += __atomic_load_n(&workers[i].steps, __ATOMIC_RELAXED);
    usleep((useconds_t)(seconds * 1e6));
    for (long i = 0; i < count; i++) after += __atomic_load_n(&workers[i].steps, __ATOMIC_RELAXED);
    atomic_store(&stop, 1);
    for (long i = 0; i < count; i++) pthread_join(workers[i].thread, 0);
    printf("%.0f\n", (after - before) / seconds);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "chase";
    if (argc > 2) count = atol(argv[2]);
    if (argc > 3) mib = atol(argv[3]);
    if (argc > 4) rounds = atol(argv[4]);
    pthread_spin_init(&libcs, PTHREAD_PROCESS_PRIVATE);
    signal(SIGSEGV, strcmp(what, "fault") ? SIG_DFL : jump_back);
    void *(*body)(void *) = 0;
    if (!strcmp(what, "chase")) body = only_chase;
    if (!strcmp(what, "numbers")) body = computing;
    if (!strcmp(what, "calls")) body = calling;
    if (!strcmp(what, "locks")) body = with_locks;
    if (!strcmp(what, "spin")) body = with_spin_lock;
    if (!strcmp(what, "libcs-spin")) body = with_libcs_spin_lock;
    if (!strcmp(what, "barrier")) body = with_barrier;
    if (!strcmp(what, "lock-free")) body = lock_free;
    if (!strcmp(what, "thread-local")) body = thread_local;
    if (!strcmp(what, "fault")) body = faulting;
    if (!strcmp(what, "fork")) body = forking;
    if (!strcmp(what, "identity")) body = changing_identity;
    if (body) {
        run(body, count);
        print_results(count);
        printf("%ld %ld\n", shared_value, atomic_load(&counted));
        return 0;
    }
    if (!strcmp(what, "signals")) return signals(), 0;
    if (!strcmp(what, "cancel")) return cancel(until_cancelled), 0;
    if (!strcmp(what, "cancel-anywhere")) return cancel(until_cancelled_anywhere), 0;
    if (!strcmp(what, "newborn")) return newborn(), 0;
    if (!strcmp(what, "notified")) return notified(), 0;
    if (!strcmp(what, "many")) return many(), 0;
    if (!strcmp(what, "end")) return end_by(rounds), 0;
    if (!strcmp(what, "pace")) return pace(rounds), 0;
    return 99;
}
