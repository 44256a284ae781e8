//! **prefetch**: what the hardware prefetchers do.
//!
//! The same patterns are walked with the prefetchers as found and, where the host allows it, with
//! each of them switched (off if on, on if off) and with all off. All of these are interleaved, and
//! the original setting is put back whatever happens. Where nothing can be switched, only the
//! patterns tell:
//!
//! - how much cheaper an ascending stream is than a random order: how many lines are fetched ahead;
//! - runs of growing length: after how many lines a prefetcher starts, and what a page boundary
//!   costs;
//! - interleaved streams: how many a prefetcher follows at a time.

mod controls;
mod plan;
mod reveal;

use crate::chase_batches::{self, ChasePass};
use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency;
use controls::PrefetchControl;
use lab::chain::Layout;
use lab::rigs::{ChaseRig, Rig, SharedSetting, WithSettingRig};
use lab::settings::Change;
use records::machine::{ControlOutcome, Machine, PrefetchState, Prefetching, ProbePoint};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use units::Bytes;

/// A control that works: the setting, and the names and values of its states.
type SwitchedControl = (Rc<SharedSetting>, Vec<(String, Vec<u8>)>);

pub(crate) const ENTRY: Entry = Entry {
    name: "prefetch",
    about: "prefetchers: each off and on; where they cannot be switched, what access patterns reveal",
    needs: Some("root on bare metal, to switch prefetchers; elsewhere only patterns are measured"),
    seconds: ByEffort { quick: 3.0, normal: 15.0, thorough: 60.0 },
    run: |ctx, machine| machine.experiments.prefetch = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.prefetch.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Prefetching, Refused> {
    let line = ctx.line();
    let (outcome, switched) = take_control(ctx);
    let mut states: Vec<PrefetchState> =
        vec![PrefetchState { name: "as found".to_owned(), setting: None, probes: Vec::new() }];
    if let Some((_, others)) = &switched {
        states.extend(others.iter().map(|(name, value)| PrefetchState {
            name: name.clone(),
            setting: Some(lab_value(value)),
            probes: Vec::new(),
        }));
    }

    let settings = plan::settings(ctx, line);
    let layouts: Vec<Layout> = settings.iter().map(|s| plan::layout(s.1, s.0, line)).collect();
    let pass = ChasePass {
        block: Duration::from_micros(ctx.pick(300, 1000, 1500)),
        blocks: ctx.pick(9, 15, 31),
        share: 0.7,
        cap: latency::largest(ctx),
    };
    let pages = latency::main_pages(ctx);
    let rigs_of = |rig: ChaseRig| -> Vec<Box<dyn Rig>> {
        let Some((switch, others)) = &switched else { return vec![Box::new(rig)] };
        let found = [switch.original().to_vec()];
        let values = found.iter().chain(others.iter().map(|(_, value)| value));
        values
            .map(|value| {
                Box::new(WithSettingRig::new(Box::new(rig.clone()), switch.clone(), value.clone()))
                    as Box<dyn Rig>
            })
            .collect()
    };
    let (chased, supply) = chase_batches::chase_each(ctx, &layouts, pages, pass, &rigs_of)?;
    if let Some(why) = switched.as_ref().and_then(|(switch, _)| switch.failure()) {
        return Err(Refused { not_possible: false, why, would_help: None });
    }
    for ((size, probe), by_state) in settings.iter().zip(chased) {
        for (state, chased) in states.iter_mut().zip(by_state) {
            state.probes.push(ProbePoint {
                size: *size,
                probe: *probe,
                latency: chased.latency,
                blocks: chased.blocks,
                voided: chased.voided,
            });
        }
    }
    let revealed = reveal::all(&states[0].probes, Bytes(line));
    Ok(Prefetching { pages: supply, control: outcome, states, revealed })
}

fn lab_value(value: &[u8]) -> String {
    match <[u8; 8]>::try_from(value) {
        Ok(bytes) => format!("{:#x}", u64::from_le_bytes(bytes)),
        Err(_) => String::from_utf8_lossy(value).trim().to_owned(),
    }
}

/// The control, if there is one and it works: tried with its first state, before anything is
/// measured.
fn take_control(ctx: &Context<'_>) -> (ControlOutcome, Option<SwitchedControl>) {
    let refused = |detail: String, help: String| {
        (ControlOutcome { switched: false, detail, would_help: Some(help) }, None)
    };
    let PrefetchControl { place, states } = match controls::find(Path::new("/"), ctx.host, ctx.cpu()) {
        Ok(control) => control,
        Err(none) => return refused(none.why, none.would_help),
    };
    let name = place.to_string();
    let switch = match Change::of(place) {
        Ok(change) => SharedSetting::new(change),
        Err(error) => {
            return refused(
                error.to_string(),
                "run as root, with no other run of Gleaner on this machine".to_owned(),
            );
        }
    };
    let original = switch.original().to_vec();
    let tried =
        states.first().map_or(Ok(()), |(_, value)| switch.to(value)).and_then(|()| switch.to(&original));
    match tried {
        Ok(()) => {
            let detail = format!("{name}, which was {} before", lab_value(&original));
            (ControlOutcome { switched: true, detail, would_help: None }, Some((switch, states)))
        }
        Err(why) => refused(why, "a host on which root may write it; most often bare metal".to_owned()),
    }
}
