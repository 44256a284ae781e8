//! The processes of a machine: what each runs and in which control group, those that come and go
//! meanwhile, too.

use super::cgroups;
use insight::samples::{Runs, Tally};
use records::profile::Cgroup;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The threads of the kernel are made by its second process.
const KERNEL_THREADS: u32 = 2;
/// In a process's flags, as the kernel tells them: it is a thread of the kernel.
const IS_KERNEL_THREAD: u64 = 0x0020_0000;
/// A process's other threads may run on when its first one has ended.
const GRACE: Duration = Duration::from_secs(2);
/// Processes that have ended whose mappings are kept, so that their data is named.
const MOST_ENDED: usize = 512;

/// What is known of processes beside their mappings.
#[derive(Debug, Default)]
pub(super) struct Processes {
    groups: HashMap<String, Arc<Cgroup>>,
    /// Of processes, as far as asked.
    group_of: HashMap<u32, Arc<Cgroup>>,
    kernel_threads: HashMap<u32, bool>,
    ending: VecDeque<(Instant, u32)>,
    ended: VecDeque<u32>,
}

impl Processes {
    /// Makes known what a process runs, which may have ended by now.
    pub(super) fn make_known(&mut self, process: u32, parents: &HashMap<u32, u32>, tally: &mut Tally) {
        let entry = tally.processes.entry(process).or_default();
        if entry.name.is_empty() {
            entry.name = name_of(process).unwrap_or_else(|| b"?".to_vec());
        }
        let program = entry.name.clone();
        let is_kernel_thread = *self
            .kernel_threads
            .entry(process)
            .or_insert_with(|| is_kernel_thread(process) || parents.get(&process) == Some(&KERNEL_THREADS));
        let group = self.group(process, parents);
        if let Some(population) = &mut tally.population {
            population.is(process, Runs { program, group, is_kernel_thread });
        }
    }

    /// The control group of a process, or that of the process that made it: it begins there.
    fn group(&mut self, process: u32, parents: &HashMap<u32, u32>) -> Arc<Cgroup> {
        const MOST_ANCESTORS: usize = 16;
        let line = std::iter::successors(Some(process), |process| parents.get(process).copied());
        for ancestor in line.take(MOST_ANCESTORS) {
            let path = cgroups::of_process(ancestor);
            if let Some(path) = path {
                let group = self.groups.entry(path).or_insert_with_key(|path| Arc::new(cgroups::names(path)));
                self.group_of.insert(process, Arc::clone(group));
                return Arc::clone(group);
            }
            if let Some(known) = self.group_of.get(&ancestor) {
                return Arc::clone(known);
            }
        }
        Arc::default()
    }

    /// A process was made; one of its number may have been there before.
    pub(super) fn begun(&mut self, process: u32, tally: &mut Tally) {
        if let Some(at) = self.ending.iter().position(|(_, ending)| *ending == process) {
            self.ending.remove(at);
            self.end(process, tally);
        }
        self.group_of.remove(&process);
        self.kernel_threads.remove(&process);
        self.ended.retain(|ended| *ended != process);
        if let Some(population) = &mut tally.population {
            population.began += 1;
        }
    }

    /// A process executes another program or has another name: it is asked again when it is
    /// sampled.
    pub(super) fn renamed(process: u32, tally: &mut Tally) {
        if let Some(population) = &mut tally.population {
            population.forget(process);
        }
    }

    /// A process's first thread has ended.
    pub(super) fn ending(&mut self, process: u32, tally: &mut Tally) {
        if let Some(population) = &mut tally.population {
            population.ended += 1;
        }
        self.ending.push_back((Instant::now(), process));
    }

    /// Forgets what has ended a while ago.
    pub(super) fn tidy_up(&mut self, parents: &mut HashMap<u32, u32>, tally: &mut Tally) {
        while let Some((_, process)) =
            self.ending.front().copied().filter(|(since, _)| since.elapsed() >= GRACE)
        {
            self.ending.pop_front();
            if Path::new(&format!("/proc/{process}")).exists() && !is_zombie_alone(process) {
                self.ending.push_back((Instant::now(), process));
                break;
            }
            self.end(process, tally);
            self.group_of.remove(&process);
            self.kernel_threads.remove(&process);
            parents.remove(&process);
        }
    }

    fn end(&mut self, process: u32, tally: &mut Tally) {
        if let Some(population) = &mut tally.population {
            population.end(process);
        }
        if tally.processes.get(&process).is_some_and(|it| it.threads.is_empty()) {
            tally.processes.remove(&process);
            return;
        }
        self.ended.push_back(process);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            tally.processes.remove(&oldest);
        }
    }

    /// A new record begins: processes may have gone to another control group.
    pub(super) fn ask_again(&mut self) {
        self.groups.clear();
    }
}

fn name_of(process: u32) -> Option<Vec<u8>> {
    let mut name = std::fs::read(format!("/proc/{process}/comm")).ok()?;
    name.truncate(name.trim_ascii_end().len());
    Some(name)
}

/// The fields of `/proc/PID/stat` behind the name.
fn stat(process: u32) -> Option<String> {
    let text = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.rsplit_once(") ")?.1.to_owned())
}

fn is_kernel_thread(process: u32) -> bool {
    const FLAGS: usize = 6;
    let flags = stat(process).and_then(|fields| fields.split(' ').nth(FLAGS)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & IS_KERNEL_THREAD != 0)
}

/// It has ended, with all of its threads, and its parent has not asked for that yet.
fn is_zombie_alone(process: u32) -> bool {
    let is_zombie = stat(process).is_some_and(|fields| fields.starts_with('Z'));
    is_zombie && crate::target::threads_of(process).is_ok_and(|threads| threads.len() <= 1)
}

/// The process that made this one.
pub(super) fn parent_of(process: u32) -> Option<u32> {
    stat(process)?.split(' ').nth(1)?.parse().ok()
}

/// All processes that are there.
pub(super) fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
