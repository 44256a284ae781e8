//! A server: started, waited for, put under load, and ended.

use crate::program::Program;
use crate::settings::prepared::Start;
use lab::child::{self, Ended};
use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A server answers its first load within this time.
const READY_WITHIN: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// It ends within this time when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A server that answers.
pub struct Served {
    server: Option<Child>,
    load: Vec<OsString>,
}

impl Served {
    /// Starts the server; it is there when the load has succeeded once.
    pub fn begin(program: &Program, load: &[OsString], start: &Start) -> io::Result<Self> {
        let mut command = program.command(start);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut served = Self { server: Some(command.spawn()?), load: load.to_vec() };
        let until = Instant::now() + READY_WITHIN;
        served.wait_until_idle(until);
        loop {
            if served.server.as_mut().is_some_and(|server| server.try_wait().is_ok_and(|end| end.is_some())) {
                return Err(io::Error::other("it ended before it answered"));
            }
            // Some loads wait for ever where nobody listens yet.
            let limit = until.saturating_duration_since(Instant::now());
            if served.load_within(Some(limit))?.is_some_and(|ended| ended.status.success()) {
                return Ok(served);
            }
            if Instant::now() > until {
                return Err(io::Error::other("the load did not succeed within 30 s of its start"));
            }
            sleep(BETWEEN_LOOKS);
        }
    }

    pub fn process(&self) -> u32 {
        self.server.as_ref().map_or(0, Child::id)
    }

    /// A server that has begun waits for its first client, but for what it does by the clock.
    fn wait_until_idle(&self, until: Instant) {
        let mut before = None;
        while Instant::now() < until {
            sleep(2 * BETWEEN_LOOKS);
            let now = child::cpu_time_of_tree(self.process());
            if before.is_some_and(|before| now.saturating_sub(before) < BETWEEN_LOOKS / 10) {
                return;
            }
            before = Some(now);
        }
    }

    /// The load, once.
    pub fn load(&self) -> io::Result<Ended> {
        self.load_within(None)?.ok_or_else(|| io::Error::other("it was not waited for"))
    }

    fn load_within(&self, limit: Option<Duration>) -> io::Result<Option<Ended>> {
        let mut command = Command::new(&self.load[0]);
        command.args(&self.load[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        child::run(&mut command, limit)
    }

    /// Asks it to end.
    pub(crate) fn end(mut self) -> io::Result<Option<Ended>> {
        self.server.take().map_or(Ok(None), |server| child::end(server, ENDS_WITHIN))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _ = child::end(server, ENDS_WITHIN);
        }
    }
}
