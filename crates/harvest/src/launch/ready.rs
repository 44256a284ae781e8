//! Which scavengers at home are starved: ready to run, and without CPU time, since other processes
//! have the processors.

use super::lives::Processor;
use std::collections::BTreeMap;
use std::time::Duration;

/// The last sample: how long the first thread of each had run.
#[derive(Default)]
pub struct Starved {
    ran: BTreeMap<i32, Duration>,
}

impl Starved {
    /// How many of these processes have waited since the last sample.
    pub fn sample(&mut self, pids: impl Iterator<Item = i32>) -> usize {
        let ready = pids.filter(|&pid| is_ready(pid));
        let now = ready.filter_map(|pid| Some((pid, Processor::of(pid)?.ran))).collect();
        let before = std::mem::replace(&mut self.ran, now);
        self.ran.iter().filter(|(pid, ran)| before.get(pid) == Some(ran)).count()
    }
}

/// Running, or waiting for a processor: the kernel does not say which.
fn is_ready(pid: i32) -> bool {
    let state = |text: String| text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that asks is running, and one that sleeps does not wait.
    #[test]
    fn running_and_sleeping_threads_do_not_count_as_waiting() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a sleeper");
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let pids = [own, child.id() as i32];
        let mut starved = Starved::default();
        assert_eq!(starved.sample(pids.into_iter()), 0);
        child.kill().expect("it sleeps");
        child.wait().expect("it ended");
        // What one has had is told anew at ticks, and when it goes to sleep.
        while starved.ran.contains_key(&own)
            && Processor::of(own).map(|now| now.ran) == starved.ran.get(&own).copied()
        {
            std::hint::spin_loop();
        }
        assert_eq!(starved.sample(pids.into_iter()), 0);
        assert!(is_ready(pids[0]) && !is_ready(pids[1]));
    }
}
