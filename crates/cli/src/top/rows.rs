//! Samples summed up by program, by function of a program, or by line of a function: of the window
//! and since the beginning.

use super::Sort;
use crate::plain::escaped;
use insight::PlaceTold;
use insight::samples::{Counts, Place, Runs};
use records::profile::Cgroup;
use sampler::system::{Machine, Moment};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    pub program: Option<Arc<Runs>>,
    pub function: Option<Function>,
}

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub name: String,
    pub module: String,
    pub start: u64,
}

/// What a row stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Program(Arc<Runs>),
    Function(Function),
    /// A file and a line of it; or an instruction, where there are no lines.
    Line(String, u32),
    Instruction(u64),
    /// Time in the kernel.
    Kernel,
    /// In code that is not known yet, or that no file has.
    Unknown,
}

/// Samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub samples: u64,
    /// In which the core waited for a load.
    pub waits: u64,
    pub kernel: u64,
}

impl Sum {
    fn add(&mut self, counts: Counts, waits: bool) {
        self.samples += counts.user + counts.kernel;
        self.kernel += counts.kernel;
        self.waits += if waits { counts.user } else { 0 };
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub key: Key,
    pub now: Sum,
    pub all: Sum,
    /// Of programs: processes that were sampled in the window, and one of them.
    pub processes: usize,
    pub process: Option<u32>,
}

/// What one sample is worth, as a share of what all CPUs had to give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    pub now: f64,
    pub all: f64,
}

impl Worth {
    pub(super) fn of(machine: &Machine, window: Duration) -> Self {
        let worth = |time: Duration| {
            let all = machine.frequency_hz() as f64 * machine.cpus() as f64 * time.as_secs_f64();
            if all > 0.0 { 1.0 / all } else { 0.0 }
        };
        Self { now: worth(window), all: worth(machine.elapsed()) }
    }
}

/// The rows of a scope, sorted.
#[derive(Debug, Default)]
pub(super) struct Rows {
    by_key: HashMap<Key, (Sum, Sum, Vec<u32>)>,
    /// All samples of the window, and those whose code is not known.
    pub samples: u64,
    pub unknown: u64,
}

impl Rows {
    /// Sums up what a machine has sampled.
    pub(super) fn of(
        machine: &Machine,
        recent: &[Moment],
        scope: &Scope,
        told: &HashMap<Place, PlaceTold>,
    ) -> Self {
        let mut rows = Self::default();
        for moment in recent {
            let counts = Counts { user: u64::from(!moment.in_kernel), kernel: u64::from(moment.in_kernel) };
            rows.add(scope, told, &moment.runs, Some(moment.process), moment.place, counts, true);
        }
        for (runs, _, counts) in machine.population().into_iter().flat_map(insight::samples::Population::all)
        {
            for (place, counts) in counts {
                rows.add(scope, told, runs, None, *place, *counts, false);
            }
        }
        rows
    }

    #[expect(clippy::too_many_arguments, reason = "a sample has as many parts")]
    fn add(
        &mut self,
        scope: &Scope,
        told: &HashMap<Place, PlaceTold>,
        runs: &Arc<Runs>,
        process: Option<u32>,
        place: Option<Place>,
        counts: Counts,
        is_now: bool,
    ) {
        let words = place.and_then(|place| told.get(&place));
        if is_now {
            self.samples += counts.user + counts.kernel;
            self.unknown += if words.is_none() { counts.user } else { 0 };
        }
        if scope.program.as_ref().is_some_and(|program| program != runs) {
            return;
        }
        let waits = words.is_some_and(|words| words.load.is_some());
        if scope.program.is_none() {
            return self.count(Key::Program(Arc::clone(runs)), process, counts, waits, is_now);
        }
        let function = words.map(|words| Function {
            name: words.function.clone(),
            module: words.module.clone(),
            start: words.start,
        });
        match &scope.function {
            None => {
                let user = Counts { kernel: 0, ..counts };
                self.count(function.map_or(Key::Unknown, Key::Function), process, user, waits, is_now);
                self.count(Key::Kernel, process, Counts { user: 0, ..counts }, false, is_now);
            }
            Some(wanted) if function.as_ref() == Some(wanted) => {
                let key = words.map_or(Key::Unknown, |words| match (&words.line, words.load) {
                    (Some((file, line)), _) => Key::Line(file.clone(), *line),
                    (None, Some(load)) => Key::Instruction(load),
                    (None, None) => Key::Unknown,
                });
                self.count(key, process, Counts { kernel: 0, ..counts }, waits, is_now);
            }
            Some(_) => {}
        }
    }

    fn count(&mut self, key: Key, process: Option<u32>, counts: Counts, waits: bool, is_now: bool) {
        if counts == Counts::default() {
            return;
        }
        let (now, all, processes) = self.by_key.entry(key).or_default();
        if is_now { now } else { all }.add(counts, waits);
        if let Some(process) = process.filter(|process| !processes.contains(process)) {
            processes.push(process);
        }
    }

    /// All of them, by what comes first.
    pub(super) fn sorted(&self, sort: Sort, of_window: bool) -> Vec<Row> {
        let mut rows: Vec<Row> = self
            .by_key
            .iter()
            .map(|(key, (now, all, processes))| Row {
                key: key.clone(),
                now: *now,
                all: *all,
                processes: processes.len(),
                process: processes.first().copied().filter(|_| processes.len() == 1),
            })
            .collect();
        rows.sort_by(|a, b| {
            let (x, y) = if of_window { (a.now, b.now) } else { (a.all, b.all) };
            let by = |x: u64, y: u64| y.cmp(&x);
            let first = match sort {
                Sort::Waits => by(x.waits, y.waits),
                Sort::Time => by(x.samples, y.samples),
                Sort::Kernel => by(x.kernel, y.kernel),
                Sort::Name => a.key.name().cmp(&b.key.name()),
            };
            first
                .then(by(x.samples, y.samples))
                .then(by(a.all.samples, b.all.samples))
                .then_with(|| a.key.name().cmp(&b.key.name()))
        });
        rows
    }
}

impl Key {
    /// As it is shown; it may come from any file or process.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Program(runs) => {
                let name = escaped(&String::from_utf8_lossy(&runs.program));
                if runs.is_kernel_thread { format!("[{name}]") } else { name }
            }
            Self::Function(function) => escaped(&function.name),
            Self::Line(file, line) => format!("{}:{line}", escaped(last_part(file))),
            Self::Instruction(address) => format!("{address:#x}"),
            Self::Kernel => "[in the kernel]".to_owned(),
            Self::Unknown => "[not known]".to_owned(),
        }
    }

    /// What tells it from others of its name.
    pub(super) fn detail(&self) -> String {
        match self {
            Self::Program(runs) if runs.is_kernel_thread => "thread of the kernel".to_owned(),
            Self::Program(runs) => group(&runs.group),
            Self::Function(function) => escaped(last_part(&function.module)),
            Self::Line(file, _) => escaped(file),
            _ => String::new(),
        }
    }
}

fn group(group: &Cgroup) -> String {
    escaped(group.brief().unwrap_or_default())
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A share of what all CPUs had to give, in percent, with half of its interval: `12.3 ±0.8`.
pub(super) fn percent(samples: u64, worth: f64) -> String {
    let off = 1.96 * (samples as f64).sqrt().max(1.0);
    format!("{:.1} ±{:.1}", 100.0 * samples as f64 * worth, 100.0 * off * worth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insight::samples::MappedId;
    use units::FileOffset;

    fn place(offset: u64) -> Place {
        Place { what: MappedId(0), offset: FileOffset(offset) }
    }

    fn told() -> HashMap<Place, PlaceTold> {
        let one = |function: &str, start, load, line| PlaceTold {
            module: "/usr/bin/db".to_owned(),
            function: function.to_owned(),
            start,
            load,
            line: Some(("/src/db.c".to_owned(), line)),
        };
        HashMap::from([
            (place(1), one("find", 0, Some(1), 10)),
            (place(2), one("find", 0, None, 11)),
            (place(3), one("sort", 64, None, 90)),
        ])
    }

    fn rows(scope: &Scope, runs: &Arc<Runs>) -> Rows {
        let (told, mut rows) = (told(), Rows::default());
        let mut add = |place: Option<Place>, user, kernel| {
            rows.add(scope, &told, runs, Some(7), place, Counts { user, kernel }, true);
        };
        add(Some(place(1)), 6, 1);
        add(Some(place(2)), 2, 0);
        add(Some(place(3)), 4, 0);
        add(None, 1, 0);
        rows
    }

    fn shown(rows: &Rows) -> Vec<(String, u64, u64)> {
        let row = |row: Row| (row.key.name(), row.now.samples, row.now.waits);
        rows.sorted(Sort::Waits, true).into_iter().map(row).collect()
    }

    fn texts(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        rows.iter().map(|&(name, samples, waits)| (name.to_owned(), samples, waits)).collect()
    }

    #[test]
    fn samples_are_summed_up_by_what_is_looked_at() {
        let runs = Arc::new(Runs { program: b"db\x1b[2J".to_vec(), ..Runs::default() });
        let programs = rows(&Scope::default(), &runs);
        assert_eq!(shown(&programs), texts(&[("db\\u{1b}[2J", 14, 6)]));
        assert_eq!((programs.samples, programs.unknown), (14, 1));
        let mut scope = Scope { program: Some(Arc::clone(&runs)), function: None };
        let functions = rows(&scope, &runs);
        let wanted = [("find", 8, 6), ("sort", 4, 0), ("[in the kernel]", 1, 0), ("[not known]", 1, 0)];
        assert_eq!(shown(&functions), texts(&wanted));
        let Key::Function(find) = functions.sorted(Sort::Waits, true)[0].key.clone() else { panic!() };
        scope.function = Some(find);
        assert_eq!(shown(&rows(&scope, &runs)), texts(&[("db.c:10", 6, 6), ("db.c:11", 2, 0)]));
        scope.program = Some(Arc::default());
        assert_eq!(shown(&rows(&scope, &runs)), [], "of another program");
    }

    #[test]
    fn shares_are_of_all_cpus() {
        assert_eq!(percent(100, 1.0 / 1000.0), "10.0 ±2.0");
        assert_eq!(percent(0, 1.0 / 1000.0), "0.0 ±0.2");
    }
}
