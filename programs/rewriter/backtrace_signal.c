// A stack walked from a signal handler, through the kernel's frame, into the twin that was
// interrupted by a fault.
//# flags: -fno-optimize-sibling-calls -fasynchronous-unwind-tables
//# twins: fault nest handler
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static volatile int frames_seen, faults;
__attribute__((noinline)) void handler(int number, siginfo_t *info, void *context) {
    void *frames[200];
    frames_seen = backtrace(frames, 200);
    // 'mov (%rax), %ecx': step over it
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    faults += info->si_addr == (void *)64 && number == SIGSEGV;
}
__attribute__((noinline)) int fault(int n) {
    int got = n;
    __asm__ volatile("mov $64, %%eax\n mov (%%rax), %%ecx\n mov $3, %%edx" : : : "rax", "rcx", "rdx");
    return got + 1;
}
__attribute__((noinline)) int nest(int n) { return n == 0 ? fault(5) : nest(n - 1) + 1; }
int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    int a = nest(2), shallow = frames_seen;
    int b = nest(60), deep = frames_seen;
    printf("%d %d %d %d\n", a, b, faults, deep - shallow);
    return deep - shallow != 58;
}
