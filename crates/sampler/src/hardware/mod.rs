//! One run whose samples are loads and stores that the hardware chooses: Intel PEBS, AMD IBS. The
//! program is started and watched as for the clock; samples are read as from a file.

mod pmus;

use crate::files;
use crate::made_code;
use crate::perf::open::{AccessEvent, Clock, Holds};
use crate::perf::ring::RING_BYTES;
use crate::perf_data::role::latency_kind;
use crate::recorder::Recorder;
use crate::request::{Request, SampleError, Subject};
use crate::session::{Method, Watched, allocations_left_out, begin, own_cpu_time, preload, watch};
use crate::target::told_by;
use lab::stop::Stop;
use records::profile::{Backend, Calibration, Profile, Sampling};
use records::run::Refused;
use std::path::Path;
use std::time::Instant;
use units::{Estimate, Quantity, Unit};

/// Samples a second of each thread, if no frequency is asked for.
const USUAL_HZ: u64 = 4000;
/// Where the kernel lists PMUs, under the root of the file system.
const DEVICES: &str = "sys/bus/event_source/devices";

/// Profiles by this hardware.
pub fn run(request: &Request, backend: Backend, root: &Path, stop: Stop) -> Result<Profile, SampleError> {
    let event = pmus::find(&root.join(DEVICES), backend).map_err(|why| SampleError::NoHardware { why })?;
    let clock = Clock {
        frequency_hz: request.frequency_hz.unwrap_or(USUAL_HZ),
        with_kernel: !event.excludes_kernel,
        from_exec: matches!(request.subject, Subject::Command(_)),
        wake_at_bytes: (RING_BYTES / 2) as u32,
        holds: Holds::Accesses(event),
    };
    let method = Method::Events(clock);
    let (mut preloaded, no_allocations) = preload(request, &method)?;
    // Stacks come with the samples: a clock's samples would be of other instructions.
    let mut without_clock = request.clone();
    without_clock.finds_out.stacks = false;
    let (watched, mut rings, _) = begin(&without_clock, preloaded.as_ref(), &method)?;
    let began = Instant::now();
    let mut recorder = Recorder::default().within(request.window_from_now_ns());
    recorder.tally.is_exact = true;
    if let Watched::Attached(pid) = watched {
        for event in told_by(pid) {
            recorder.count(event);
        }
    }
    let used_before = own_cpu_time();
    let ended = watch(&watched, request, stop, &mut rings, preloaded.as_mut(), &mut None, &mut recorder);
    recorder.finish(&mut rings, preloaded.as_mut().map(|preload| &mut preload.region));
    let elapsed = began.elapsed();
    drop(rings);
    let used = own_cpu_time().saturating_sub(used_before);
    let modules = files::modules(&recorder.tally);
    let mut refusals: Vec<Refused> = no_allocations.into_iter().collect();
    if let Some(preload) = preloaded {
        refusals.extend(allocations_left_out(&preload, &recorder.allocations, &recorder.tally));
        preload.end(&recorder.tally);
    }
    let tally = recorder.tally;
    let made_code = recorder.maps.names(&tally);
    refusals.extend(made_code::refusal(&made_code, &tally));
    if tally.lost > 0 {
        refusals.push(Refused {
            what: "samples".to_owned(),
            why: format!("{} were lost, since the profiler was not given a CPU in time", tally.lost),
            would_help: Some("a lower --frequency".to_owned()),
        });
    }
    let no_time = || Quantity::unresolved("hardware samples of loads show latency, not time");
    let run = insight::Run {
        program: request.program(ended, &tally),
        sampling: Sampling {
            selected: request.selected(),
            ..sampling(event, &clock, tally.accesses.samples, tally.lost)
        },
        elapsed: Quantity::measured(Estimate::exact(elapsed.as_secs_f64()), Unit::Seconds),
        cpu_time: no_time(),
        overhead: Quantity::unresolved("what a hardware sample costs is not known"),
        overhead_beside: Quantity::measured(
            Estimate::exact(used.as_secs_f64() / elapsed.as_secs_f64().max(1e-9)),
            Unit::Ratio,
        ),
        refusals,
        caches: request.caches,
        yield_cycles: request.yield_cycles,
        timing: None,
        made_code,
    };
    Ok(insight::accesses_profile(run, &tally, &modules))
}

fn sampling(event: AccessEvent, clock: &Clock, samples: u64, lost: u64) -> Sampling {
    let threshold = event.config[1];
    Sampling {
        backend: event.backend,
        frequency: Quantity::claimed(clock.frequency_hz as f64, Unit::Hertz),
        latency: latency_kind(event.backend),
        least_latency: if event.backend == Backend::Pebs {
            Quantity::claimed(threshold as f64, Unit::Cycles)
        } else {
            Quantity::unresolved("all loads are sampled")
        },
        samples,
        lost,
        sees_kernel: clock.with_kernel,
        selected: None,
        calibration: Calibration::unresolved("hardware samples name the load itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::event::accesses_of;
    use crate::perf::open;
    use crate::perf::ring::Ring;

    /// No machine of ours samples loads; but an event of the clock with the same fields is opened,
    /// read and taken apart in the same way.
    #[test]
    fn samples_are_opened_and_taken_apart_alike() {
        let event = AccessEvent {
            backend: Backend::Pebs,
            kind: 1,
            config: [0; 3],
            precise: 0,
            excludes_kernel: true,
        };
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let clock = Clock {
            frequency_hz: 4000,
            with_kernel: false,
            from_exec: false,
            wake_at_bytes: (RING_BYTES / 2) as u32,
            holds: Holds::Accesses(event),
        };
        let opened: Vec<_> =
            open::cpus().into_iter().filter_map(|cpu| open::open(clock, thread, cpu).ok()).collect();
        if opened.is_empty() {
            eprintln!("skipped: events may not be opened here");
            return;
        }
        let mut rings: Vec<Ring> =
            opened.into_iter().map(|event| Ring::of(event, clock.holds).unwrap()).collect();
        let began = Instant::now();
        while began.elapsed().as_millis() < 300 {
            std::hint::black_box(began);
        }
        let mut bytes = Vec::new();
        for ring in &mut rings {
            ring.drain(&mut bytes);
        }
        let samples: Vec<_> = crate::perf_data::records::records(&bytes).all;
        let samples: Vec<_> = samples.into_iter().filter(|record| record.kind == 9).collect();
        assert!(samples.len() > 10, "{}", samples.len());
        for sample in samples {
            let raw = accesses_of(event, &sample).expect("a sample with all of its fields");
            assert_eq!((raw.process, raw.thread), (std::process::id(), thread));
            assert!(raw.ip > 0 && raw.time_ns > 0 && raw.period.is_some_and(|period| period > 0));
        }
    }
}
