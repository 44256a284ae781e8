//! The tree of calls as the formats need it: callers of a node, names, samples as time.
//!
//! Samples become time by one factor for the whole record: all samples of the tree together are the
//! CPU time of the summary. What a function takes itself is by all samples of the run; who calls
//! it, by those with a stack.

use crate::clean::clean;
use crate::{ExportError, Weight};
use records::Document;
use records::profile::{CallFrame, CallNode, Profile};
use std::borrow::Cow;

/// Who called what, with samples.
pub(crate) struct Stacks<'p> {
    frames: Cow<'p, [CallFrame]>,
    nodes: Cow<'p, [CallNode]>,
    ns_a_sample: f64,
}

/// A function by what names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Function<'s> {
    pub module: Option<&'s str>,
    pub name: Option<&'s str>,
}

impl<'p> Stacks<'p> {
    pub(crate) fn of(profile: &'p Profile) -> Result<Self, ExportError> {
        let (frames, nodes) = if crate::has_stacks(profile) {
            (Cow::Borrowed(&*profile.calls.frames), Cow::Borrowed(&*profile.calls.nodes))
        } else {
            let (frames, nodes) = flat(profile);
            (Cow::Owned(frames), Cow::Owned(nodes))
        };
        let is_damaged = |(index, node): (usize, &CallNode)| {
            node.frame >= frames.len() || node.caller.is_some_and(|caller| caller >= index)
        };
        if let Some(index) = nodes.iter().enumerate().position(is_damaged) {
            return Err(ExportError::Damaged(index));
        }
        let samples: u64 = nodes.iter().map(|node| node.samples).sum();
        let ns_a_sample = cpu_time_ns(profile) / samples.max(1) as f64;
        Ok(Self { frames, nodes, ns_a_sample })
    }

    pub(crate) fn frames(&self) -> &[CallFrame] {
        &self.frames
    }

    /// A caller comes before what it calls.
    pub(crate) fn nodes(&self) -> &[CallNode] {
        &self.nodes
    }

    pub(crate) fn frame(&self, node: usize) -> &CallFrame {
        &self.frames[self.nodes[node].frame]
    }

    /// CPU time that one sample stands for.
    pub(crate) fn ns_a_sample(&self) -> f64 {
        self.ns_a_sample
    }

    pub(crate) fn ns(&self, samples: u64) -> u64 {
        (samples as f64 * self.ns_a_sample).round() as u64
    }

    /// A node and its callers, the innermost first.
    pub(crate) fn outwards(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(node), |&node| self.nodes[node].caller)
    }

    /// The frames of a node and its callers by places, the innermost first: those that are inlined
    /// there, and the function that holds them.
    pub(crate) fn places(&self, node: usize) -> Vec<Vec<usize>> {
        let (mut places, mut place) = (Vec::new(), Vec::new());
        for node in self.outwards(node) {
            place.push(self.nodes[node].frame);
            if !self.frame(node).is_inlined {
                places.push(std::mem::take(&mut place));
            }
        }
        places.extend(Some(place).filter(|place| !place.is_empty()));
        places
    }

    /// Nodes with samples of this weight, and their count.
    pub(crate) fn sampled(&self, weight: Weight) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.nodes.iter().map(move |node| weight.of(node)).enumerate();
        counts.filter(|(_, samples)| *samples > 0)
    }

    pub(crate) fn total(&self, weight: Weight) -> u64 {
        self.nodes.iter().map(|node| weight.of(node)).sum()
    }

    pub(crate) fn function(&self, node: usize) -> Function<'_> {
        let frame = self.frame(node);
        Function { module: frame.module.as_deref(), name: frame.function.as_deref() }
    }
}

impl Weight {
    pub(crate) fn of(self, node: &CallNode) -> u64 {
        match self {
            Self::Time => node.samples,
            Self::Stall => node.stall,
        }
    }

    /// As a type of samples, in formats that name those.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Time => "cpu",
            Self::Stall => "stall",
        }
    }

    /// As it stands in other tools.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Time => "CPU time",
            Self::Stall => "waiting for loads",
        }
    }
}

impl Function<'_> {
    /// Its name; something in its place where it has none.
    pub(crate) fn text(self) -> String {
        match (self.name, self.module) {
            (Some(name), _) => clean(name),
            (None, Some(module)) => clean(&format!("[{}]", file_name(module))),
            (None, None) => "[unknown]".to_owned(),
        }
    }
}

/// The function of a frame by its name.
pub(crate) fn name(frame: &CallFrame) -> String {
    Function { module: frame.module.as_deref(), name: frame.function.as_deref() }.text()
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// When a run began, in nanoseconds since 1970, and how many it took: its record is written at its
/// end.
pub(crate) fn times_ns(document: &Document<Profile>) -> [u64; 2] {
    let elapsed_ns = document.body.summary.elapsed.value().unwrap_or(0.0) * 1e9;
    let written: Option<jiff::Timestamp> = document.header.created.parse().ok();
    let began_ns = written.map_or(0.0, |time| time.as_second() as f64 * 1e9 - elapsed_ns);
    [began_ns.max(0.0) as u64, elapsed_ns as u64]
}

/// The program in words, as its user typed it.
pub(crate) fn command(profile: &Profile) -> String {
    let program = &profile.program;
    if profile.system.is_some() {
        return "all processes".to_owned();
    }
    match (program.pid, &program.perf_data) {
        (_, Some(file)) => clean(&file.path),
        (Some(pid), None) if program.command.is_empty() => format!("process {pid}"),
        _ => clean(&program.command.join(" ")),
    }
}

/// The CPU time of the run; where the record does not say, that of its samples.
pub(crate) fn cpu_time_ns(profile: &Profile) -> f64 {
    let seconds = profile.summary.cpu_time.value().or_else(|| {
        let frequency = profile.sampling.frequency.value().filter(|hertz| *hertz > 0.0)?;
        Some(profile.sampling.samples as f64 / frequency)
    });
    seconds.unwrap_or(0.0) * 1e9
}

/// The functions below the program, and what no function has below it, too: so the sum is whole.
fn flat(profile: &Profile) -> (Vec<CallFrame>, Vec<CallNode>) {
    let mut frames = vec![named(command(profile))];
    let mut nodes = vec![CallNode { caller: None, frame: 0, samples: 0, stall: 0 }];
    let mut add = |frame: CallFrame, samples: u64, stall: u64| {
        if samples > 0 {
            nodes.push(CallNode { caller: Some(0), frame: frames.len(), samples, stall });
            frames.push(frame);
        }
    };
    let all = profile.sampling.samples;
    let of_all = |share: &units::Quantity| {
        share.value().map_or(0, |share| (share.clamp(0.0, 1.0) * all as f64).round() as u64)
    };
    let mut left = all;
    for function in &profile.functions {
        let name = function.function.clone();
        let name = name.unwrap_or_else(|| format!("{}+{:#x}", file_name(&function.module), function.address));
        let module = Some(function.module.clone());
        let frame = CallFrame { module, address: Some(function.address), ..named(name) };
        add(frame, function.samples, of_all(&function.stall).min(function.samples));
        left = left.saturating_sub(function.samples);
    }
    let kernel = of_all(&profile.summary.in_kernel).min(left);
    add(named("[kernel]".to_owned()), kernel, 0);
    add(named("[no function]".to_owned()), left - kernel, 0);
    (frames, nodes)
}

fn named(function: String) -> CallFrame {
    let function = Some(function);
    CallFrame { function, module: None, address: None, file: None, line: None, is_inlined: false }
}
