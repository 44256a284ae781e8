//! What twins jump to when a chunk is full.
//!
//! It comes from anywhere in the program: between any two instructions, with every register and
//! flag in use, and perhaps with something in the 128 bytes below the stack pointer. RCX is in the
//! thread's word already; everything else is kept here.
//!
//! ```text
//! old rsp ┌──────────────────┐
//!         │ 128: red zone    │
//!         │ 8: flags         │
//!         │ 72: rax … r11,   │ those that a function may change, and rbp
//!         │ 8: rbp           │
//!         │ 256: xmm0 … xmm15│ at a multiple of 16; this library uses no wider ones
//! rsp     └──────────────────┘
//! ```

use super::chunks;
use super::words::RETURN;
use core::arch::naked_asm;

/// # Safety
/// Only twins jump here, with the word [`RETURN`] set.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn full() {
    naked_asm!(
        "lea rsp, [rsp - 128]",
        "pushfq",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbp",
        "mov rbp, rsp",
        "cld",
        "sub rsp, 256",
        "and rsp, -16",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "movups [rsp + 128], xmm8",
        "movups [rsp + 144], xmm9",
        "movups [rsp + 160], xmm10",
        "movups [rsp + 176], xmm11",
        "movups [rsp + 192], xmm12",
        "movups [rsp + 208], xmm13",
        "movups [rsp + 224], xmm14",
        "movups [rsp + 240], xmm15",
        "call {exchange}",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "movups xmm8, [rsp + 128]",
        "movups xmm9, [rsp + 144]",
        "movups xmm10, [rsp + 160]",
        "movups xmm11, [rsp + 176]",
        "movups xmm12, [rsp + 192]",
        "movups xmm13, [rsp + 208]",
        "movups xmm14, [rsp + 224]",
        "movups xmm15, [rsp + 240]",
        "mov rsp, rbp",
        "pop rbp",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "popfq",
        "lea rsp, [rsp + 128]",
        "jmp qword ptr fs:[{to}]",
        exchange = sym exchange,
        to = const RETURN,
    )
}

/// Hands over the thread's chunk and takes another.
pub(super) extern "C" fn exchange() {
    let before = chunks::block_signals();
    chunks::hand_over();
    chunks::take();
    chunks::unblock_signals(before);
}
