//! Which scavengers are ready to run and do not, since others have the processors.

use super::lives::Processor;
use std::collections::BTreeMap;
use std::time::Duration;

/// The last look at each: what its first thread had of the processors.
#[derive(Default)]
pub struct Ready {
    ran: BTreeMap<i32, Duration>,
}

impl Ready {
    /// How many of these processes have waited since the last look at them.
    pub fn look(&mut self, pids: impl Iterator<Item = i32>) -> usize {
        let ready = pids.filter(|&pid| is_ready(pid));
        let now = ready.filter_map(|pid| Some((pid, Processor::of(pid)?.ran))).collect();
        let before = std::mem::replace(&mut self.ran, now);
        self.ran.iter().filter(|(pid, ran)| before.get(pid) == Some(ran)).count()
    }
}

/// Running, or only waiting for a processor: which of the two is not told.
fn is_ready(pid: i32) -> bool {
    let state = |text: String| text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who asks is running, and who sleeps does not wait.
    #[test]
    fn who_runs_or_sleeps_does_not_wait() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a sleeper");
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let pids = [own, child.id() as i32];
        let mut ready = Ready::default();
        assert_eq!(ready.look(pids.into_iter()), 0);
        child.kill().expect("it sleeps");
        child.wait().expect("it ended");
        // What one has had is told anew at ticks, and when it goes to sleep.
        while ready.ran.contains_key(&own)
            && Processor::of(own).map(|now| now.ran) == ready.ran.get(&own).copied()
        {
            std::hint::spin_loop();
        }
        assert_eq!(ready.look(pids.into_iter()), 0);
        assert!(is_ready(pids[0]) && !is_ready(pids[1]));
    }
}
