//! Running a command within bounds, and telling two outcomes apart.

use crate::directives::End;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a command printed and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

/// Runs it in a process group of its own, and kills that when the time is over. What it prints goes
/// through files in `folder`, so that whatever it leaves behind cannot keep a pipe open.
pub(crate) fn run(mut command: Command, folder: &Path, limit: Duration) -> Result<Outcome, String> {
    let what = format!("{command:?}");
    let failed = |why: &dyn std::fmt::Display| format!("{what}: {why}");
    let (out, err) = (folder.join("out"), folder.join("err"));
    let file = |path: &Path| File::create(path).map_err(|e| failed(&e));
    command.stdin(Stdio::null()).stdout(file(&out)?).stderr(file(&err)?).process_group(0);
    let mut child = loop {
        match command.spawn() {
            // It was just written here, and a child that another thread is about to start still has
            // it open for that.
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            started => break started.map_err(|e| failed(&e))?,
        }
    };
    let pid = Pid::from_child(&child);
    let in_time = pidfd_open(pid, PidfdFlags::empty()).and_then(|fd| {
        let limit = Timespec::try_from(limit).expect("a short time");
        loop {
            match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other.map(|ready| ready > 0),
            }
        }
    });
    // The child may still run, or may have left processes behind: it is not reaped yet, so the
    // group is its own.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait().map_err(|e| failed(&e))?;
    let end = match (in_time.map_err(|e| failed(&e))?, status.code(), status.signal()) {
        (false, ..) => End::TimedOut,
        (true, Some(code), _) => End::Exit(code),
        (true, None, signal) => End::Signal(signal.unwrap_or(0)),
    };
    let read = |path: &Path| std::fs::read(path).map_err(|e| failed(&e));
    Ok(Outcome { end, out: read(&out)?, err: read(&err)? })
}

/// In what `found` differs from `expected`, in a line or two.
pub(crate) fn difference(expected: &Outcome, found: &Outcome) -> Option<String> {
    let mut all = Vec::new();
    if expected.end != found.end {
        all.push(format!("ended with {:?} for {:?}", found.end, expected.end));
    }
    for (name, expected, found) in
        [("stdout", &expected.out, &found.out), ("stderr", &expected.err, &found.err)]
    {
        if expected != found {
            let lines =
                |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
            let (expected, found) = (lines(expected), lines(found));
            let same = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
            let at = |all: &[String]| all.get(same).cloned().unwrap_or_else(|| "(nothing)".to_owned());
            all.push(format!("{name}, line {}: {:?} for {:?}", same + 1, at(&found), at(&expected)));
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}
