//! What functions of other modules are passed and leave behind, by name: those of the C and POSIX
//! standards, whose types are fixed there and hold integers and pointers only. Of all others the
//! ABI says what they may be passed at the most.
//!
//! To add one: its name, with those that are passed as many. None that takes or gives back a
//! floating-point number, or a structure by value.

use crate::liveness::set::{ARGUMENTS, RESERVED, RESULTS, Set};

/// What a call reads, and what it leaves of use in registers that it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Convention {
    pub(crate) passed: Set,
    pub(crate) left: Set,
}

const RAX: Set = 1;
/// rdi, rsi, rdx, rcx, r8, r9, in the order that arguments take them.
const IN_ORDER: [u32; 6] = [7, 6, 2, 1, 8, 9];

impl Convention {
    /// Of any function: what the ABI allows.
    pub(crate) const ANY: Self = Self { passed: ARGUMENTS, left: RESULTS };

    pub(crate) fn of(name: &[u8]) -> Self {
        let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
        let is_it = |known: &&str| known.as_bytes() == name;
        if VARIADIC.iter().any(is_it) {
            return Self { passed: ARGUMENTS, left: RAX };
        }
        let found = FIXED.iter().position(|known| known.split_ascii_whitespace().any(|known| is_it(&known)));
        let Some(count) = found else { return Self::ANY };
        let passed = IN_ORDER[..count].iter().fold(RESERVED, |set, register| set | 1 << register);
        // How many vector registers are passed stands in al, where there might be more arguments.
        let also = if name.starts_with(b"open") { RAX } else { 0 };
        Self { passed: passed | also, left: RAX }
    }
}

/// Those that give back an integer or nothing, but may be passed anything.
const VARIADIC: &[&str] = &[
    "__fprintf_chk",
    "__printf_chk",
    "__snprintf_chk",
    "__sprintf_chk",
    "fprintf",
    "printf",
    "snprintf",
    "sprintf",
];

/// By how many they are passed.
const FIXED: [&str; 7] = [
    "__errno_location __stack_chk_fail abort getpid sched_yield",
    "close exit fclose fflush free getenv malloc perror pthread_mutex_lock pthread_mutex_unlock \
     putchar puts strdup strlen time usleep",
    "calloc clock_gettime fopen fputc fputs fstat ftruncate gettimeofday munmap nanosleep realloc stat strchr strcmp \
     strcpy strrchr strstr",
    "__isoc23_strtol __isoc23_strtoll __isoc23_strtoul __isoc23_strtoull bcmp lseek madvise memchr memcmp memcpy \
     memmove memset mprotect open open64 posix_memalign read strncmp strncpy strtol strtoll strtoul strtoull write",
    "__memcpy_chk __memset_chk fread fwrite pread pread64 pwrite pwrite64 qsort",
    "",
    "mmap mmap64",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standards_say_what_is_passed() {
        let general = |numbers: &[u32]| numbers.iter().fold(RESERVED, |set, number| set | 1 << number);
        assert_eq!(Convention::of(b"malloc"), Convention { passed: general(&[7]), left: RAX });
        assert_eq!(Convention::of(b"memcpy@GLIBC_2.14").passed, general(&[7, 6, 2]));
        assert_eq!(Convention::of(b"open").passed, general(&[7, 6, 2, 0]));
        assert_eq!(Convention::of(b"printf"), Convention { passed: ARGUMENTS, left: RAX });
        for unknown in [&b"pow"[..], b"mallocx", b"", b"ldiv"] {
            assert_eq!(Convention::of(unknown), Convention::ANY);
        }
    }
}
