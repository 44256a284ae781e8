//! A guest that met a leave may stay aboard where the call, jump or return that follows leads to a
//! twin: of the same program, or of a library of its that has twins, too.
//!
//! ```text
//! ret                          the caller is a twin: the instruction runs as it is; the caller
//!                              is an original whose place is known in its twin: there
//! call/jmp register            leads to an original whose entry is a jump to its twin: likewise
//! call/jmp [memory]            likewise, but what was looked at is what is gone on with: memory
//!                              may change meanwhile
//! ```
//!
//! An indirect jump through no known table, as an interpreter's from one operation to the next,
//! leads into the midst of an original: to a label, which the table of entries has, too.
//!
//! All else goes home: system calls, direct calls of what has no twin, instructions with prefixes
//! that change the address.
//!
//! From [`labels::is_across`] on the frame holds the guest's registers as they were at the leave,
//! and its vectors are untouched. So a signal or a fault there finds the guest in front of the
//! instruction that follows the leave.
//!
//! [`labels::is_across`]: crate::switching::labels::is_across

use crate::layout::area::{Area, FRAME, Frame};
use crate::layout::region::Region;
use crate::switching::switch::{NOT_BY_SAHF, flags_from_ecx, general};
use crate::switching::twin_entries::{HASH, INDEX_BITS, PROBES};
use crate::switching::twin_pages::{ORIGINAL, TWIN};
use core::arch::global_asm;
use core::mem::offset_of;
use runtime_abi::area as a;

/// Bytes of code that are looked at behind an address: they lie in its page.
const LOOKED_AT: usize = 16;
/// What a guest's budget is charged for the way through here, in cycles: capturing and giving back
/// all registers takes most of it. Uncharged, an interpreter whose every operation comes through
/// here would be aboard many times as long as its budget says.
const CYCLES: usize = 100;

/// Compares what the table at r11 has of the page that rdx points to with that of a page of twins,
/// which eax holds afterwards; ecx has the table's.
macro_rules! look_for_twin {
    () => {
        "mov ecx, edx; mov rax, rdx; shr ecx, 12; shr rax, 32; \
         mov ecx, dword ptr [r11 + 4 * rcx]; lea eax, [4 * rax + {TWIN}]; cmp eax, ecx"
    };
}

global_asm!(
    // Entered with the slot of the guest's home in rax, on the slow stack; the frame is whole but
    // for vectors. Where the guest has to go home it goes on in `gleaner_leave_home`, with rax as
    // it was.
    ".globl gleaner_across",
    ".hidden gleaner_across",
    "gleaner_across:",
    // One that came before this is delivered behind a leave.
    "cmp dword ptr gs:[{DEFERRED}], 0",
    "jne 99f",
    "mov rbx, rax",
    "mov rsi, [rbx + {RIP}]",
    // rsi: the instruction; edi: its REX byte, or 0.
    "xor edi, edi",
    "10: movzx eax, byte ptr [rsi]",
    "cmp al, 0xf2", // bnd
    "je 11f",
    "cmp al, 0xf3", // of a return
    "je 11f",
    "cmp al, 0x3e", // notrack
    "jne 12f",
    "11: inc rsi",
    "jmp 10b",
    "12: mov ecx, eax",
    "and ecx, 0xf0",
    "cmp ecx, 0x40",
    "jne 13f",
    "mov edi, eax",
    "inc rsi",
    "movzx eax, byte ptr [rsi]",
    "13: cmp al, 0xff",
    "je 20f",
    "cmp al, 0xc3",
    "je 14f",
    "cmp al, 0xc2",
    "jne 98f",
    // A return: r10 tells that the instruction itself runs; r8 keeps which one it is.
    "14: mov r8d, eax",
    "mov rdx, [rbx + {RSP}]",
    "mov rdx, [rdx]",
    "xor r9d, r9d",
    "xor r10d, r10d",
    "jmp 40f",
    // ff /2 is a call, ff /4 a jump.
    "20: movzx eax, byte ptr [rsi + 1]",
    "lea r8, [rsi + 2]", // the next byte
    "mov r9d, eax",
    "shr r9d, 3",
    "and r9d, 7",
    "cmp r9d, 2",
    "je 21f",
    "cmp r9d, 4",
    "jne 98f",
    "21: mov edx, eax",
    "shr edx, 6", // mod
    "and eax, 7", // rm
    "mov ecx, edi",
    "and ecx, 1",
    "shl ecx, 3", // REX.B
    "cmp edx, 3",
    "jne 22f",
    "or eax, ecx",
    "mov rdx, [rbx + {GENERAL} + 8 * rax]",
    "xor r10d, r10d",
    "jmp 40f",
    "22: cmp eax, 4",
    "je 24f",
    "cmp eax, 5",
    "jne 23f",
    "test edx, edx",
    "jne 23f",
    "movsxd r10, dword ptr [r8]", // relative to the instruction's end
    "add r8, 4",
    "add r10, r8",
    "jmp 30f",
    "23: or eax, ecx",
    "mov r10, [rbx + {GENERAL} + 8 * rax]",
    "jmp 28f",
    "24: movzx eax, byte ptr [r8]", // base, index and scale
    "inc r8",
    "mov r11d, eax",
    "and r11d, 7",
    "cmp r11d, 5",
    "jne 25f",
    "test edx, edx",
    "jne 25f",
    "movsxd r10, dword ptr [r8]", // no base
    "add r8, 4",
    "jmp 26f",
    "25: or r11d, ecx",
    "mov r10, [rbx + {GENERAL} + 8 * r11]",
    "26: mov ecx, eax",
    "shr ecx, 6", // scale
    "shr eax, 3",
    "and eax, 7",
    "mov r11d, edi",
    "and r11d, 2",
    "shl r11d, 2", // REX.X
    "or eax, r11d",
    "cmp eax, 4",
    "je 28f", // no index
    "mov r11, [rbx + {GENERAL} + 8 * rax]",
    "shl r11, cl",
    "add r10, r11",
    "28: cmp edx, 1",
    "jb 30f",
    "jne 29f",
    "movsx rcx, byte ptr [r8]",
    "inc r8",
    "add r10, rcx",
    "jmp 30f",
    "29: movsxd rcx, dword ptr [r8]",
    "add r8, 4",
    "add r10, rcx",
    "30: mov rdx, [r10]",
    "mov r10d, 1",
    // rdx: where it leads; r9: 0, 2 or 4 for a return, call or jump; r8: behind a call.
    "40: mov r11, gs:[{REGION}]",
    "mov r11, [r11 + {TWIN_PAGES}]",
    look_for_twin!(),
    "je 50f",
    "add eax, {ORIGINAL} - {TWIN}",
    "cmp eax, ecx",
    "jne 98f",
    // An original of a file with twins: its entry is the jump to its twin.
    "mov ecx, edx",
    "and ecx, 0xfff",
    "cmp ecx, 4096 - {LOOKED_AT}",
    "ja 98f",
    "mov rsi, rdx",
    "cmp dword ptr [rdx], 0xfa1e0ff3", // endbr64
    "jne 41f",
    "add rdx, 4",
    "41: cmp byte ptr [rdx], 0xe9",
    "jne 60f",
    "movsxd rax, dword ptr [rdx + 1]",
    "lea rdx, [rdx + rax + 5]",
    look_for_twin!(),
    "jne 60f",
    // It stays aboard.
    "50: sub dword ptr gs:[{BUDGET}], {CYCLES}",
    "test r10d, r10d",
    "je 51f",
    "mov gs:[{S1}], rdx",
    "mov gs:[{RESUME}], r8",
    "51: mov ecx, dword ptr [rbx + {FLAGS}]",
    "test ecx, {NOT_BY_SAHF}",
    "jne 55f",
    flags_from_ecx!(),
    // No flags are changed from here on.
    "52: lea r11, [2 * r9 + r10]", // 5: a call that is made here
    "mov rsp, [rbx + {RSP}]",
    "mov rdx, [rbx + {RDX}]",
    "mov rsi, [rbx + {RSI}]",
    "mov rdi, [rbx + {RDI}]",
    "mov r8, [rbx + {R8}]",
    "mov r9, [rbx + {R9}]",
    "mov r10, [rbx + {R10}]",
    "lea rcx, [r11 - 5]",
    "jrcxz 53f",
    "lea rcx, [r11 - 1]", // 1: a return that is made here
    "jrcxz 54f",
    "mov rcx, [rbx + {RCX}]",
    "mov r11, [rbx + {R11}]",
    "mov rbx, [rbx + {RBX}]",
    "mov rax, gs:[{S0}]",
    "jmp gs:[{S1}]",
    "53: mov rcx, [rbx + {RCX}]",
    "mov r11, [rbx + {R11}]",
    "mov rbx, [rbx + {RBX}]",
    "mov rax, gs:[{S0}]",
    "push qword ptr gs:[{RESUME}]",
    "jmp gs:[{S1}]",
    "54: mov rcx, [rbx + {RCX}]",
    "mov r11, [rbx + {R11}]",
    "mov rbx, [rbx + {RBX}]",
    "mov rax, gs:[{S0}]",
    "lea rsp, [rsp + 8]",
    "jmp gs:[{S1}]",
    // An original whose entry is no jump, as that of a function that begins with a loop; or a place
    // inside of one.
    "60: test r9d, r9d",
    "jne 61f",
    "cmp r8b, 0xc3", // one that takes its arguments from the stack is rare
    "jne 98f",
    "61: mov r11, gs:[{REGION}]",
    "mov r11, [r11 + {TWIN_ENTRIES}]",
    "movabs rax, {HASH}",
    "imul rax, rsi",
    "shr rax, 64 - {INDEX_BITS}",
    "shl rax, 4",
    "add r11, rax",
    "mov ecx, {PROBES}",
    "62: mov rax, [r11]",
    "cmp rax, rsi",
    "je 63f",
    "test rax, rax",
    "je 98f",
    "add r11, 16",
    "dec ecx",
    "jne 62b",
    "jmp 98f",
    "63: mov rdx, [r11 + 8]",
    "mov r10d, 1",
    "jmp 50b",
    "55: push qword ptr [rbx + {FLAGS}]",
    "popfq",
    "jmp 52b",
    ".globl gleaner_across_end",
    ".hidden gleaner_across_end",
    "gleaner_across_end:",
    "98: mov rax, rbx",
    "99: jmp gleaner_leave_home",
    S0 = const a::SCRATCH[0], S1 = const a::SCRATCH[1], BUDGET = const a::BUDGET, CYCLES = const CYCLES,
    DEFERRED = const offset_of!(Area, switching.deferred), RESUME = const offset_of!(Area, switching.resume),
    REGION = const offset_of!(Area, region), TWIN_PAGES = const offset_of!(Region, twin_pages),
    TWIN_ENTRIES = const offset_of!(Region, twin_entries), HASH = const HASH, INDEX_BITS = const INDEX_BITS, PROBES = const PROBES,
    TWIN = const TWIN, ORIGINAL = const ORIGINAL, LOOKED_AT = const LOOKED_AT,
    NOT_BY_SAHF = const NOT_BY_SAHF,
    GENERAL = const general!(0),
    RCX = const general!(1), RDX = const general!(2), RBX = const general!(3), RSP = const general!(4),
    RSI = const general!(6), RDI = const general!(7), R8 = const general!(8), R9 = const general!(9),
    R10 = const general!(10), R11 = const general!(11),
    RIP = const FRAME + offset_of!(Frame, rip), FLAGS = const FRAME + offset_of!(Frame, flags),
);
