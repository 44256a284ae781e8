//! Processes in this address space that the supervisor does not know: what a scavenger made by
//! `vfork`, or with `CLONE_VM`, and left behind.

use crate::layout::region::SIZE;
use crate::supervisor::processes::ThreadStat;
use crate::sys;
use crate::sys::decimal::{decimal, number};

const FOLDER: &core::ffi::CStr = c"/proc";
const ME: &core::ffi::CStr = c"/proc/self";

/// Whether there are none for certain. `me` is the supervisor; `here` says whether a process is
/// known to be in this address space, and lives.
pub(crate) fn are_none(me: i32, here: impl Fn(i32) -> bool) -> bool {
    let Some(born) = ThreadStat::of(me).map(|stat| stat.born).filter(|_| is_ours(me)) else { return false };
    let fd = sys::open(FOLDER, sys::O_RDONLY | sys::O_DIRECTORY | sys::O_CLOEXEC) as i32;
    if fd < 0 {
        return false;
    }
    let mut entries = DirectoryEntries([0; 2048]);
    let none = loop {
        match sys::entries(fd, &mut entries.0) {
            0 => break true,
            size if size > 0 => {
                let mut pids = each_name(&entries.0[..size as usize]).filter_map(number);
                if pids.any(|pid| pid != me && !here(pid) && may_be_one(me, pid, born, &here)) {
                    break false;
                }
            }
            _ => break false,
        }
    };
    sys::close(fd);
    none
}

/// Directory entries, as the kernel aligns them.
#[repr(align(8))]
struct DirectoryEntries([u8; 2048]);

/// Whether `/proc` shows processes by the same numbers as we see them.
fn is_ours(me: i32) -> bool {
    let (mut text, mut digits) = ([0_u8; 16], [0_u8; 10]);
    let size = sys::link(ME, &mut text);
    size > 0 && text[..size as usize] == *decimal(&mut digits, me)
}

fn may_be_one(me: i32, pid: i32, born: u64, here: &impl Fn(i32) -> bool) -> bool {
    let same = sys::same_memory(me, pid);
    if same == sys::ESRCH {
        return false;
    }
    let Some(stat) = ThreadStat::of(pid) else { return sys::kill(pid, 0) != sys::ESRCH };
    // A process whose first thread has ended says nothing by it; others may go on.
    let headless = stat.size == 0 && stat.threads > 1;
    // The kernel may not let us ask. But a process older than the supervisor is no child of a
    // scavenger, and one in this address space has mapped at least the region.
    let elsewhere = match same {
        _ if stat.born < born => true,
        _ if headless => false,
        0 => false,
        1.. => true,
        _ => stat.size < SIZE as u64,
    };
    !elsewhere && !here(stat.parent)
}

/// The names in a directory's entries as the kernel returns them.
fn each_name(entries: &[u8]) -> impl Iterator<Item = &[u8]> {
    /// Offsets in an entry: of its size in bytes, and of its name, which ends with a zero.
    const SIZE_AT: usize = 16;
    const NAME_AT: usize = 19;
    let mut rest = entries;
    core::iter::from_fn(move || {
        let size = u16::from_le_bytes(rest.get(SIZE_AT..SIZE_AT + 2)?.try_into().ok()?) as usize;
        let name = rest.get(NAME_AT..size)?;
        rest = &rest[size..];
        name.split(|byte| *byte == 0).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::start::process;

    #[test]
    fn names_are_read_as_the_kernel_writes_them() {
        const NAME: usize = 19;
        let mut text = Vec::new();
        for name in [&b"."[..], b"self", b"4711"] {
            let size = (NAME + name.len() + 1).next_multiple_of(8);
            let mut entry = vec![0_u8; size];
            entry[16..18].copy_from_slice(&(size as u16).to_le_bytes());
            entry[NAME..NAME + name.len()].copy_from_slice(name);
            text.extend(entry);
        }
        let names: Vec<&[u8]> = each_name(&text).collect();
        assert_eq!(names, [&b"."[..], b"self", b"4711"]);
        let pids: Vec<Option<i32>> = names.into_iter().map(number).collect();
        assert_eq!(pids, [None, None, Some(4711)]);
        assert_eq!((number(b""), number(b"99999999999")), (None, None));
    }

    extern "C" fn wait_to_be_killed(_: usize) -> ! {
        loop {
            sys::sleep_ns(1_000_000_000);
        }
    }

    #[test]
    fn processes_that_share_this_memory_are_found() {
        const STACK: usize = 1 << 16;
        let me = std::process::id() as i32;
        let known = |pid: i32| pid == me;
        assert!(are_none(me, |_| false), "others are elsewhere");
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
        // SAFETY: a new mapping; a process with a stack of its own, which uses no libc.
        let pid = unsafe {
            let at = sys::mmap(0, STACK, sys::PROT_READ | sys::PROT_WRITE, flags, -1, 0).expect("memory");
            process(at + STACK, wait_to_be_killed, 0) as i32
        };
        assert!(pid > 0);
        let found = !are_none(me, known);
        let told = are_none(me, |other| other == pid || other == me);
        sys::kill(pid, sys::SIGKILL);
        assert!(found && told, "{found} {told}");
    }
}
