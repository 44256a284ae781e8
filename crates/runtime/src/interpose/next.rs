//! Libc's own functions behind ours.

use core::ffi::CStr;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

/// Looks up what comes behind the runtime in the search order, as the calling program's loader has
/// it.
pub(crate) fn look_up(name: &CStr) -> usize {
    #[cfg(freestanding)]
    {
        bare_calls::look_up(name) as usize
    }
    #[cfg(not(freestanding))]
    {
        let _ = name;
        0
    }
}

/// The address of a function, looked up once.
pub(super) struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    /// Where its address is, for assembly.
    #[cfg(freestanding)]
    pub(super) const ADDRESS: usize = core::mem::offset_of!(Self, address);

    pub(super) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// 0 where there is none.
    pub(super) fn address(&self) -> usize {
        let known = self.address.load(Relaxed);
        if known != 0 {
            return known;
        }
        let found = look_up(self.name);
        self.address.store(found, Relaxed);
        found
    }
}

/// Calls libc's function of that name and type; `$otherwise` where it has none.
macro_rules! call_next {
    ($name:literal as fn($($type:ty),*) -> $result:ty, ($($argument:expr),*), else $otherwise:expr) => {{
        static NEXT: $crate::interpose::next::Next = $crate::interpose::next::Next::new($name);
        match NEXT.address() {
            0 => $otherwise,
            // SAFETY: libc's function of that name has that type.
            address => unsafe {
                let function: unsafe extern "C" fn($($type),*) -> $result = core::mem::transmute(address);
                function($($argument),*)
            },
        }
    }};
}
pub(super) use call_next;

/// Sets the caller's `errno` and returns -1.
pub(super) fn fail(errno: i32) -> i32 {
    let to = call_next!(c"__errno_location" as fn() -> *mut i32, (), else core::ptr::null_mut());
    if !to.is_null() {
        // SAFETY: libc's own.
        unsafe { *to = errno };
    }
    -1
}
