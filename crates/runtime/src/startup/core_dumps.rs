//! A scavenger that ends by a signal with a memory dump must not take the primary with it.
//!
//! Before Linux 5.16 a process that dumps its memory ends all processes with that memory, be the
//! dump wanted or not (a limit of no bytes on its size comes too late). Only where the memory may
//! not be dumped at all it does not. So there it may not, and no process of the harvest leaves a
//! dump.

use crate::sys;

/// For an address space that other processes will share: forbids dumps, where the kernel is one of
/// those.
pub(crate) fn contain() {
    const PR_SET_DUMPABLE: usize = 4;
    let mut name = [[0_u8; 65]; 6];
    // SAFETY: the kernel writes six strings of that size.
    unsafe { sys::syscall(sys::nr::UNAME, [name.as_mut_ptr() as usize, 0, 0, 0, 0, 0]) };
    if ends_all(&name[2]) {
        // SAFETY: an option and a number.
        unsafe { sys::prctl(PR_SET_DUMPABLE, 0, 0) };
    }
}

/// Whether a dump is the end of all, by the kernel's release.
fn ends_all(release: &[u8]) -> bool {
    let mut numbers = release.split(|byte| !byte.is_ascii_digit()).map(|digits| {
        digits
            .iter()
            .fold(0_u32, |number, digit| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
    });
    let [major, minor] = [(); 2].map(|()| numbers.next().unwrap_or(0));
    (major, minor) < (5, 16)
}

#[cfg(test)]
mod tests {
    use super::ends_all;

    #[test]
    fn kernels_are_told_by_their_release() {
        for old in ["4.18.0-553.el8", "5.4.0-200-generic", "5.10.0-32-cloud-amd64", "5.15.0", "5", "", "?"] {
            assert!(ends_all(old.as_bytes()), "{old}");
        }
        for new in ["5.16.0", "5.16-rc1", "5.19.0-46-generic", "6.1.0-49-amd64", "6.18.44-fc-v595", "10.0"] {
            assert!(!ends_all(new.as_bytes()), "{new}");
        }
    }
}
