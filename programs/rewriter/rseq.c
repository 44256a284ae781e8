// A restartable sequence: the kernel begins it anew, by its place, where the thread was preempted
// in it. No twin, and many threads count right.
//# flags: -pthread
//# twins: worker
//# refused: bump restartable_sequence
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// The kernel's, which the C library (2.35 and later) has registered for each thread.
struct area { uint32_t cpu_start, cpu; uint64_t sequence; uint32_t flags; } __attribute__((aligned(32)));
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

// rdi: the area, rsi: a counter for each CPU, 64 bytes apart.
void bump(struct area *area, long *counters);
__asm__(".text\n .globl bump\n .type bump, @function\nbump:\n .cfi_startproc\n"
        "0: lea 3f(%rip), %rdx\n mov (%rdi), %eax\n mov %rdx, 8(%rdi)\n"
        "1: cmp %eax, 4(%rdi)\n jne 4f\n shl $6, %rax\n mov (%rsi,%rax), %rcx\n inc %rcx\n"
        " mov $100, %edx\n5: dec %edx\n jne 5b\n" // most of the time it is here
        " mov %rcx, (%rsi,%rax)\n"
        "2: ret\n"
        " .byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n" // what the kernel wants to see before the place it goes to
        "4: jmp 0b\n"
        " .cfi_endproc\n .size bump, .-bump\n"
        ".pushsection __rseq_cs, \"aw\"\n .balign 32\n3: .long 0, 0\n .quad 1b, 2b-1b, 4b\n.popsection\n");

enum { THREADS = 8, TIMES = 100000, CPUS = 4096 };
static long counters[CPUS * 8] __attribute__((aligned(64)));

__attribute__((noinline)) static void *worker(void *registered) {
    // Where nothing is registered, threads come one after the other.
    struct area none = {0, 0, 0, 0};
    struct area *area = registered ? (struct area *)((char *)__builtin_thread_pointer() + __rseq_offset) : &none;
    for (int i = 0; i < TIMES; i++) bump(area, counters);
    return NULL;
}

int main(void) {
    void *registered = &__rseq_size && __rseq_size ? "yes" : NULL;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, worker, registered);
        if (!registered) pthread_join(threads[i], NULL);
    }
    if (registered) for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long all = 0;
    for (int i = 0; i < CPUS; i++) all += counters[i * 8];
    printf("%ld\n", all);
    return all != (long)THREADS * TIMES;
}
