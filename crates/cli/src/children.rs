//! Programs that a verb runs for its own purposes, each with a time limit, and asked to stop when
//! the user stops the verb.

use lab::stop::Stop;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// For a verb to write what it has, once it is asked to stop.
const FAREWELL: Duration = Duration::from_secs(20);

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoEnd {
    Stopped,
    TooLong(Duration),
    NotRun(String),
}

/// Waits for its end; `meanwhile` is called a few times a second. A program that takes longer than
/// the limit is asked to stop, and so is one that runs when the user stops this verb.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    stop: Stop,
    meanwhile: &mut dyn FnMut(),
) -> Result<ExitStatus, NoEnd> {
    if stop.asked() {
        return Err(NoEnd::Stopped);
    }
    let mut child = command.spawn().map_err(|error| NoEnd::NotRun(records::plain(&error)))?;
    let began = Instant::now();
    let mut asked = None;
    loop {
        match child.try_wait() {
            Ok(Some(_)) if stop.asked() => return Err(NoEnd::Stopped),
            Ok(Some(status)) if asked.is_none() => return Ok(status),
            Ok(Some(_)) => return Err(NoEnd::TooLong(limit)),
            Ok(None) => {}
            Err(error) => return Err(NoEnd::NotRun(records::plain(&error))),
        }
        if asked.is_none() && (stop.asked() || began.elapsed() > limit) {
            interrupt(&child);
            asked = Some(Instant::now());
        }
        if asked.is_some_and(|since: Instant| since.elapsed() > FAREWELL) {
            let _ = child.kill();
        }
        meanwhile();
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A verb of this binary ends what it started; other programs have nothing to end.
fn interrupt(child: &Child) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process(pid, Signal::INT); // it may have ended just now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_or_is_ended() {
        let run = |words: &[&str], limit: u64| {
            let mut command = Command::new(words[0]);
            run(command.args(&words[1..]), Duration::from_millis(limit), Stop::never(), &mut || {})
        };
        assert_eq!(run(&["sh", "-c", "exit 3"], 60_000).unwrap().code(), Some(3));
        assert_eq!(run(&["sleep", "60"], 100), Err(NoEnd::TooLong(Duration::from_millis(100))));
        assert!(matches!(run(&["/no/such/program"], 60_000), Err(NoEnd::NotRun(_))));
    }
}
