//! The environment, before libc is ready: the variable that names our shared memory.

use core::ffi::CStr;

/// What stands in a variable, and where the environment's list ends; `passed` is what the
/// constructor was given. The list is none if there is no environment.
pub(crate) fn find(name: &str, passed: *mut *mut u8) -> Option<(Option<&'static CStr>, u64)> {
    // Musl passes nothing, so what was passed is only used where libc has no variable yet.
    let environment = libc_environment().unwrap_or(passed);
    if environment.is_null() {
        return None;
    }
    let mut found = None;
    for index in 0.. {
        // SAFETY: an environment ends with a null.
        let entry = unsafe { *environment.add(index) };
        if entry.is_null() {
            // SAFETY: as above.
            return Some((found, unsafe { environment.add(index) } as u64));
        }
        // SAFETY: a string with its zero, there for as long as the process.
        let entry: &'static CStr = unsafe { CStr::from_ptr(entry.cast()) };
        if let Some(value) = entry.to_bytes_with_nul().strip_prefix(name.as_bytes()) {
            found =
                value.strip_prefix(b"=").and_then(|value| CStr::from_bytes_with_nul(value).ok()).or(found);
        }
    }
    None
}

/// `environ` as libc knows it, if it has one already.
fn libc_environment() -> Option<*mut *mut u8> {
    let variable: *mut *mut *mut u8;
    // SAFETY: reads the address of a weak symbol, which is 0 where there is none.
    unsafe {
        core::arch::asm!(".weak environ", "mov {}, [rip + environ@GOTPCREL]", out(reg) variable,
            options(nostack, readonly, preserves_flags));
        if variable.is_null() || (*variable).is_null() { None } else { Some(*variable) }
    }
}
