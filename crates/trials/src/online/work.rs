//! What a program has done so far, and for how much CPU time.

use lab::child;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

/// By what it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Calls by which it reads and writes: servers make some for each request.
    ReadsAndWrites,
    /// A command that prints a number, which grows with what is done.
    Command(Vec<OsString>),
}

pub(super) struct Work {
    pub process: u32,
    counted: Counted,
}

impl Work {
    pub(super) fn of(process: u32, counted: Counted) -> Self {
        Self { process, counted }
    }

    /// With the CPU time.
    pub(super) fn so_far(&self) -> Result<(f64, Duration), String> {
        let processes = child::tree(self.process);
        let done = match &self.counted {
            Counted::ReadsAndWrites => processes.iter().copied().filter_map(calls).sum(),
            Counted::Command(command) => told_by(command)?,
        };
        Ok((done, processes.into_iter().map(child::cpu_time_of).sum()))
    }

    pub(super) fn says(&self) -> String {
        match &self.counted {
            Counted::ReadsAndWrites => "by its reads and writes".to_owned(),
            Counted::Command(command) => {
                let words: Vec<String> = command.iter().map(|word| records::text_of(word.as_ref())).collect();
                format!("by '{}'", words.join(" "))
            }
        }
    }

    /// What to do where too little is counted.
    pub(super) fn too_little(&self) -> String {
        match &self.counted {
            Counted::ReadsAndWrites => {
                "it made too few reads and writes to count its work by; --work CMD counts it by a number that CMD \
                 prints"
            }
            Counted::Command(_) => "the number that --work prints did not grow",
        }
        .to_owned()
    }
}

/// Of one process and its threads, and of those of its children that it has waited for.
fn calls(process: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    Some(of("syscr:")? + of("syscw:")?)
}

fn told_by(command: &[OsString]) -> Result<f64, String> {
    let output = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("--work: {}: {}", records::text_of(command[0].as_ref()), records::plain(&e)))?;
    last_number(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| "--work: the command printed no number".to_owned())
}

/// The last number of a text, whatever stands around it.
fn last_number(text: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !is_part(c)).rev().find_map(|word| word.trim_matches('.').parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_counted() {
        let work = Work::of(std::process::id(), Counted::ReadsAndWrites);
        let (before, _) = work.so_far().unwrap();
        for _ in 0..100 {
            std::fs::read("/proc/self/stat").unwrap();
        }
        let (after, cpu) = work.so_far().unwrap();
        assert!(after - before >= 100.0 && cpu > Duration::ZERO, "{before} {after} {cpu:?}");
    }

    #[test]
    fn a_command_tells_a_number() {
        assert_eq!(last_number("total_commands_processed:1234\r\n"), Some(1234.0));
        assert_eq!(last_number("a 5, b 7.5."), Some(7.5));
        assert_eq!(last_number("none"), None);
        let work = |words: &[&str]| {
            let words = words.iter().map(OsString::from).collect();
            Work::of(std::process::id(), Counted::Command(words)).so_far()
        };
        assert_eq!(work(&["echo", "done: 12"]).unwrap().0, 12.0);
        assert!(work(&["echo", "nothing"]).unwrap_err().contains("no number"));
        assert!(work(&["/no/such/program"]).unwrap_err().contains("--work"));
    }
}
