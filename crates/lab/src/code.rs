//! Machine code made executable: written first, then made executable and read-only; pages are never
//! writable and executable at once.

use crate::fault;
use crate::sys::{self, SysError};
use kernels::{Kernel, KernelError, Spec};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use units::WouldHelp;

/// The type of every kernel; what the arguments mean stands at each variant of `kernels::Spec`.
pub(crate) type Entry = unsafe extern "sysv64" fn(*mut u8, u64, *mut u64, *mut u64) -> u64;

/// A kernel in executable memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub kernel: Arc<Kernel>,
    pages: Arc<CodePages>,
}

#[derive(Debug)]
struct CodePages {
    at: *mut libc::c_void,
    len: usize,
}

// SAFETY: the pages are read-only and executable from the moment the value exists until it is
// dropped.
unsafe impl Send for CodePages {}
// SAFETY: as above; nothing writes to them.
unsafe impl Sync for CodePages {}

/// Kernels assembled so far: experiments ask for the same ones again and again.
static KERNELS: LazyLock<Mutex<HashMap<Spec, Loaded>>> = LazyLock::new(Mutex::default);
/// The most kernels that are kept. Searches ask for hundreds, once each, and what is kept must stay
/// small beside any area that is measured.
const KERNELS_KEPT: usize = 128;

/// Why a kernel cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Memory(#[from] SysError),
}

impl WouldHelp for LoadError {
    fn would_help(&self) -> Option<&str> {
        if let Self::Memory(error) = self { error.would_help() } else { None }
    }
}

impl Loaded {
    /// The kernel of this specification, assembled now or earlier.
    pub fn of(spec: &Spec) -> Result<Self, LoadError> {
        // Nothing panics while the lock is held, and the map is whole at any time.
        let mut made = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = made.get(spec) {
            return Ok(loaded.clone());
        }
        let loaded = Self::new(kernels::assemble(spec)?)?;
        if made.len() >= KERNELS_KEPT {
            made.clear();
        }
        made.insert(spec.clone(), loaded.clone());
        Ok(loaded)
    }

    pub fn new(kernel: Kernel) -> Result<Self, SysError> {
        fault::prepare();
        let len = kernel.code.len().next_multiple_of(4096);
        // SAFETY: a fresh private mapping of our own; the code fits into it; it is made executable
        // only after it is written, and is unmapped only by Drop.
        let at = unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if at == libc::MAP_FAILED {
                return Err(sys::failed("mapping memory for a kernel's code"));
            }
            std::ptr::copy_nonoverlapping(kernel.code.as_ptr(), at.cast::<u8>(), kernel.code.len());
            if libc::mprotect(at, len, libc::PROT_READ | libc::PROT_EXEC) != 0 {
                let error = sys::failed("making a kernel's code executable");
                libc::munmap(at, len);
                return Err(error);
            }
            at
        };
        Ok(Self { kernel: Arc::new(kernel), pages: Arc::new(CodePages { at, len }) })
    }

    /// Whether the processor and the operating system support its instructions.
    pub fn runs_here(&self) -> bool {
        match self.kernel.spec.isa() {
            kernels::Isa::Baseline => true,
            kernels::Isa::Avx2 => is_x86_feature_detected!("avx2"),
            kernels::Isa::Avx512F => is_x86_feature_detected!("avx512f"),
        }
    }

    /// Calls the kernel. One that dies of a signal becomes a panic here: see [`fault`].
    ///
    /// # Safety
    /// The arguments must satisfy the contract that the kernel's specification states; rigs see to
    /// that.
    #[inline]
    pub(crate) unsafe fn call(&self, rdi: *mut u8, rsi: u64, rdx: *mut u64, rcx: *mut u64) -> u64 {
        // SAFETY: the pages hold a function of the kernels' type for as long as `self` lives, and
        // `new` has prepared; the rest is the caller's.
        unsafe { fault::call(self.pages.at.cast(), rdi, rsi, rdx, rcx) }
    }

    /// Calls the kernel as a compiler would, without protection: for an empty kernel, whose cost is
    /// what is measured.
    ///
    /// # Safety
    /// As for [`Loaded::call`].
    #[inline]
    pub(crate) unsafe fn call_plainly(&self, rdi: *mut u8, rsi: u64, rdx: *mut u64, rcx: *mut u64) -> u64 {
        // SAFETY: as above.
        unsafe {
            let entry: Entry = std::mem::transmute(self.pages.at);
            entry(rdi, rsi, rdx, rcx)
        }
    }
}

impl Drop for CodePages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no other value can call into it any more.
        unsafe {
            libc::munmap(self.at, self.len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_made_once_and_not_kept_without_end() {
        let spec = |unroll| Spec::Adds { unroll };
        let first = Loaded::of(&spec(7)).unwrap();
        assert!(Arc::ptr_eq(&first.pages, &Loaded::of(&spec(7)).unwrap().pages));
        assert!(!Arc::ptr_eq(&first.pages, &Loaded::of(&spec(8)).unwrap().pages));
        for unroll in 1..=KERNELS_KEPT as u32 + 9 {
            Loaded::of(&spec(unroll)).unwrap();
        }
        assert!(KERNELS.lock().unwrap().len() <= KERNELS_KEPT);
        // A kernel in use outlives the cache.
        // SAFETY: the kernel touches no memory and takes only a loop count.
        let sum = unsafe { first.call(std::ptr::null_mut(), 6, std::ptr::null_mut(), std::ptr::null_mut()) };
        assert_eq!(sum, 42);
        assert!(Loaded::of(&spec(0)).is_err());
    }
}
