//! Signals sent by tests. By the shell, for `kill` as a program of its own is not everywhere.

use std::process::{Command, Output};

/// Sends the signal of this name ("TERM") to a process; to a group, if its number stands behind a
/// "-".
#[must_use]
pub fn kill(signal: &str, target: &str) -> bool {
    let sent = Command::new("sh").args(["-c", "kill -s \"$1\" -- \"$2\"", "sh", signal, target]).output();
    sent.is_ok_and(|Output { status, .. }| status.success())
}
