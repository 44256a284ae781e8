//! Signals on their way to a primary: it shall get what it would get if it ran alone.
//!
//! What the terminal sends goes to the whole group, so the primary has it already: the launcher only must not die of it.
//! What somebody sends to the launcher alone is meant for the primary and handed on.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Hands signals on while it lives. Those that come before the primary is there wait for it.
pub(crate) struct Forwarding {
    handle: Option<Handle>,
    target: Sender<u32>,
    thread: Option<JoinHandle<()>>,
}

const FORWARDED: [i32; 9] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH];

impl Forwarding {
    /// From now on no forwarded signal ends this process. Where handlers cannot be had, nothing changes.
    pub(crate) fn begin() -> Self {
        let (target, wanted) = channel::<u32>();
        let Ok(mut signals) = SignalsInfo::<WithOrigin>::new(FORWARDED) else {
            return Self { handle: None, target, thread: None };
        };
        let handle = signals.handle();
        let thread = std::thread::spawn(move || {
            let Ok(pid) = wanted.recv() else { return };
            let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
            for origin in signals.forever() {
                let sent_to_us = origin.process.is_some_and(|sender| sender.pid != 0);
                if let (true, Some(signal)) = (sent_to_us, Signal::from_named_raw(origin.signal)) {
                    let _ = kill_process(pid, signal); // it may have ended meanwhile
                }
            }
        });
        Self { handle: Some(handle), target, thread: Some(thread) }
    }

    /// Whom they are for.
    pub(crate) fn to(&self, pid: u32) {
        let _ = self.target.send(pid); // nobody listens where handlers cannot be had
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
