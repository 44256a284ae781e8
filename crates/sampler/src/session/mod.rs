//! One run: its method chosen and calibrated, the program started or attached to, its samples
//! counted until it ends, and the profile made of them.
//!
//! ```text
//! begin   the program, started or attached to
//! watch   its samples, counted until it ends
//! ```

mod begin;
mod set_id;
mod watch;

pub(crate) use self::begin::allow_all_files;

use self::begin::{Watched, begin};
use self::watch::watch;
use crate::allocations::left_out;
use crate::allocations::region::Region;
use crate::files;
use crate::made_code::{self, Asked};
use crate::method::clock::ByClock;
use crate::method::signals::BySignals;
use crate::method::{Ended, Method, Probing};
use crate::probes::{Allowance, Probes};
use crate::request::{Backend, FindsOut, Request, SampleError, Subject};
use crate::target::{cpu_time_of_children, told_by};
use insight::probes::Timing;
use lab::stop::Stop;
use records::profile::{Calibration, Profile, ProfiledProgram};
use std::time::{Duration, Instant};
use units::{Bytes, Estimate, Quantity, Unit};

/// Profiles where the program's time goes, and says how the program ended as well.
pub fn run(request: &Request, stop: Stop) -> Result<Profile, SampleError> {
    run_by(&*method(request)?, request, stop)
}

/// The kernel's events if they may be used; else, or if asked for, signals.
fn method(request: &Request) -> Result<Box<dyn Method>, SampleError> {
    let is_started = matches!(request.subject, Subject::Command(_));
    if request.backend == Backend::Signal {
        if !is_started {
            return Err(SampleError::SignalsNotAttached);
        }
        return Ok(Box::new(BySignals::of(request, None)?));
    }
    match ByClock::of(request) {
        Ok(clock) => Ok(Box::new(clock)),
        Err(SampleError::NotAllowed { why }) if request.backend == Backend::Auto && is_started => {
            Ok(Box::new(BySignals::of(request, Some(why))?))
        }
        Err(refused) => Err(refused),
    }
}

/// Profiles by samples of this method.
pub(crate) fn run_by(method: &dyn Method, request: &Request, stop: Stop) -> Result<Profile, SampleError> {
    let mut calibration = method.calibration();
    let (mut preload, no_allocations) = method.preload(request)?;
    let FindsOut { allocations, allocations_from, .. } = request.finds_out;
    if let Some(preload) = preload.as_ref().filter(|_| allocations && allocations_from > Bytes(0)) {
        preload.region.only_from(allocations_from);
    }
    let (probing, no_probes) = method.probing(request, preload.as_mut());
    if let Some(probing) = &probing {
        add_probing(&mut calibration, probing);
    }
    let mut probes = probing.as_ref().map(|probing| Probes::new(allowance(request.budget, probing)));
    let asked = Asked::of(request);
    let children_before = cpu_time_of_children();
    let (watched, (mut rings, no_stacks)) = begin(request, preload.as_ref(), &asked, method)?;
    let began = Instant::now();
    let mut recorder = method.recorder().within(request.window_from_now_ns()).with_pages();
    if let Watched::Attached(family) = &watched {
        for event in family.iter().copied().flat_map(told_by) {
            recorder.count(event);
        }
    }
    if let Some(dump) = asked.dump() {
        recorder.maps.dumps_to(watched.pid(), &dump);
    }
    let used_before = own_cpu_time();
    let (ended, waited) =
        watch(&watched, request, stop, &mut rings, preload.as_mut(), &mut probes, &mut recorder);
    let elapsed = began.elapsed();
    let cpu_time = method.cpu_time(&rings, &recorder, children_before);
    recorder.finish(&mut rings, preload.as_mut().map(|preload| &mut preload.region));
    let region = preload.as_ref().map(|preload| &preload.region);
    let probes_done = probes.as_ref().map_or(0, Probes::done);
    let none_done = probes.zip(region).and_then(|(probes, region)| probes.end(region, &mut recorder.tally));
    drop(rings);
    let used = own_cpu_time().saturating_sub(used_before);
    let mut tally = recorder.tally;
    method.end(region, &mut tally);
    let run = Ended {
        request,
        tally: &tally,
        calibration: &calibration,
        region,
        reader: recorder.signals.as_ref(),
        cpu_time: &cpu_time,
        elapsed,
        used,
        probes_s: probing.as_ref().map_or(0.0, |probing| probing.found.cost_s.value * probes_done as f64),
    };
    let [overhead, overhead_beside] = method.overheads(&run);
    let sampling = method.sampling(&run);
    let mut refusals = method.refusals(&run);
    refusals.extend(set_id::refusal(request, tally.samples));
    refusals.extend(no_stacks);
    refusals.extend(no_allocations);
    refusals.extend(no_probes.or(none_done));
    let made_code = recorder.maps.names(&tally);
    refusals.extend(made_code::refusal(&made_code, &tally));
    let timing = region.zip(probing).map(|(region, probing)| timing(request, region, &probing));
    // The preloaded library is one of them: it is read before it goes.
    let mut modules = files::modules(&tally);
    let made = made_code::functions(&tally, &made_code, &recorder.pages.unwrap_or_default());
    modules.extend(insight::put_into_files(&mut tally, made));
    let arguments = asked.arguments.iter().map(|word| records::text_of(word.as_ref())).collect();
    asked.end(watched.pid());
    if let Some(preload) = preload {
        if request.finds_out.allocations {
            refusals.extend(left_out::of(&preload, &recorder.allocations, &tally));
        }
        preload.end(&tally);
    }
    let run = insight::Run {
        program: ProfiledProgram { asked: arguments, ..request.program(ended, &tally) },
        sampling,
        elapsed: Quantity::measured(Estimate::exact(elapsed.as_secs_f64()), Unit::Seconds),
        cpu_time,
        waited_for_cpu: match waited {
            Some(time) => Quantity::measured(Estimate::exact(time.as_secs_f64()), Unit::Seconds),
            None => Quantity::unresolved("the kernel does not tell it"),
        },
        overhead,
        overhead_beside,
        refusals,
        caches: request.caches,
        yield_cycles: request.yield_cycles,
        timing,
        made_code,
    };
    let profile = if method.is_of_accesses() { insight::accesses_profile } else { insight::profile };
    Ok(profile(run, &tally, &modules))
}

/// Of what profiling may take, the part that probes take.
const PROBES_PART: f64 = 1.0 / 3.0;

fn allowance(budget: f64, probing: &Probing) -> Allowance {
    let (share, frequency_hz) = (budget * PROBES_PART, probing.frequency_hz as f64);
    Allowance { share, cost_s: probing.found.cost_s.hi, frequency_hz }
}

fn add_probing(calibration: &mut Calibration, Probing { found, .. }: &Probing) {
    calibration.probe_cost = Quantity::measured(found.cost_s, Unit::Seconds);
    calibration.cache_latency = Quantity::measured(found.cache_ns, Unit::Nanos);
    calibration.cache_latency_probed = Quantity::measured(found.probed_ns, Unit::Nanos);
    calibration.memory_latency = Quantity::measured(found.memory_ns, Unit::Nanos);
}

/// How probes are read.
fn timing(request: &Request, region: &Region, Probing { found, .. }: &Probing) -> Timing {
    Timing {
        ticks_a_ns: region.ticks_a_ns(),
        latencies: request.latencies.clone(),
        cache_ns: found.cache_ns.value,
        memory_ns: found.memory_ns.value,
        probed_ns: found.probed_ns.value,
        known_ns: found.known_ns.clone(),
    }
}

fn own_cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}
