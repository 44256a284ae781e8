//! What else happened while a block ran: time stolen by the hypervisor, context switches, page
//! faults, other tasks.

use crate::sys;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The counters at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterferenceCounters {
    /// Clock ticks (10 ms each on most kernels) that the hypervisor took from this CPU.
    pub steal: u64,
    pub involuntary_switches: i64,
    pub voluntary_switches: i64,
    pub faults: i64,
    /// Other tasks that were ready to run, on the whole machine.
    pub other_tasks: u32,
}

/// What changed between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interference {
    pub steal: u64,
    pub switches: u64,
    /// How often the thread slept. A rig that does not sleep by itself was stopped or frozen by
    /// another process.
    pub sleeps: u64,
    pub faults: u64,
    pub other_tasks: u32,
    /// Another hyperthread of the core was at work, according to what the core finished just before
    /// and after.
    pub core_shared: bool,
    /// The thread was stopped while it warmed the caches, and did not run again before the block:
    /// what it had brought there may be gone.
    pub warming_cut: bool,
}

impl InterferenceCounters {
    pub fn since(&self, before: &Self) -> Interference {
        Interference {
            steal: self.steal.saturating_sub(before.steal),
            switches: (self.involuntary_switches - before.involuntary_switches).max(0) as u64,
            sleeps: (self.voluntary_switches - before.voluntary_switches).max(0) as u64,
            faults: (self.faults - before.faults).max(0) as u64,
            other_tasks: self.other_tasks.max(before.other_tasks),
            core_shared: false,
            warming_cut: false,
        }
    }
}

/// Reads the counters for the calling thread on one CPU. Keeps its files open: opening them costs
/// more than reading.
#[derive(Debug)]
pub struct InterferenceReader {
    stat: Option<File>,
    loadavg: Option<File>,
    cpu_line: String,
    buffer: Vec<u8>,
}

impl InterferenceReader {
    pub fn on_cpu(cpu: usize) -> Self {
        Self {
            stat: File::open("/proc/stat").ok(),
            loadavg: File::open("/proc/loadavg").ok(),
            cpu_line: format!("cpu{cpu} "),
            buffer: Vec::with_capacity(1 << 14),
        }
    }

    /// What cannot be seen here, since the file that tells of it cannot be read.
    pub fn blind(&mut self) -> Option<String> {
        let reads = |file: &mut Option<File>, buffer: &mut Vec<u8>| {
            reread(file.as_mut(), buffer).is_some_and(|t| !t.is_empty())
        };
        let mut missing = Vec::new();
        if !reads(&mut self.stat, &mut self.buffer) {
            missing.push("stolen time (/proc/stat)");
        }
        if !reads(&mut self.loadavg, &mut self.buffer) {
            missing.push("other tasks (/proc/loadavg)");
        }
        (!missing.is_empty()).then(|| missing.join(" and "))
    }

    /// All counters. Costs tens of microseconds, so read them outside the timed stretch.
    pub fn look(&mut self) -> InterferenceCounters {
        let usage = sys::thread_usage();
        let steal = reread(self.stat.as_mut(), &mut self.buffer)
            .and_then(|text| steal_of(text, &self.cpu_line))
            .unwrap_or(0);
        let running = reread(self.loadavg.as_mut(), &mut self.buffer).and_then(running_tasks).unwrap_or(1);
        InterferenceCounters {
            steal,
            involuntary_switches: usage.involuntary_switches,
            voluntary_switches: usage.voluntary_switches,
            faults: usage.faults,
            other_tasks: running.saturating_sub(1),
        }
    }

    /// What came between since this look, as far as one cheap system call tells: it may be asked
    /// for where caches are warm already.
    pub fn switched_since(&self, before: &InterferenceCounters) -> bool {
        let usage = sys::thread_usage();
        usage.involuntary_switches > before.involuntary_switches
            || usage.voluntary_switches > before.voluntary_switches
    }

    /// The same counters, with the switches of this thread as they are now.
    pub fn switches_from_now(&self, before: InterferenceCounters) -> InterferenceCounters {
        let usage = sys::thread_usage();
        InterferenceCounters {
            involuntary_switches: usage.involuntary_switches,
            voluntary_switches: usage.voluntary_switches,
            ..before
        }
    }

    /// Clock ticks that the hypervisor took from these CPUs so far, together.
    pub fn steal_on(&mut self, cpus: &[usize]) -> u64 {
        let Some(text) = reread(self.stat.as_mut(), &mut self.buffer) else { return 0 };
        cpus.iter().filter_map(|cpu| steal_of(text, &format!("cpu{cpu} "))).sum()
    }
}

fn reread<'a>(file: Option<&mut File>, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    let file = file?;
    buffer.clear();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.read_to_end(buffer).ok()?;
    std::str::from_utf8(buffer).ok()
}

/// The eighth number of a CPU's line in `/proc/stat`.
fn steal_of(stat: &str, cpu_line: &str) -> Option<u64> {
    let line = stat.lines().find(|l| l.starts_with(cpu_line))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

/// The number before the slash in `/proc/loadavg`: tasks that run or are ready to, this one among
/// them.
fn running_tasks(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernel_s_lines() {
        let stat = "cpu  1 2 3\ncpu0 10 0 5 100 2 0 1 77 0 0\ncpu1 1 1 1 1 1 1 1 3 0 0\n";
        assert_eq!(steal_of(stat, "cpu0 "), Some(77));
        assert_eq!(steal_of(stat, "cpu1 "), Some(3));
        assert_eq!(steal_of(stat, "cpu7 "), None);
        assert_eq!(running_tasks("0.50 0.40 0.30 3/211 4567\n"), Some(3));
        assert_eq!(running_tasks("nonsense"), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut witness = InterferenceReader { stat: None, loadavg: None, ..InterferenceReader::on_cpu(0) };
        assert_eq!(witness.blind().unwrap(), "stolen time (/proc/stat) and other tasks (/proc/loadavg)");
        assert_eq!((witness.look().steal, witness.look().other_tasks), (0, 0));
    }

    #[test]
    fn faults_are_seen() {
        let mut witness = InterferenceReader::on_cpu(0);
        let before = witness.look();
        let touched = std::hint::black_box(vec![1u8; 8 << 20]);
        let seen = witness.look().since(&before);
        assert!(seen.faults > 0 && touched[4096] == 1, "{seen:?}");
    }
}
