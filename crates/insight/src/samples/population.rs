//! Whom samples belong to, where all processes of a machine are sampled: each process by itself
//! while it runs; behind its end those of one program in one control group together, so that
//! memory does not grow with the number of processes that come and go.

use crate::samples::address_space::Place;
use records::profile::Cgroup;
use std::collections::HashMap;
use std::sync::Arc;

/// What a process runs, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runs {
    /// Its name, as the kernel has it.
    pub program: Vec<u8>,
    pub group: Arc<Cgroup>,
    pub is_kernel_thread: bool,
}

/// Samples at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub user: u64,
    pub kernel: u64,
}

/// Samples of one process, or of several.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Of one process.
    pub pid: Option<u32>,
    pub processes: u64,
    /// By place; those at no known place, too.
    pub counts: HashMap<Option<Place>, Counts>,
}

impl Row {
    pub fn samples(&self) -> u64 {
        self.counts.values().map(|counts| counts.user + counts.kernel).sum()
    }

    /// Counts what another row has counted.
    pub fn add(&mut self, other: &Self) {
        self.pid = if self.processes == 0 { other.pid } else { None };
        self.processes += other.processes;
        for (place, counts) in &other.counts {
            let own = self.counts.entry(*place).or_default();
            own.user += counts.user;
            own.kernel += counts.kernel;
        }
    }
}

/// The samples of all processes.
#[derive(Clone, Debug, Default)]
pub struct Population {
    /// What runs now.
    now: HashMap<u32, Arc<Runs>>,
    running: HashMap<u32, Vec<(Arc<Runs>, Row)>>,
    over: HashMap<Arc<Runs>, Row>,
    pub began: u64,
    pub ended: u64,
}

impl Population {
    /// A process runs this from now on.
    pub fn is(&mut self, process: u32, runs: Runs) {
        self.now.insert(process, Arc::new(runs));
    }

    /// What a process runs, if that is known.
    pub fn runs(&self, process: u32) -> Option<&Arc<Runs>> {
        self.now.get(&process)
    }

    /// All samples: what ran, the process if it is still there, and how many of them at each place.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<Runs>, Option<u32>, &HashMap<Option<Place>, Counts>)> {
        let running = self.running.values().flatten().map(|(runs, row)| (runs, row.pid, &row.counts));
        running.chain(self.over.iter().map(|(runs, row)| (runs, None, &row.counts)))
    }

    /// It is not known any more what a process runs.
    pub fn forget(&mut self, process: u32) {
        self.now.remove(&process);
    }

    pub fn count(&mut self, process: u32, place: Option<Place>, in_kernel: bool) {
        let runs = Arc::clone(self.now.entry(process).or_default());
        let rows = self.running.entry(process).or_default();
        let at = rows.iter().position(|(of, _)| *of == runs).unwrap_or_else(|| {
            rows.push((runs, Row { pid: Some(process), processes: 1, counts: HashMap::new() }));
            rows.len() - 1
        });
        let counts = rows[at].1.counts.entry(place).or_default();
        if in_kernel { counts.kernel += 1 } else { counts.user += 1 }
    }

    /// A process has ended.
    pub fn end(&mut self, process: u32) {
        self.now.remove(&process);
        for (runs, row) in self.running.remove(&process).into_iter().flatten() {
            self.over.entry(runs).or_default().add(&row);
        }
    }

    /// All rows. A process whose share of all samples is at least this has one of its own.
    pub fn rows(&self, least: f64) -> Vec<(Arc<Runs>, Row)> {
        let all = self.running.values().flatten().map(|(_, row)| row).chain(self.over.values());
        let least = least * all.map(Row::samples).sum::<u64>() as f64;
        let mut together = self.over.clone();
        let mut rows = Vec::new();
        for (runs, row) in self.running.values().flatten() {
            if row.samples() as f64 >= least {
                rows.push((Arc::clone(runs), row.clone()));
            } else {
                together.entry(Arc::clone(runs)).or_default().add(row);
            }
        }
        rows.extend(together);
        rows.sort_by(|(a, x), (b, y)| {
            let key = |runs: &Runs| (runs.program.clone(), Arc::clone(&runs.group));
            y.samples().cmp(&x.samples()).then_with(|| key(a).cmp(&key(b))).then_with(|| x.pid.cmp(&y.pid))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(program: &str) -> Runs {
        Runs { program: program.as_bytes().to_vec(), ..Runs::default() }
    }

    #[test]
    fn short_processes_of_one_program_share_a_row() {
        let mut all = Population::default();
        for process in 1..=500 {
            all.is(process, runs("sh"));
            all.count(process, None, process % 2 == 0);
            all.end(process);
        }
        all.is(1000, runs("server"));
        for _ in 0..500 {
            all.count(1000, None, false);
        }
        let rows = all.rows(0.01);
        let told: Vec<_> = rows
            .iter()
            .map(|(runs, row)| (&runs.program[..], row.pid, row.processes, row.samples()))
            .collect();
        assert_eq!(told, [(&b"server"[..], Some(1000), 1, 500), (b"sh", None, 500, 500)]);
        assert_eq!(rows[1].1.counts[&None], Counts { user: 250, kernel: 250 });
        assert_eq!(all.running.len(), 1, "those that have ended are not kept one by one");
    }

    #[test]
    fn a_process_that_executes_another_program_has_two_rows() {
        let mut all = Population::default();
        all.is(7, runs("sh"));
        all.count(7, None, false);
        all.is(7, runs("cc"));
        all.count(7, None, false);
        let rows = all.rows(0.0);
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|(_, row)| row.pid == Some(7) && row.samples() == 1));
    }
}
