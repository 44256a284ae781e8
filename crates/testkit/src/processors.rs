//! What tests may run on.

use std::process::{Command, Stdio};

/// How many processors there are for this process; 1 where that cannot be told.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The same command on the first of these processors, so that all that it starts is on one.
///
/// # Panics
///
/// Where the kernel does not tell which it is.
#[must_use]
pub fn on_one_processor(command: &Command) -> Command {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let allowed =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("processors");
    let first = allowed.trim().split([',', '-']).next().expect("a processor");
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", first]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => pinned.env(name, value),
            None => pinned.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        pinned.current_dir(directory);
    }
    pinned
}
