//! The functions that the compiler calls by itself, and the unwinder's name that `core` mentions.

/// Defines them in the library that says this. They are hidden, so that they never become the
/// program's.
#[macro_export]
macro_rules! memory_functions {
    () => {
        ::core::arch::global_asm!(
            ".macro gleaner_hidden name",
            ".globl \\name",
            ".hidden \\name",
            ".type \\name, @function",
            "\\name:",
            ".endm",
            // Named by the unwind tables of `core`, which are not read: nothing here unwinds.
            "gleaner_hidden rust_eh_personality",
            "ud2",
            "gleaner_hidden memcpy",
            "mov rax, rdi",
            "mov rcx, rdx",
            "rep movsb",
            "ret",
            "gleaner_hidden memmove",
            "mov rax, rdi",
            "mov rcx, rdx",
            "mov r8, rdi",
            "sub r8, rsi",
            "cmp r8, rdx",
            "jb 2f", // the target begins inside the source: backwards
            "rep movsb",
            "ret",
            "2: lea rdi, [rdi + rdx - 1]",
            "lea rsi, [rsi + rdx - 1]",
            "std",
            "rep movsb",
            "cld",
            "ret",
            "gleaner_hidden memset",
            "mov r8, rdi",
            "mov eax, esi",
            "mov rcx, rdx",
            "rep stosb",
            "mov rax, r8",
            "ret",
            "gleaner_hidden bcmp",
            "gleaner_hidden memcmp",
            "xor eax, eax",
            "xor ecx, ecx",
            "3: cmp rcx, rdx",
            "je 4f",
            "movzx eax, byte ptr [rdi + rcx]",
            "movzx r8d, byte ptr [rsi + rcx]",
            "inc rcx",
            "sub eax, r8d",
            "je 3b",
            "4: ret",
            "gleaner_hidden strlen",
            "xor eax, eax",
            "5: cmp byte ptr [rdi + rax], 0",
            "je 6f",
            "inc rax",
            "jmp 5b",
            "6: ret",
            ".purgem gleaner_hidden",
        );
    };
}
