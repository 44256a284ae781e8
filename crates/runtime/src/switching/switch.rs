//! The assembly of a switch: where a guest leaves, where a primary comes to the control context,
//! where a scavenger's thread parks, and how a captured context goes on.
//!
//! All of it is entered by a jump from inserted code and left by a jump to a context. It is
//! position independent, and uses no stack but the slot's slow stack. That is small, so handlers of
//! a scavenger's, which run on the stack that they interrupt, are kept from it.
//!
//! ```text
//! operation  entered with                                     stack    left with
//! control    rax = CUR = control context; own context saved   slow     tail
//! park       the same, at home                                slow     on the program's stack
//! leave      the guest's registers, rax in S0, RIP in S1      slow     tail, or in a twin
//! restore    rax = CUR = a context, its registers in a frame  none     all the program's registers
//! tail       rax = next context, all else dead                any      CUR = rax, jmp [rax + RIP]
//! ```
//!
//! ```text
//!  program's stack          slot of the thread (layout::area)
//!  ┌────────────┐           0x0800 frame: captured registers   <- leave writes, restore reads
//!  │ frames     │           0x1000 XSAVE image                 <- leave writes, restore reads
//!  │ red zone   │ <- rsp    0x4000 slow stack, 16 KiB          <- rsp in control, park, leave
//!  └────────────┘           0x8000 signal stack, 32 KiB
//! ```
//!
//! Unwinding: nothing here can be unwound but `labels::signal_return_address`, whose frame
//! description finds the interrupted registers in the signal frame. Everywhere else a signal
//! handler asks `labels::is_tail` and its kin where it interrupted, and shows the program at its
//! yield.

use core::arch::global_asm;
use core::mem::offset_of;
use runtime_abi::{area as a, context as c};

use crate::layout::area::{Area, FRAME, Frame, XSAVE};
use crate::layout::context::Context;
use crate::sys;

/// Flags of a program's that `sahf` does not load: direction, nested task, alignment check,
/// identification. Hardly ever set.
pub(super) const NOT_BY_SAHF: u32 = 1 << 10 | 1 << 14 | 1 << 18 | 1 << 21;

/// Where a home's slot has a general register of its captured context.
macro_rules! general {
    ($number:expr) => {
        FRAME + offset_of!(Frame, general) + 8 * $number
    };
}
pub(super) use general;

/// Loads the flags of arithmetic, which ecx holds as `pushfq` stores them; changes eax.
macro_rules! flags_from_ecx {
    () => {
        // Behind the addition the overflow flag is 1 if that was.
        "mov eax, ecx; shl eax, 8; shr ecx, 11; and cl, 1; mov al, cl; add al, 0x7f; sahf"
    };
}
pub(super) use flags_from_ecx;

global_asm!(
    ".globl gleaner_leave",
    ".hidden gleaner_leave",
    "gleaner_leave:",
    "mov rax, gs:[{CUR}]",
    "mov rax, [rax + {HOME}]",
    "mov [rax + {RCX}], rcx",
    "mov [rax + {RDX}], rdx",
    "mov [rax + {RBX}], rbx",
    "mov [rax + {RSP}], rsp",
    "mov [rax + {RBP}], rbp",
    "mov [rax + {RSI}], rsi",
    "mov [rax + {RDI}], rdi",
    "mov [rax + {R8}], r8",
    "mov [rax + {R9}], r9",
    "mov [rax + {R10}], r10",
    "mov [rax + {R11}], r11",
    "mov [rax + {R12}], r12",
    "mov [rax + {R13}], r13",
    "mov [rax + {R14}], r14",
    "mov [rax + {R15}], r15",
    "mov rcx, gs:[{S0}]",
    "mov [rax + {RAX}], rcx",
    "mov rcx, gs:[{S1}]",
    "mov [rax + {RIP}], rcx",
    "mov rsp, gs:[{SLOW_STACK}]",
    "pushfq",
    "pop qword ptr [rax + {FLAGS}]",
    "cld",
    "jmp gleaner_across", // which comes back, unless the guest stays aboard
    ".globl gleaner_leave_home",
    ".hidden gleaner_leave_home",
    "gleaner_leave_home:",
    "mov rbx, rax",
    "mov eax, dword ptr gs:[{XSAVE_MASK}]",
    "mov edx, dword ptr gs:[{XSAVE_MASK} + 4]",
    "cmp dword ptr gs:[{COMPACT}], 0",
    "je 1f",
    "xsavec64 [rbx + {XSAVE}]",
    "jmp 2f",
    "1: xsave64 [rbx + {XSAVE}]",
    "2: mov rdi, gs:[{SELF}]",
    "call {leave}",
    "jmp gleaner_tail",
    "",
    ".globl gleaner_control",
    ".hidden gleaner_control",
    "gleaner_control:",
    "mov rsp, gs:[{SLOW_STACK}]",
    "mov rdi, gs:[{SELF}]",
    "call {control}",
    ".globl gleaner_tail",
    ".hidden gleaner_tail",
    "gleaner_tail:",
    "cmp dword ptr gs:[{DEFERRED}], 0",
    ".globl gleaner_tail_open",
    ".hidden gleaner_tail_open",
    "gleaner_tail_open:", // from here on a signal finds the primary at its yield
    "jne 3f",
    "mov gs:[{CUR}], rax",
    "jmp [rax + {CRIP}]",
    // A redirected context leads here: the thread goes back to its own context. No other one has
    // begun.
    ".globl gleaner_back",
    ".hidden gleaner_back",
    "gleaner_back:",
    "mov rax, gs:[{OWN}]",
    "mov gs:[{CUR}], rax",
    "jmp [rax + {CRIP}]",
    ".globl gleaner_tail_end",
    ".hidden gleaner_tail_end",
    "gleaner_tail_end:",
    // Counters come here on the yielding program's stack, with its red zone below.
    "3: mov rsp, gs:[{SLOW_STACK}]",
    "mov rdi, gs:[{SELF}]",
    "mov rsi, rax",
    "call {deferred}",
    "jmp gleaner_tail",
    "",
    // Home again: the stack is the program's. Signals are let in, and find it at its yield until it
    // has gone on (`Area::parks`).
    ".globl gleaner_parked",
    ".hidden gleaner_parked",
    "gleaner_parked:",
    "mov rsi, gs:[{SELF}]",
    "add rsi, {PARKED_MASK}",
    "xor edx, edx",
    "mov edi, {SIG_SETMASK}",
    "mov r10d, 8",
    "mov eax, {SIGPROCMASK}",
    "syscall",
    "4: mov rax, gs:[{OWN}]",
    // What its yield leaves in the slots: handlers shall find it. All other registers are dead.
    "mov rcx, [rax + {SLOT} + 8 * 1]",
    "mov rdx, [rax + {SLOT} + 8 * 2]",
    "mov rbx, [rax + {SLOT} + 8 * 3]",
    "mov rbp, [rax + {SLOT} + 8 * 5]",
    "mov rsi, [rax + {SLOT} + 8 * 6]",
    "mov rdi, [rax + {SLOT} + 8 * 7]",
    "mov r8, [rax + {SLOT} + 8 * 8]",
    "mov r9, [rax + {SLOT} + 8 * 9]",
    "mov r10, [rax + {SLOT} + 8 * 10]",
    "mov r12, [rax + {SLOT} + 8 * 12]",
    "mov r13, [rax + {SLOT} + 8 * 13]",
    "mov r14, [rax + {SLOT} + 8 * 14]",
    "mov r15, [rax + {SLOT} + 8 * 15]",
    "mov gs:[{CUR}], rax",
    // At home no context leads back, whichever primary it was aboard.
    "mov r11, [rax + {CRIP}]",
    "cmp r11, [rax + {BACK}]",
    "jne 7f",
    "mov r11, [rax + {STRAIGHT}]",
    "7: jmp r11",
    // No signal may find it on our stack, which is too small for handlers. So signals are blocked
    // before.
    ".globl gleaner_park",
    ".hidden gleaner_park",
    "gleaner_park:",
    "mov rdx, gs:[{SELF}]",
    "add rdx, {PARKED_MASK}",
    "lea rsi, [rip + 8f]",
    "mov edi, {SIG_SETMASK}",
    "mov r10d, 8",
    "mov eax, {SIGPROCMASK}",
    "syscall",
    "test eax, eax",
    "jne 4b", // it may not: so it goes on at home
    ".globl gleaner_park_end",
    ".hidden gleaner_park_end",
    "gleaner_park_end:",
    "mov rsp, gs:[{SLOW_STACK}]",
    "mov rdi, gs:[{SELF}]",
    "call {park}",
    "mov rsp, rax",
    "jmp gleaner_parked",
    ".balign 8",
    "8: .quad -1",
    "",
    // A leave at home: only where the guest flag was read aboard, and the rest runs at home.
    ".globl gleaner_stay",
    ".hidden gleaner_stay",
    "gleaner_stay:",
    "mov rax, gs:[{S0}]",
    "jmp gs:[{S1}]",
    "",
    ".globl gleaner_restore",
    ".hidden gleaner_restore",
    "gleaner_restore:",
    "mov rbx, [rax + {HOME}]",
    "mov rcx, [rbx + {YIELD_RIP}]",
    "mov [rax + {CRIP}], rcx",
    "mov rcx, [rbx + {FS0}]",
    "mov gs:[{S0}], rcx",
    "mov rcx, [rbx + {FS1}]",
    "mov gs:[{S1}], rcx",
    "mov rcx, [rbx + {FS2}]",
    "mov gs:[{S2}], rcx",
    "mov rcx, [rbx + {RIP}]",
    "mov gs:[{RESUME}], rcx",
    "mov eax, dword ptr gs:[{XSAVE_MASK}]",
    "mov edx, dword ptr gs:[{XSAVE_MASK} + 4]",
    "xrstor64 [rbx + {XSAVE}]",
    // At home a handler may come here, on the stack that rsp points to: so flags get on without
    // ours, if they are those of arithmetic.
    "mov ecx, dword ptr [rbx + {FLAGS}]",
    "test ecx, {NOT_BY_SAHF}",
    "jne 8f",
    "cld",
    flags_from_ecx!(),
    "9: mov rax, [rbx + {RAX}]",
    "mov rcx, [rbx + {RCX}]",
    "mov rdx, [rbx + {RDX}]",
    "mov rsp, [rbx + {RSP}]",
    "mov rbp, [rbx + {RBP}]",
    "mov rsi, [rbx + {RSI}]",
    "mov rdi, [rbx + {RDI}]",
    "mov r8, [rbx + {R8}]",
    "mov r9, [rbx + {R9}]",
    "mov r10, [rbx + {R10}]",
    "mov r11, [rbx + {R11}]",
    "mov r12, [rbx + {R12}]",
    "mov r13, [rbx + {R13}]",
    "mov r14, [rbx + {R14}]",
    "mov r15, [rbx + {R15}]",
    "mov rbx, [rbx + {RBX}]",
    "jmp gs:[{RESUME}]",
    "8: mov rsp, gs:[{SLOW_STACK}]",
    "push qword ptr [rbx + {FLAGS}]",
    "popfq",
    "jmp 9b",
    ".globl gleaner_restore_end",
    ".hidden gleaner_restore_end",
    "gleaner_restore_end:",
    "",
    // A handler of the primary's returns here: its frame is at rsp - 8, and the kernel takes it
    // from there.
    ".globl gleaner_signal_return",
    ".hidden gleaner_signal_return",
    ".cfi_startproc",
    ".cfi_signal_frame",
    // CFA: the interrupted rsp, at offset 160 of the ucontext that rsp points to; rip at 168, the
    // others in its order.
    ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06",
    ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01",
    ".cfi_escape 0x10, 7, 3, 0x77, 0xa0, 0x01",
    ".cfi_escape 0x10, 8, 2, 0x77, 0x28",
    ".cfi_escape 0x10, 9, 2, 0x77, 0x30",
    ".cfi_escape 0x10, 10, 2, 0x77, 0x38",
    ".cfi_escape 0x10, 11, 3, 0x77, 0xc0, 0x00",
    ".cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0x00",
    ".cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0x00",
    ".cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0x00",
    ".cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0x00",
    ".cfi_escape 0x10, 5, 3, 0x77, 0xe8, 0x00",
    ".cfi_escape 0x10, 4, 3, 0x77, 0xf0, 0x00",
    ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00",
    ".cfi_escape 0x10, 3, 3, 0x77, 0x80, 0x01",
    ".cfi_escape 0x10, 1, 3, 0x77, 0x88, 0x01",
    ".cfi_escape 0x10, 0, 3, 0x77, 0x90, 0x01",
    ".cfi_escape 0x10, 2, 3, 0x77, 0x98, 0x01",
    "nop", // unwinders look up the byte before a return address
    "gleaner_signal_return:",
    "lea rdi, [rsp - 8]",
    "mov rbx, rsp", // its own registers are all in the frame
    "call {returned}",
    "mov rsp, rbx",
    "mov eax, 15",
    "syscall",
    "ud2",
    ".cfi_endproc",
    "",
    // As every libc has it, byte by byte: unwinders know it.
    ".globl gleaner_restorer",
    ".hidden gleaner_restorer",
    "gleaner_restorer:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05",
    "",
    // A thread begins: its area in rdi. No frame of ours stays on its stack.
    ".globl gleaner_thread_start",
    ".hidden gleaner_thread_start",
    "gleaner_thread_start:",
    "sub rsp, 8",
    "call {begin}",
    "add rsp, 8",
    "mov rdi, rdx",
    "jmp rax",
    SELF = const a::SELF, CUR = const a::CUR,
    S0 = const a::SCRATCH[0], S1 = const a::SCRATCH[1], S2 = const a::SCRATCH[2],
    SLOW_STACK = const offset_of!(Area, switching.slow_stack), RESUME = const offset_of!(Area, switching.resume),
    DEFERRED = const offset_of!(Area, switching.deferred), COMPACT = const offset_of!(Area, switching.compact),
    XSAVE_MASK = const offset_of!(Area, switching.xsave_mask),
    SLOT = const c::slot(0),
    PARKED_MASK = const offset_of!(Area, thread.parked_mask),
    SIG_SETMASK = const sys::SIG_SETMASK, SIGPROCMASK = const sys::nr::RT_SIGPROCMASK,
    NOT_BY_SAHF = const NOT_BY_SAHF,
    OWN = const a::OWN,
    CRIP = const c::RIP, STRAIGHT = const offset_of!(Context, straight), BACK = const offset_of!(Context, back), HOME = const offset_of!(Context, home), XSAVE = const XSAVE,
    RAX = const general!(0), RCX = const general!(1), RDX = const general!(2), RBX = const general!(3),
    RSP = const general!(4), RBP = const general!(5), RSI = const general!(6), RDI = const general!(7),
    R8 = const general!(8), R9 = const general!(9), R10 = const general!(10), R11 = const general!(11),
    R12 = const general!(12), R13 = const general!(13), R14 = const general!(14), R15 = const general!(15),
    RIP = const FRAME + offset_of!(Frame, rip), FLAGS = const FRAME + offset_of!(Frame, flags),
    FS0 = const FRAME + offset_of!(Frame, scratch), FS1 = const FRAME + offset_of!(Frame, scratch) + 8,
    FS2 = const FRAME + offset_of!(Frame, scratch) + 16,
    YIELD_RIP = const FRAME + offset_of!(Frame, yield_rip),
    leave = sym crate::switching::ring::leave, control = sym crate::switching::ring::control, park = sym crate::switching::park::park,
    deferred = sym crate::switching::ring::deferred, returned = sym crate::signals::entry::handler_returned,
    begin = sym crate::interpose::threads::begin,
);
