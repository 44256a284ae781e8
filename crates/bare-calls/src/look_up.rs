//! Functions of other libraries, by their names.

use core::ffi::CStr;

/// What comes behind the calling library in the search order; null where there is none, or no
/// loader that could be asked.
pub fn look_up(name: &CStr) -> *mut () {
    const RTLD_NEXT: usize = usize::MAX;
    let dlsym: usize;
    // SAFETY: the address of a weak symbol, 0 where there is none; called as libc declares it.
    unsafe {
        core::arch::asm!(".weak dlsym", "mov {}, [rip + dlsym@GOTPCREL]", out(reg) dlsym,
            options(nostack, readonly, preserves_flags));
        if dlsym == 0 {
            return core::ptr::null_mut();
        }
        let dlsym: unsafe extern "C" fn(usize, *const i8) -> *mut () = core::mem::transmute(dlsym);
        dlsym(RTLD_NEXT, name.as_ptr())
    }
}
