//! What well-known functions of other modules take and give, by name: so much is the ABI of their declared types.

use crate::regs::{RAX, RCX, RDI, RDX, RSI, RegSet, abi};

/// What a call reads and what it leaves a result in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prototype {
    pub reads: RegSet,
    pub results: RegSet,
}

/// Of a function nothing is known of.
pub const ANY: Prototype = Prototype { reads: abi::ARGUMENTS, results: abi::RETURNED };

/// r10 and r11, which linkage stubs may use on the way.
const ON_THE_WAY: RegSet = RegSet(1 << 10 | 1 << 11);

/// Names and how many integers or pointers they take; all give back an integer, a pointer, two of them, or nothing.
const INTEGERS: &[(u32, &str)] = &[
    (
        0,
        "__errno_location abort clock fork getpid getppid gettid getuid pthread_self rand random sched_yield",
    ),
    (0, "__ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __cxa_end_catch __stack_chk_fail"),
    (1, "malloc free strlen puts putchar close fclose fflush exit _exit getenv strdup time atoi atol abs"),
    (1, "pthread_mutex_lock pthread_mutex_unlock pthread_mutex_trylock pthread_cond_signal"),
    (
        1,
        "pthread_cond_broadcast pthread_spin_lock pthread_spin_unlock pthread_rwlock_rdlock pthread_rwlock_unlock",
    ),
    (
        1,
        "pthread_rwlock_wrlock _Znwm _Znam _ZdlPv _ZdaPv __cxa_begin_catch __cxa_allocate_exception tolower toupper",
    ),
    (
        1,
        "isalpha isdigit isspace fgetc getc feof ferror rewind ftell unlink rmdir sysconf usleep sleep srand",
    ),
    (1, "malloc_usable_size __cxa_guard_acquire __cxa_guard_release _Unwind_Resume"),
    (2, "calloc realloc strcmp strchr strrchr strcpy strcat strcasecmp strstr strspn strcspn strpbrk strtok"),
    (
        2,
        "aligned_alloc memalign munmap stat fstat lstat access gettimeofday clock_gettime fputs fputc putc fopen",
    ),
    (
        2,
        "nanosleep strnlen strndup pthread_join pthread_setspecific signal kill _ZdlPvm _ZdaPvm rename mkdir",
    ),
    (2, "pthread_cond_wait strcoll bcmp"),
    (
        3,
        "memcpy memmove memset memcmp strncmp strncpy strncat strncasecmp memchr memrchr read write lseek fseek",
    ),
    (3, "__memset_chk strtol strtoul strtoll strtoull fgets posix_memalign mempcpy rawmemchr reallocarray"),
    (3, "memccpy sigaction sigprocmask poll"),
    (
        4,
        "__memcpy_chk __memmove_chk fread fwrite pread pwrite pread64 pwrite64 qsort memmem pthread_create recv send",
    ),
    (4, "__strncpy_chk"),
    (5, "bsearch"),
    (6, "mmap mmap64"),
];

/// Those that take integers, and vectors as `al` says: variable arguments.
const VARIABLE: &str = "printf fprintf sprintf snprintf dprintf asprintf __printf_chk __fprintf_chk __sprintf_chk \
    __snprintf_chk __asprintf_chk scanf fscanf sscanf __isoc99_sscanf __isoc99_fscanf __isoc99_scanf syslog open open64 \
    fcntl fcntl64 ioctl execl execlp syscall prctl";

/// What is known of a function by its name.
pub fn of(name: &[u8]) -> Prototype {
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    let Ok(name) = std::str::from_utf8(name) else { return ANY };
    let results = RegSet(1 << RAX | 1 << RDX);
    let integers = [RDI, RSI, RDX, RCX, 8, 9];
    let first = |count: u32| {
        integers[..count as usize].iter().fold(ON_THE_WAY, |set, &register| set | RegSet::general(register))
    };
    for &(count, names) in INTEGERS {
        if names.split_ascii_whitespace().any(|known| known == name) {
            return Prototype { reads: first(count), results };
        }
    }
    if VARIABLE.split_ascii_whitespace().any(|known| known == name) {
        return Prototype { reads: abi::ARGUMENTS, results };
    }
    ANY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_with_and_without_a_version() {
        assert!(!of(b"memcpy@GLIBC_2.14").reads.meets(RegSet::VECTORS));
        assert!(of(b"memcpy").reads.contains(RegSet(1 << RDI | 1 << RSI | 1 << RDX)));
        assert!(!of(b"malloc").reads.contains(RegSet::general(RSI)));
        assert!(
            of(b"printf").reads.contains(RegSet::vector(0)) && !of(b"printf").results.meets(RegSet::VECTORS)
        );
        assert_eq!(of(b"sin"), ANY);
        assert_eq!(of(b"mem"), ANY);
    }
}
