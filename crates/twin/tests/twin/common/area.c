/* Stands in for the runtime in tests: gives every thread an area whose ring holds its own context,
 * and, if GARBAGE is set,
   a second one that fills everything a switch may change with garbage and goes on to the next. Preloaded.
   ABI_* come from crate runtime-abi, by way of the compiler's options. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STR_(x) #x
#define STR(x) STR_(x)

enum { AREA = 0x1000, CONTEXT = 0x1000 };

static int with_garbage, is_guest;
/* A page of its own, so that it can be that of a file, which tells how many yields there were
 * however a program ends. */
__attribute__((used, visibility("hidden"), aligned(4096))) volatile uint64_t total[512];

extern char garbage_switch[], leave_at_once[], fill_wide[], fill_narrow[];

/* Entered with the garbage context in rax. Everything but rax becomes garbage, then the next
 * context runs. */
__asm__(".text\n"
        "garbage_switch:\n"
        "  lock incq total(%rip)\n"
        "  jmp *0x40(%rax)\n"
        "fill_wide:\n" /* AVX-512 */
        "  vpternlogd $0xff, %zmm0, %zmm0, %zmm0\n"
        "  .irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "  vpslld $\\n, %zmm0, %zmm\\n\n"
        "  .endr\n"
        "  .irp n,0,1,2,3,4,5,6,7\n"
        "  kxnorq %k\\n, %k\\n, %k\\n\n"
        "  .endr\n"
        "  jmp fill_general\n"
        "fill_narrow:\n"
        "  .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  pcmpeqd %xmm\\n, %xmm\\n\n"
        "  .endr\n"
        "fill_general:\n"
        "  movabs $0xdead00000000b001, %rbx\n"
        "  lea 0x111(%rbx), %rcx\n"
        "  lea 0x222(%rbx), %rdx\n"
        "  lea 0x333(%rbx), %rbp\n"
        "  lea 0x444(%rbx), %rsi\n"
        "  lea 0x555(%rbx), %rdi\n"
        "  lea 0x666(%rbx), %r8\n"
        "  lea 0x777(%rbx), %r9\n"
        "  lea 0x888(%rbx), %r10\n"
        "  lea 0x999(%rbx), %r11\n"
        "  lea 0xaaa(%rbx), %r12\n"
        "  lea 0xbbb(%rbx), %r13\n"
        "  lea 0xccc(%rbx), %r14\n"
        "  lea 0xddd(%rbx), %r15\n"
        "  mov %rbx, %gs:" STR(ABI_S0) "\n"
        "  mov %rbx, %gs:" STR(ABI_S1) "\n"
        "  mov %rbx, %gs:" STR(ABI_S2) "\n"
        /* A stack of its own, so that a stack pointer that is not restored shows. */
        "  mov 0x48(%rax), %rsp\n"
        /* Flags that hang on how often it was here. */
        "  testb $1, total(%rip)\n"
        "  jz 1f\n"
        "  mov $0x7f, %cl\n"
        "  add $1, %cl\n"
        "  jmp 2f\n"
        "1: mov $0xff, %cl\n"
        "  add $1, %cl\n"
        "2: mov " STR(ABI_NEXT) "(%rax), %rax\n"
        "  mov %rax, %gs:" STR(ABI_CUR) "\n"
        "  jmp *" STR(ABI_RIP) "(%rax)\n"
        "leave_at_once:\n"
        "  mov %gs:" STR(ABI_S0) ", %rax\n"
        "  jmp *%gs:" STR(ABI_S1) "\n");

static char *context(void) {
    char *page = mmap(0, 2 * CONTEXT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page + 0x100;
}

#define WORD(base, at) (*(uint64_t *)((char *)(base) + (at)))

static void give_area(void) {
    char *area = mmap(0, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *own = context();
    uint64_t fs = 0;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
    WORD(own, ABI_FS) = fs;
    WORD(own, ABI_NEXT) = (uint64_t)own;
    if (with_garbage) {
        char *other = context();
        WORD(other, ABI_NEXT) = (uint64_t)own;
        WORD(other, ABI_RIP) = (uint64_t)garbage_switch;
        __builtin_cpu_init();
        WORD(other, 0x40) = (uint64_t)(__builtin_cpu_supports("avx512bw") ? fill_wide : fill_narrow);
        /* A signal's frame takes 11 KiB where the core has AMX. */
        char *stack = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        WORD(other, 0x48) = (uint64_t)(stack + 0xff00);
        WORD(own, ABI_NEXT) = (uint64_t)other;
    }
    WORD(area, ABI_SELF) = (uint64_t)area;
    WORD(area, ABI_CUR) = (uint64_t)own;
    WORD(area, ABI_OWN) = (uint64_t)own;
    WORD(area, ABI_LEAVE) = (uint64_t)leave_at_once;
    area[ABI_GUEST] = is_guest;
    syscall(SYS_arch_prctl, ARCH_SET_GS, area);
}

struct start {
    void *(*run)(void *);
    void *with;
};

static void *begin(void *at) {
    struct start start = *(struct start *)at;
    free(at);
    give_area();
    return start.run(start.with);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *with) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    *start = (struct start){run, with};
    return real(thread, attributes, begin, start);
}

/* A handler may come in the middle of inserted code: it runs with a context of its own, alone in
 * its ring, and leaves the
   scratch words as they were. */
static struct sigaction handlers[65];

static void handle(int number, siginfo_t *info, void *machine) {
    char *area;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(area));
    uint64_t kept[4] = {WORD(area, ABI_CUR), WORD(area, ABI_S0), WORD(area, ABI_S1), WORD(area, ABI_S2)};
    uint32_t budget = *(uint32_t *)(area + ABI_BUDGET);
    char *alone = context();
    WORD(alone, ABI_NEXT) = (uint64_t)alone;
    WORD(alone, ABI_FS) = WORD(WORD(area, ABI_OWN), ABI_FS);
    WORD(area, ABI_CUR) = (uint64_t)alone;
    if (handlers[number].sa_flags & SA_SIGINFO)
        handlers[number].sa_sigaction(number, info, machine);
    else
        handlers[number].sa_handler(number);
    WORD(area, ABI_CUR) = kept[0];
    WORD(area, ABI_S0) = kept[1];
    WORD(area, ABI_S1) = kept[2];
    WORD(area, ABI_S2) = kept[3];
    *(uint32_t *)(area + ABI_BUDGET) = budget;
    munmap(alone - 0x100, 2 * CONTEXT);
}

int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    if (!real)
        real = dlsym(RTLD_NEXT, "sigaction");
    struct sigaction before = handlers[number & 63], wrapped;
    if (new) {
        wrapped = *new;
        if (new->sa_handler != SIG_DFL && new->sa_handler != SIG_IGN) {
            handlers[number & 63] = *new;
            wrapped.sa_flags |= SA_SIGINFO;
            wrapped.sa_sigaction = handle;
        }
    }
    int result = real(number, new ? &wrapped : 0, old);
    if (!result && old && old->sa_sigaction == handle)
        *old = before;
    return result;
}

void (*signal(int number, void (*handler)(int)))(int) {
    struct sigaction new = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    return sigaction(number, &new, &old) ? SIG_ERR : old.sa_handler;
}

/* The child of vfork shares the parent's area but not its time, and a forked one has copies:
 * nothing to do for them. */

__attribute__((constructor(101))) static void start(void) {
    /* At once: even getenv may be the program's own. */
    give_area();
    with_garbage = getenv("GARBAGE") != 0;
    is_guest = getenv("GUEST") != 0;
    const char *path = getenv("YIELDS_TO");
    int file = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    if (file >= 0) {
        if (ftruncate(file, sizeof total) ||
            mmap((void *)total, sizeof total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
            abort();
        close(file);
    }
    give_area();
}
