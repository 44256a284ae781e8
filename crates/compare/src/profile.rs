//! The figures of a profile record. A share of CPU time also changes when other code does, so that
//! shares are compared as seconds: share times CPU time.
//!
//! Loads have no address that outlives a build: they go by function, source line and instruction,
//! and those of one name are taken together.

use crate::figure::{Better, Figure, Figures};
use records::profile::{FunctionShare, MemoryObject, Profile, StallingLoad};
use units::{Estimate, Quantity, Unit};

use Better::Lower;

pub(crate) fn figures(profile: &Profile) -> Vec<Figure> {
    let mut figures = Figures::default();
    let summary = &profile.summary;
    figures.headline("elapsed time", Lower, &summary.elapsed);
    figures.headline("CPU time", Lower, &summary.cpu_time);
    let cpu = summary.cpu_time.estimate();
    let of_cpu = |shares: &[&Quantity]| cpu.and_then(|cpu| seconds(cpu, shares)).unwrap_or_else(not_known);
    figures.headline("waiting for loads", Lower, &of_cpu(&[&summary.memory_bound]));
    figures.detail("computing", Lower, &of_cpu(&[&summary.computing]));
    figures.detail("in the kernel", Lower, &of_cpu(&[&summary.in_kernel]));
    figures.detail("waiting for memory", Lower, &of_cpu(&[&summary.by_level.dram]));
    figures.headline("average latency of loads", Lower, &summary.average_latency);
    for (name, loads) in grouped(&profile.loads, load_name) {
        let shares: Vec<&Quantity> = loads.iter().map(|load| &load.stall).collect();
        figures.detail(format!("load {name}"), Lower, &of_cpu(&shares));
        if let [load] = loads[..] {
            figures.detail(format!("latency of load {name}"), Lower, &load.latency);
        }
    }
    for (name, objects) in grouped(&profile.objects, object_name) {
        let shares: Vec<&Quantity> = objects.iter().map(|object| &object.stall).collect();
        figures.detail(format!("object {name}"), Lower, &of_cpu(&shares));
    }
    for (name, functions) in grouped(&profile.functions, function_name) {
        let shares: Vec<&Quantity> = functions.iter().map(|function| &function.time).collect();
        figures.detail(format!("function {name}"), Lower, &of_cpu(&shares));
    }
    figures.0
}

fn not_known() -> Quantity {
    Quantity::unresolved("the record has no such share, or no CPU time")
}

/// Shares of the CPU time, taken together, in seconds.
fn seconds(cpu: Estimate, shares: &[&Quantity]) -> Option<Quantity> {
    let shares: Option<Vec<Estimate>> = shares.iter().map(|share| share.estimate()).collect();
    let shares = shares?;
    let value: f64 = shares.iter().map(|share| share.value).sum();
    let half = |of: fn(&Estimate) -> f64| shares.iter().map(|s| of(s).powi(2)).sum::<f64>().sqrt();
    let (below, above) = (half(|s| s.value - s.lo), half(|s| s.hi - s.value));
    let together = Estimate::new(value, value - below, value + above);
    Some(Quantity::modelled(together.scaled(cpu.value), Unit::Seconds))
}

/// In the order of their first appearance.
fn grouped<T>(all: &[T], name: impl Fn(&T) -> String) -> Vec<(String, Vec<&T>)> {
    let mut groups: Vec<(String, Vec<&T>)> = Vec::new();
    for one in all {
        let name = name(one);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(one),
            None => groups.push((name, vec![one])),
        }
    }
    groups
}

fn load_name(load: &StallingLoad) -> String {
    let function = match &load.function {
        Some(function) => function.clone(),
        None => format!("{}+{:#x}", last(&load.module), load.address),
    };
    match (&load.file, load.line) {
        (Some(file), Some(line)) => format!("{function} {}:{line}: {}", last(file), load.instruction),
        _ => format!("{function}: {}", load.instruction),
    }
}

fn object_name(object: &MemoryObject) -> String {
    object.name.clone()
}

fn function_name(function: &FunctionShare) -> String {
    let module = last(&function.module);
    match &function.function {
        Some(name) => format!("{name} in {module}"),
        None => format!("{module}+{:#x}", function.address),
    }
}

/// A file without its directories, which differ from one checkout to the next.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
