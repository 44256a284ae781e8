//! **yield**: what it costs to switch to other work.
//!
//! Without the kernel: a switch between contexts of one thread, inlined, by the number of registers
//! that live across it. With the kernel: two threads that hand over to each other by futex, pipe or
//! `sched_yield`, on one CPU (each hand-over is a switch of threads) and between two (each is a
//! wake-up on the other). Beside them the parts of such switches: a call, a reading of the clock,
//! an empty system call. A hand-over costs half a round trip.

use crate::chase_batches::ChaseResult;
use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use kernels::Spec;
use lab::code::Loaded;
use lab::rigs::{HandOverMeans, HandOverRig, Rig, SmallCall, SmallCallRig, SwitchRig};
use records::machine::{Call, CallCost, HandOver, HandOverBy, Machine, UserSwitch, Yields};
use std::time::Duration;
use units::{Latency, Unit};

/// What one switch saves, and from how many places in the code it switches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchShape {
    general_registers: u32,
    flags: bool,
    vector_registers: u32,
    sites: u32,
}

const fn general(general_registers: u32, sites: u32) -> SwitchShape {
    SwitchShape { general_registers, flags: false, vector_registers: 0, sites }
}

const fn with_flags(shape: SwitchShape) -> SwitchShape {
    SwitchShape { flags: true, ..shape }
}

const fn with_vectors(vector_registers: u32, shape: SwitchShape) -> SwitchShape {
    SwitchShape { vector_registers, ..shape }
}

const SWITCHES: &[SwitchShape] = &[
    general(0, 1),
    general(1, 1),
    general(2, 1),
    general(0, 2),
    general(1, 2),
    general(2, 2),
    general(4, 2),
    general(8, 2),
    general(14, 2),
    with_flags(general(2, 2)),
    with_vectors(1, general(2, 2)),
    with_vectors(4, general(2, 2)),
    with_vectors(16, general(2, 2)),
    with_vectors(16, with_flags(general(14, 2))),
    general(2, 4),
];

impl SwitchShape {
    pub(crate) fn rig(&self) -> Result<Box<dyn Rig>, Refused> {
        let Self { general_registers: live, flags, vector_registers: vectors, sites } = *self;
        Ok(Box::new(SwitchRig::new(load(&Spec::Switch { live, flags, vectors, sites })?)))
    }

    pub(crate) fn told(&self, cost: Latency) -> UserSwitch {
        UserSwitch {
            live: self.general_registers,
            flags: self.flags,
            vectors: self.vector_registers,
            sites: self.sites,
            cost,
        }
    }
}

/// Those whose jumps predict as in programs.
pub(crate) fn switches_in_programs() -> Vec<SwitchShape> {
    SWITCHES.iter().copied().filter(|shape| shape.sites == 2).collect()
}

const CALLS: [Call; 4] = [Call::Function, Call::ReadTsc, Call::SystemCall, Call::YieldToNobody];
const WAYS: [(HandOverBy, HandOverMeans); 3] = [
    (HandOverBy::Futex, HandOverMeans::Futex),
    (HandOverBy::Pipe, HandOverMeans::Pipe),
    (HandOverBy::SchedYield, HandOverMeans::SchedYield),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "yield",
    about: "the cost of switching to other work, with the kernel and without",
    needs: None,
    seconds: ByEffort { quick: 3.0, normal: 12.0, thorough: 40.0 },
    run: |ctx, machine| machine.experiments.yields = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.yields.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Yields, Refused> {
    let block = Duration::from_micros(ctx.pick(500, 1000, 2000));
    let blocks = ctx.pick(15, 61, 121);

    ctx.stage(0.0, 0.5);
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for shape in SWITCHES {
        rigs.push(shape.rig()?);
    }
    for what in CALLS {
        let what = match what {
            Call::Function => SmallCall::Function(load(&Spec::Nothing)?),
            Call::ReadTsc => SmallCall::ReadTsc,
            Call::SystemCall => SmallCall::SystemCall,
            Call::YieldToNobody => SmallCall::SchedYieldAlone,
        };
        rigs.push(Box::new(SmallCallRig::new(what)));
    }
    let gathered = ctx.measure(rigs, block, blocks, 0.4);
    let costs: Vec<Latency> = gathered.series.iter().map(|s| ChaseResult::of(ctx, s).latency).collect();
    let (of_switches, of_calls) = costs.split_at(SWITCHES.len());
    let user = SWITCHES.iter().zip(of_switches).map(|(shape, cost)| shape.told(cost.clone())).collect();
    let calls =
        CALLS.into_iter().zip(of_calls).map(|(what, cost)| CallCost { what, cost: cost.clone() }).collect();

    ctx.stage(0.5, 1.0);
    let kernel = if ctx.stop.asked() { Vec::new() } else { hand_overs(ctx, block, blocks)? };
    Ok(Yields { user, kernel, calls })
}

fn load(spec: &Spec) -> Result<Loaded, Refused> {
    Ok(Loaded::of(spec)?)
}

/// Hand-overs on the measuring CPU, and between it and another one if there is one.
fn hand_overs(ctx: &mut Context<'_>, block: Duration, blocks: usize) -> Result<Vec<HandOver>, Refused> {
    let cpu = ctx.cpu();
    let other = ctx.host.usable_cpus().into_iter().map(|c| c as usize).find(|&c| c != cpu);
    let mut settings = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for partner in [Some(cpu), other].into_iter().flatten() {
        for (by, way) in WAYS {
            // Between CPUs it is no hand-over: no other thread wants the CPU that is given up.
            if partner != cpu && by == HandOverBy::SchedYield {
                continue;
            }
            rigs.push(Box::new(HandOverRig::new(way, cpu, partner)?));
            settings.push((by, partner));
        }
    }
    let gathered = ctx.measure(rigs, block * 4, blocks, 0.5);
    Ok(settings
        .into_iter()
        .zip(&gathered.series)
        .map(|((by, partner), series)| {
            let calls = (by == HandOverBy::SchedYield)
                .then(|| ctx.quantity(series, Unit::Count, |b| b.values.get(1).copied().unwrap_or(f64::NAN)));
            HandOver {
                by,
                partner_cpu: partner as u32,
                same_cpu: partner == cpu,
                cost: ChaseResult::of(ctx, series).latency,
                calls,
            }
        })
        .collect())
}
