// The inserted code of docs/harvest-abi.md by hand, so that the runtime is tested without the
// rewriter.
//
// One source is both sides: with -DPRIMARY its sites are a primary twin's, with -DSCAVENGER a
// scavenger twin's; with neither they are nothing. Code between two of these macros must be what a
// twin may run aboard: no calls into libraries, no thread-local storage, no system calls; LEAVE()
// comes before them. To add a form: its macro here, a program that uses it.
#pragma once

#define QUANTUM "2000"

// Primaries pass by while they are counted alone.
#if defined(PRIMARY)
#define PASS " decq %%gs:0x40\n jns 1f\n"
#else
#define PASS ""
#endif

#if defined(SCAVENGER)
#define SET_BUDGET "movl $" QUANTUM ",%%gs:0x28\n"
#else
#define SET_BUDGET ""
#endif

// Callee-saved registers are the live ones; all else is clobbered, so the compiler keeps it on the
// stack.
#define YIELD_BODY(prefetch)                                                                                     \
  "mov %%gs:8,%%rax\n cmp (%%rax),%%rax\n je 1f\n" PASS prefetch                                                \
  "mov %%rbx,-0x68(%%rax)\n mov %%rbp,-0x58(%%rax)\n mov %%r12,-0x20(%%rax)\n mov %%r13,-0x18(%%rax)\n"          \
  "mov %%r14,-0x10(%%rax)\n mov %%r15,-0x8(%%rax)\n mov %%rsp,0x10(%%rax)\n lea 2f(%%rip),%%rcx\n"               \
  "mov %%rcx,8(%%rax)\n mov (%%rax),%%rax\n mov %%rax,%%gs:8\n jmp *8(%%rax)\n"                                  \
  "2: " SET_BUDGET "mov 0x10(%%rax),%%rsp\n mov -0x68(%%rax),%%rbx\n mov -0x58(%%rax),%%rbp\n"                   \
  "mov -0x20(%%rax),%%r12\n mov -0x18(%%rax),%%r13\n mov -0x10(%%rax),%%r14\n mov -0x8(%%rax),%%r15\n"           \
  "1:\n"
#define YIELD_CLOBBERS                                                                                           \
  "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",   \
      "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory"

#if defined(PRIMARY) || defined(SCAVENGER)
#define SITE(p) __asm__ volatile(YIELD_BODY("prefetcht0 (%0)\n")::"r"(p) : YIELD_CLOBBERS)
#else
#define SITE(p) ((void)(p))
#endif

#if defined(SCAVENGER)
#define BOUND()                                                                                                  \
  __asm__ volatile("subl $100,%%gs:0x28\n jns 1f\n" YIELD_BODY("")::: YIELD_CLOBBERS)
#define LEAVE()                                                                                                  \
  __asm__ volatile("cmpb $0,%%gs:0x2c\n je 3f\n mov %%rax,%%gs:0x10\n lea 3f(%%rip),%%rax\n"                     \
                   "mov %%rax,%%gs:0x18\n jmp *%%gs:0x30\n3:" ::                                                 \
                       : "cc", "memory")
#else
#define BOUND() ((void)0)
#define LEAVE() ((void)0)
#endif

// A loop of dependent loads, as tight as a twin can be: two live registers, the callee-saved ones
// saved once outside. What was saved is loaded behind a switch and nowhere else: on the quiet
// context, where nobody switches, a handler's yields use the same slots.
__attribute__((noinline, unused)) static void *chase(void *p, unsigned long steps) {
#if defined(PRIMARY) || defined(SCAVENGER)
  __asm__ volatile("mov %%gs:8,%%rax\n"
                   "mov %%rbx,-0x68(%%rax)\n mov %%rbp,-0x58(%%rax)\n mov %%r12,-0x20(%%rax)\n"
                   "mov %%r13,-0x18(%%rax)\n mov %%r14,-0x10(%%rax)\n mov %%r15,-0x8(%%rax)\n"
                   ".p2align 4\n"
                   "4: mov %%gs:8,%%rax\n cmp (%%rax),%%rax\n je 1f\n" PASS "prefetcht0 (%0)\n"
                   "mov %%rdi,-0x48(%%rax)\n mov %%rsi,-0x50(%%rax)\n mov %%rsp,0x10(%%rax)\n"
                   "lea 2f(%%rip),%%rcx\n mov %%rcx,8(%%rax)\n mov (%%rax),%%rax\n mov %%rax,%%gs:8\n"
                   "jmp *8(%%rax)\n"
                   "2: " SET_BUDGET "mov 0x10(%%rax),%%rsp\n mov -0x48(%%rax),%%rdi\n mov -0x50(%%rax),%%rsi\n"
                   "mov -0x68(%%rax),%%rbx\n mov -0x58(%%rax),%%rbp\n mov -0x20(%%rax),%%r12\n"
                   "mov -0x18(%%rax),%%r13\n mov -0x10(%%rax),%%r14\n mov -0x8(%%rax),%%r15\n"
                   "1: mov (%0),%0\n dec %1\n jnz 4b\n"
                   : "+D"(p), "+S"(steps)
                   :
                   : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                     "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc",
                     "memory");
#else
  do
    p = *(void *volatile *)p;
  while (--steps);
#endif
  return p;
}

// Loads along a chain with a yield at each, while r13 to r15 hold `value` and the two numbers
// behind it; `inside` says so.
#if defined(PRIMARY) || defined(SCAVENGER)
#define SITE_OF_HOLD YIELD_BODY("prefetcht0 (%%rbx)\n")
#else
#define SITE_OF_HOLD ""
#endif
__attribute__((noinline, unused)) static void hold(void *p, unsigned long loads, unsigned long value, volatile int *inside,
                                                   unsigned long held[3]) {
  unsigned long r13 = value, r14 = value + 1, r15 = value + 2;
  __asm__ volatile("mov %[p],%%rbx\n mov %[loads],%%r12\n mov %[r13],%%r13\n mov %[r14],%%r14\n mov %[r15],%%r15\n"
                   "mov %[inside],%%rax\n movl $1,(%%rax)\n"
                   "5: " SITE_OF_HOLD "mov (%%rbx),%%rbx\n dec %%r12\n jnz 5b\n"
                   "mov %[inside],%%rax\n movl $0,(%%rax)\n mov %%r13,%[r13]\n mov %%r14,%[r14]\n mov %%r15,%[r15]\n"
                   : [r13] "+m"(r13), [r14] "+m"(r14), [r15] "+m"(r15)
                   : [p] "m"(p), [loads] "m"(loads), [inside] "m"(inside)
                   : YIELD_CLOBBERS, "rbx", "r12", "r13", "r14", "r15");
  held[0] = r13, held[1] = r14, held[2] = r15;
}
