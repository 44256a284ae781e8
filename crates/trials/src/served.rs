//! One run of a server: started, waited for, put under load once, and ended. What counts is the CPU
//! time that it takes for the load: how long answers take hangs on the load's own pace, too.

use crate::left::{Left, Printed};
use crate::program::{Program, Run, TrialError};
use crate::settings::prepared::Start;
use lab::child::{self, Ended};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
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
        loop {
            if served.server.as_mut().is_some_and(|server| server.try_wait().is_ok_and(|end| end.is_some())) {
                return Err(io::Error::other("it ended before it answered"));
            }
            if served.load()?.status.success() {
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

    /// The load, once.
    pub fn load(&self) -> io::Result<Ended> {
        let mut command = Command::new(&self.load[0]);
        command.args(&self.load[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let ended = child::run(&mut command, None)?;
        ended.ok_or_else(|| io::Error::other("it was not waited for"))
    }

    /// Asks it to end.
    fn end(mut self) -> io::Result<Option<Ended>> {
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

/// One run, as it is prepared.
pub(crate) fn run(program: &Program, load: &[OsString], start: &Start) -> Result<Run, TrialError> {
    let began = Instant::now();
    let once = || -> io::Result<(Ended, f64, Option<Ended>)> {
        let served = Served::begin(program, load, start)?;
        let before = child::cpu_time_of_tree(served.process());
        let loaded = served.load()?;
        let cpu = child::cpu_time_of_tree(served.process()).saturating_sub(before);
        Ok((loaded, cpu.as_secs_f64(), served.end()?))
    };
    let not_run = |e: io::Error| TrialError::NotRun {
        what: records::text_of(program.command.first().cloned().unwrap_or_default().as_ref()),
        why: records::plain(&e),
    };
    let (loaded, cpu, ended) = match once() {
        Ok(done) => done,
        // With a change that is the change's fault, and told as such.
        Err(why) if *start != Start::default() => return Ok(failed(began, &why)),
        Err(why) => return Err(not_run(why)),
    };
    Ok(Run {
        seconds: cpu,
        cpu_seconds: cpu,
        took: began.elapsed().as_secs_f64(),
        peak: ended.map_or(units::Bytes(0), |ended| ended.peak),
        left: Left { end: loaded.status.into_raw(), output: Printed::nothing(), files: None },
        failed: None,
    })
}

fn failed(began: Instant, why: &io::Error) -> Run {
    Run {
        seconds: 0.0,
        cpu_seconds: 0.0,
        took: began.elapsed().as_secs_f64(),
        peak: units::Bytes(0),
        left: Left { end: -1, output: Printed::nothing(), files: None },
        failed: Some(records::plain(why)),
    }
}
