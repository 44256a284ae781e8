//! Processes of a harvest that tests want to know.

use crate::wait_for;
use std::time::Duration;

/// A harvest's process that does nothing but watch, once it is there.
pub fn supervisor_of(launcher: u32) -> String {
    wait_for("a harvest's supervisor", Duration::from_secs(60), || {
        let children =
            std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap_or_default();
        let name = |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        children.split_whitespace().find(|pid| name(pid) == "gleaner-superv\n").map(str::to_owned)
    })
}
