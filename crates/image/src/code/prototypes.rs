//! What well-known functions of the C library are passed and return: only integers and pointers,
//! and how many.
//!
//! Of a call to another module the ABI says only what it may pass at the most: eight vectors, and
//! registers that nobody has used for an argument in thirty years. These names say more. To add
//! one: its line, sorted, if its prototype is fixed by a standard and holds no floating-point
//! number and no structure passed or returned by value.

use crate::code::regs::{RAX, RCX, RDI, RDX, RSI, RegSet, abi};

/// What a call may read and what it leaves meaning in, beside callee-saved registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    pub arguments: RegSet,
    pub results: RegSet,
}

impl Convention {
    /// All that the ABI allows.
    pub const ANY: Self = Self { arguments: abi::ARGUMENTS, results: abi::RETURNED };

    /// Of the function of this name in whatever module it is found.
    pub fn of(name: &[u8]) -> Self {
        let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
        let Ok(index) = KNOWN.binary_search_by(|(known, _)| known.as_bytes().cmp(name)) else {
            return Self::ANY;
        };
        let passed = match KNOWN[index].1 {
            Passed::Integers(count) => integers(count),
            Passed::Variadic => abi::ARGUMENTS,
        };
        Self { arguments: passed, results: RegSet::general(RAX) }
    }
}

/// The first `count` arguments.
fn integers(count: usize) -> RegSet {
    [RDI, RSI, RDX, RCX, 8, 9].into_iter().take(count).fold(RegSet::EMPTY, |set, r| set | RegSet::general(r))
}

#[derive(Clone, Copy)]
enum Passed {
    Integers(usize),
    /// Anything may follow; only its result is known.
    Variadic,
}

use Passed::{Integers, Variadic};

const KNOWN: &[(&str, Passed)] = &[
    ("__errno_location", Integers(0)),
    ("__fprintf_chk", Variadic),
    ("__isoc23_strtol", Integers(3)),
    ("__isoc23_strtoul", Integers(3)),
    ("__isoc23_strtoull", Integers(3)),
    ("__memcpy_chk", Integers(4)),
    ("__memset_chk", Integers(4)),
    ("__printf_chk", Variadic),
    ("__snprintf_chk", Variadic),
    ("__stack_chk_fail", Integers(0)),
    ("abort", Integers(0)),
    ("bcmp", Integers(3)),
    ("calloc", Integers(2)),
    ("clock_gettime", Integers(2)),
    ("close", Integers(1)),
    ("exit", Integers(1)),
    ("fclose", Integers(1)),
    ("fflush", Integers(1)),
    ("fopen", Integers(2)),
    ("fprintf", Variadic),
    ("fputc", Integers(2)),
    ("fputs", Integers(2)),
    ("fread", Integers(4)),
    ("free", Integers(1)),
    ("fstat", Integers(2)),
    ("ftruncate", Integers(2)),
    ("fwrite", Integers(4)),
    ("getenv", Integers(1)),
    ("getpid", Integers(0)),
    ("gettimeofday", Integers(2)),
    ("lseek", Integers(3)),
    ("madvise", Integers(3)),
    ("malloc", Integers(1)),
    ("memchr", Integers(3)),
    ("memcmp", Integers(3)),
    ("memcpy", Integers(3)),
    ("memmove", Integers(3)),
    ("memset", Integers(3)),
    ("mmap", Integers(6)),
    ("mmap64", Integers(6)),
    ("mprotect", Integers(3)),
    ("munmap", Integers(2)),
    ("nanosleep", Integers(2)),
    ("open", Integers(3)),
    ("open64", Integers(3)),
    ("perror", Integers(1)),
    ("posix_memalign", Integers(3)),
    ("pread", Integers(4)),
    ("pread64", Integers(4)),
    ("printf", Variadic),
    ("pthread_mutex_lock", Integers(1)),
    ("pthread_mutex_unlock", Integers(1)),
    ("putchar", Integers(1)),
    ("puts", Integers(1)),
    ("pwrite", Integers(4)),
    ("pwrite64", Integers(4)),
    ("qsort", Integers(4)),
    ("read", Integers(3)),
    ("realloc", Integers(2)),
    ("sched_yield", Integers(0)),
    ("snprintf", Variadic),
    ("sprintf", Variadic),
    ("stat", Integers(2)),
    ("strchr", Integers(2)),
    ("strcmp", Integers(2)),
    ("strcpy", Integers(2)),
    ("strdup", Integers(1)),
    ("strlen", Integers(1)),
    ("strncmp", Integers(3)),
    ("strncpy", Integers(3)),
    ("strrchr", Integers(2)),
    ("strstr", Integers(2)),
    ("strtol", Integers(3)),
    ("strtoll", Integers(3)),
    ("strtoul", Integers(3)),
    ("strtoull", Integers(3)),
    ("time", Integers(1)),
    ("usleep", Integers(1)),
    ("write", Integers(3)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted, each once");
        assert_eq!(Convention::of(b"malloc").arguments, RegSet::general(RDI));
        assert_eq!(Convention::of(b"memcpy@GLIBC_2.14").results, RegSet::general(RAX));
        assert_eq!(Convention::of(b"sin"), Convention::ANY);
        assert_eq!(Convention::of(b"printf").arguments, abi::ARGUMENTS);
    }
}
