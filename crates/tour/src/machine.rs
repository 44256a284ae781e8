//! The machine: what a load takes from the nearest cache and from memory, how many the core can
//! have under way, and what a switch to another program takes.

use crate::ratio::ratio;
use records::machine::{HandOverBy, Machine};
use units::{Latency, Quantity};

const MEMORY: &str = "DRAM";

/// What the machine record says for the story. A figure that is not resolved is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFigures<'m> {
    pub loads: Option<LoadTimes<'m>>,
    /// Loads from memory under way at the highest throughput.
    pub overlap: Option<&'m Quantity>,
    pub switches: Option<SwitchTimes<'m>>,
}

/// Loads from the first cache, and from memory.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadTimes<'m> {
    /// In nanoseconds: of the first cache, and of memory.
    pub near: &'m Quantity,
    pub memory: &'m Latency,
    /// How often as long memory takes, where the intervals tell.
    pub times: Option<Quantity>,
}

/// Switches to another program, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchTimes<'m> {
    pub by_kernel: &'m Quantity,
    pub by_user: &'m Quantity,
    /// The kernel's takes longer than a load from memory, by both intervals.
    pub kernel_outlasts_wait: bool,
}

impl<'m> MachineFigures<'m> {
    pub fn of(machine: &'m Machine) -> Self {
        let memory = machine.levels.iter().find(|level| level.name == MEMORY).map(|level| &level.latency);
        let loads = machine.levels.first().zip(memory).map(|(first, memory)| {
            let near = &first.latency.ns;
            LoadTimes { near, memory, times: ratio(&memory.ns, near) }
        });
        let experiments = &machine.experiments;
        let mlp = experiments.mlp.as_ref().and_then(|outcome| outcome.result.as_ref());
        let overlap = mlp.and_then(|mlp| Some(&mlp.kinds.first()?.sustained));
        let yields = experiments.yields.as_ref().and_then(|outcome| outcome.result.as_ref());
        let by_kernel =
            yields.and_then(|y| y.kernel.iter().find(|k| k.by == HandOverBy::Futex && k.same_cpu));
        let by_user = yields.and_then(|y| y.user.first());
        let switches = by_kernel.zip(by_user).and_then(|(kernel, user)| {
            let (by_kernel, by_user) = (&kernel.cost.ns, &user.cost.ns);
            let taken = by_kernel.estimate()?;
            by_user.estimate()?;
            let wait = memory.and_then(|memory| memory.ns.estimate());
            let kernel_outlasts_wait = wait.is_some_and(|wait| taken.lo > wait.hi);
            Some(SwitchTimes { by_kernel, by_user, kernel_outlasts_wait })
        });
        Self { loads, overlap: overlap.filter(|overlap| overlap.estimate().is_some()), switches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use units::{Estimate, Unit};

    fn recorded() -> Machine {
        let path = testkit::root().join("crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz");
        let (file, mut bytes) = (std::fs::read(path).unwrap(), Vec::new());
        flate2::read::GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
        records::parse::<Machine>(&bytes).unwrap().body
    }

    #[test]
    fn a_recorded_machine_has_all_figures() {
        let machine = recorded();
        let figures = MachineFigures::of(&machine);
        let loads = figures.loads.unwrap();
        let value = |quantity: &Quantity| quantity.value().unwrap();
        assert!((1.0..1.2).contains(&value(loads.near)) && value(&loads.memory.ns) > 100.0);
        assert!((120.0..145.0).contains(&value(&loads.times.unwrap())));
        assert!((19.0..21.0).contains(&value(figures.overlap.unwrap())));
        let switches = figures.switches.unwrap();
        assert!(value(switches.by_kernel) > 2000.0 && value(switches.by_user) < 2.0);
        assert!(switches.kernel_outlasts_wait);
    }

    #[test]
    fn what_is_not_resolved_is_not_told() {
        let mut machine = recorded();
        let wide = Quantity::measured(Estimate::new(143.0, -10.0, 3000.0), Unit::Nanos);
        let memory = machine.levels.iter_mut().find(|level| level.name == MEMORY).unwrap();
        memory.latency.ns = wide;
        let figures = MachineFigures::of(&machine);
        assert_eq!(figures.loads.unwrap().times, None);
        assert!(!figures.switches.unwrap().kernel_outlasts_wait);

        let yields = machine.experiments.yields.as_mut().unwrap().result.as_mut().unwrap();
        yields.user[0].cost.ns = Quantity::unresolved("busy");
        machine.levels.retain(|level| level.name != MEMORY);
        machine.experiments.mlp = None;
        assert_eq!(
            MachineFigures::of(&machine),
            MachineFigures { loads: None, overlap: None, switches: None }
        );
    }
}
