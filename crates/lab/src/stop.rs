//! One flag that says "stop": Ctrl-C, SIGTERM, SIGHUP and the limit on CPU time (SIGXCPU) set it;
//! campaigns look at it between blocks.
//!
//! The first signal asks for a clean stop; a second one gives the signal its default effect back,
//! so that a third kills. A signal that was ignored when this process began stays ignored: `nohup`
//! ignores SIGHUP, and a shell ignores SIGINT in what a script runs in the background.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// A view of the process-wide flag, or a private one for tests.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    flag: &'static AtomicBool,
}

impl Stop {
    /// Installs the handlers (once is enough) and returns the process-wide flag.
    pub fn on_signals() -> Self {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGXCPU] {
            if crate::sys::ignored(signal) == 0 {
                crate::sys::on_signal(signal, handler);
            }
        }
        Self { flag: &ASKED }
    }

    /// The process-wide flag, which is only set if something has installed the handlers.
    pub fn of_process() -> Self {
        Self { flag: &ASKED }
    }

    /// A flag that is never set.
    pub fn never() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self { flag: &NEVER }
    }

    /// A flag of the caller's own.
    pub fn from_flag(flag: &'static AtomicBool) -> Self {
        Self { flag }
    }

    pub fn asked(self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The signal that asked, if one did.
    pub fn signal(self) -> Option<i32> {
        Some(SIGNAL.load(Ordering::Relaxed)).filter(|&s| s != 0)
    }
}

extern "C" fn handler(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
    if ASKED.swap(true, Ordering::Relaxed) {
        crate::sys::default_signal(signal);
    }
}
