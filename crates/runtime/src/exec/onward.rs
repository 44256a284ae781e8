//! What a program without a loader executes: only the filter stands in front of its `execve`.
//!
//! What is executed inherits the filter without the handler, so a call that is trapped would be its
//! end. Calls are trapped by where they are made, and another program is elsewhere, unless both are
//! linked to the same fixed addresses, as a program is that executes itself. That is refused.

use crate::exec::load;
use crate::interpose::itself;
use crate::layout::area::Area;
use crate::sys;
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

const EPERM: isize = -1;
/// Longest first line of a script that the kernel reads.
const FIRST_LINE: usize = 256;

/// The addresses that the program of this scavenger is fixed to, if nothing but the filter stands
/// before its calls.
pub(super) fn note(area: &Area, (start, end): (usize, usize)) {
    let fixed = &area.mappings().fixed;
    fixed[0].store(start as u64, Relaxed);
    fixed[1].store(end as u64, Relaxed);
}

/// `execve`, in a handler that has all signals blocked: what is executed has this mask, as the
/// program had.
///
/// # Safety
/// The arguments must be what the call takes.
pub(super) unsafe fn execute(area: &Area, mask: u64, mut arguments: [usize; 6]) -> isize {
    // SAFETY: the caller's.
    let path = unsafe { itself::meant_or(arguments[0] as *const i8) };
    if let Some(path) = path {
        arguments[0] = path.as_ptr() as usize;
        if is_in_the_way(area, path) {
            let text = b"gleaner: a scavenger that is linked statically to fixed addresses cannot execute another program that is, or itself: ";
            for part in [&text[..], path.to_bytes(), b" (-static-pie would help)\n"] {
                sys::write(2, part);
            }
            return EPERM;
        }
    }
    let before = sys::set_signal_mask(mask);
    // SAFETY: the caller's.
    let failed = unsafe { sys::syscall(sys::nr::EXECVE, arguments) };
    sys::set_signal_mask(before);
    failed
}

/// Whether what is executed by this path is linked to addresses of the scavenger's program; also if
/// a script names it.
fn is_in_the_way(area: &Area, path: &CStr) -> bool {
    let [start, end] = [0, 1].map(|at| area.mappings().fixed[at].load(Relaxed));
    if start == end {
        return false;
    }
    let fd = sys::open(path, sys::O_RDONLY | sys::O_CLOEXEC) as i32;
    if fd < 0 {
        return false; // as the kernel will say
    }
    let overlaps = |fd| load::fixed_span(fd).is_some_and(|span| span.first < end && start < span.end);
    let mut line = [0_u8; FIRST_LINE + 1];
    let size = sys::pread(fd, &mut line[..FIRST_LINE], 0);
    let result = match interpreter(&mut line, size.max(0) as usize) {
        None => overlaps(fd),
        Some(path) => {
            let other = sys::open(path, sys::O_RDONLY | sys::O_CLOEXEC) as i32;
            let result = other >= 0 && overlaps(other);
            sys::close(other);
            result
        }
    };
    sys::close(fd);
    result
}

/// The program that a script names in its first line.
fn interpreter(line: &mut [u8; FIRST_LINE + 1], size: usize) -> Option<&CStr> {
    let text = line[..size].strip_prefix(b"#!")?;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = 2 + text.iter().position(|byte| !is_blank(byte))?;
    let end = line[start..size]
        .iter()
        .position(|byte| is_blank(byte) || *byte == b'\n')
        .map_or(size, |at| start + at);
    line[end] = 0;
    CStr::from_bytes_until_nul(&line[start..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let named = |text: &[u8]| {
            let mut line = [0; FIRST_LINE + 1];
            line[..text.len()].copy_from_slice(text);
            interpreter(&mut line, text.len()).map(|path| path.to_str().unwrap().to_owned())
        };
        for text in [&b"#!/bin/busybox sh\necho"[..], b"#! \t/bin/busybox\n", b"#!/bin/busybox"] {
            assert_eq!(named(text).as_deref(), Some("/bin/busybox"));
        }
        assert_eq!(named(b"\x7fELF"), None);
        assert_eq!(named(b"#!  "), None);
        let mut full = [b'a'; FIRST_LINE];
        full[..2].copy_from_slice(b"#!");
        assert_eq!(named(&full).map(|path| path.len()), Some(FIRST_LINE - 2));
    }
}
