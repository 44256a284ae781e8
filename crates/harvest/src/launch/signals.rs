//! Signals for the primary: it gets those that it would get if it ran alone.
//!
//! What the terminal sends goes to the whole group, so the primary has it already: the launcher
//! only must not die of it. A signal sent to the launcher alone is meant for the primary and handed
//! on. What was ignored (`nohup`, `&` in a script) has a handler in the launcher, too, and is
//! ignored again in the primary.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Hands signals on while it lives. Those that come before the primary is there wait for it.
pub(crate) struct Forwarding {
    handle: Option<Handle>,
    target: Sender<u32>,
    thread: Option<JoinHandle<()>>,
    ignored: u64,
}

const FORWARDED: [i32; 9] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH];

impl Forwarding {
    /// From now on no forwarded signal ends this process. Where handlers or a thread cannot be had,
    /// nothing changes.
    pub(crate) fn begin() -> Self {
        let (target, wanted) = channel::<u32>();
        let (ready, begun) = channel();
        let ignored = ignored_signals();
        let hand_on = move || {
            let Ok(mut signals) = SignalsInfo::<WithOrigin>::new(FORWARDED) else { return };
            let _ = ready.send(signals.handle());
            let Ok(pid) = wanted.recv() else { return };
            let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
            for origin in signals.forever() {
                let sent_to_us = origin.process.is_some_and(|sender| sender.pid != 0);
                if let (true, Some(signal)) = (sent_to_us, Signal::from_named_raw(origin.signal)) {
                    let _ = kill_process(pid, signal); // it may have ended meanwhile
                }
            }
        };
        let thread = Builder::new().spawn(hand_on).ok();
        let handle = begun.recv().ok();
        let mut ours = if handle.is_some() { bits(&FORWARDED) } else { 0 };
        // Where this one is ignored, the kernel forgets at once how children ended.
        let told = std::sync::Arc::default();
        if ignored & bits(&[SIGCHLD]) != 0 && signal_hook::flag::register(SIGCHLD, told).is_ok() {
            ours |= bits(&[SIGCHLD]);
        }
        Self { handle, target, thread, ignored: ignored & ours }
    }

    /// Those of which the primary would not know that they were ignored, since they are not any
    /// more: bit 0 is signal 1.
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Whom they are for.
    pub(crate) fn to(&self, pid: u32) {
        let _ = self.target.send(pid); // no thread listens where handlers cannot be had
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.close();
        }
        let (closed, _) = channel();
        self.target = closed; // a thread that still waits for the primary stops waiting
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bits(signals: &[i32]) -> u64 {
    signals.iter().fold(0, |mask, signal| mask | 1 << (signal - 1))
}

/// The signals that this process ignored when it was started, as the kernel tells; none where it
/// does not.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

/// Ends this process as the primary ended: with its exit code, or by its signal.
pub fn end_like(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let Some(signal) = status.signal() else { return status.code().unwrap_or(1) };
    // The primary's core is what was wanted, not ours.
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal // where that did not end us: as shells say it
}
