//! What was sampled between two times, and the profile of it.

use super::SystemRequest;
use super::kernel::InKernel;
use crate::files::Missing;
use crate::made_code;
use crate::opened::{Opened, TOO_DEAR};
use crate::overhead::taken_s;
use crate::perf::open::Clock;
use insight::PlaceTold;
use insight::samples::{Place, Tally};
use records::profile::{Backend, Calibration, Profile, ProfiledProgram, ProgramEnd, Sampling};
use records::run::Refused;
use std::collections::HashMap;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// What was sampled between two times.
pub struct Sampled {
    pub(super) tally: Tally,
    pub(super) maps: made_code::Maps,
    pub(super) opened: Opened,
    pub(super) in_kernel: InKernel,
    pub(super) clock: Clock,
    pub(super) calibration: Calibration,
    pub(super) cpus: usize,
    pub(super) cgroup: Option<String>,
    pub(super) refusals: Vec<Refused>,
    pub(super) elapsed: Duration,
    pub(super) own_samples: u64,
    pub(super) used_before: Duration,
    /// The profiler's CPU time when it was taken; where nothing follows, what is made of it counts.
    pub(super) used: Option<Duration>,
}

/// Of what profiling may take, the part for reading files; the rest is for sampling.
const READING_PART: f64 = 0.6;

pub(super) fn own_cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

impl Sampled {
    /// Samples, the profiler's own left out.
    pub fn samples(&self) -> u64 {
        self.tally.samples
    }

    /// The profile of it.
    pub fn profile(self, request: &SystemRequest) -> Profile {
        self.profile_and_places(request).0
    }

    /// The same, with what stands at each place that was sampled.
    pub fn profile_and_places(self, request: &SystemRequest) -> (Profile, HashMap<Place, PlaceTold>) {
        let capacity_s = self.cpus as f64 * self.elapsed.as_secs_f64();
        let allowed_s = (READING_PART * request.budget * capacity_s).max(request.reading.as_secs_f64());
        let (modules, missing) = self.opened.modules(&self.tally, allowed_s);
        let made_code = self.maps.names(&self.tally);
        let mut refusals = self.refusals;
        refusals.extend(made_code::refusal(&made_code, &self.tally));
        refusals.extend(not_read(&missing, self.tally.samples));
        refusals.extend((self.tally.lost > 0).then(|| Refused {
            what: "samples".to_owned(),
            why: format!("{} were lost, since the profiler was not given a CPU in time", self.tally.lost),
            would_help: Some("a lower --frequency".to_owned()),
        }));
        let (samples, hz) = (self.tally.samples, self.clock.frequency_hz as f64);
        // Each sample stands for the time since the one before: as many as come, give or take.
        let seconds = |samples: f64| {
            let off = 1.96 * samples.sqrt();
            Estimate::new(samples / hz, (samples - off).max(0.0) / hz, (samples + off) / hz)
        };
        let cpu_time = seconds(samples as f64);
        let population = self.tally.population.as_ref();
        let rows = population.map(|population| population.rows(0.0)).unwrap_or_default();
        let program = ProfiledProgram {
            command: Vec::new(),
            pid: None,
            perf_data: None,
            ended: ProgramEnd::StillRunning,
            processes: rows.iter().map(|(_, row)| row.processes).sum::<u64>() as usize,
            threads: self.tally.sampled().map(|(_, process)| process.threads.len()).sum(),
            asked: Vec::new(),
        };
        let not_asked = || Quantity::unresolved("of all processes it is not asked");
        let run = insight::Run {
            program,
            sampling: Sampling {
                backend: Backend::Clock,
                frequency: Quantity::claimed(hz, Unit::Hertz),
                latency: None,
                least_latency: Quantity::unresolved("samples of a clock show stall, not latency"),
                samples,
                lost: self.tally.lost,
                sees_kernel: self.clock.with_kernel,
                selected: None,
                calibration: self.calibration.clone(),
            },
            elapsed: Quantity::measured(Estimate::exact(self.elapsed.as_secs_f64()), Unit::Seconds),
            cpu_time: Quantity::measured(cpu_time, Unit::Seconds),
            waited_for_cpu: not_asked(),
            overhead: not_asked(),
            overhead_beside: not_asked(),
            refusals,
            caches: request.caches,
            yield_cycles: request.yield_cycles,
            timing: None,
            made_code,
        };
        let (mut profile, places) = insight::profile_and_places(run, &self.tally, &modules);
        // All that was used until now, the profile itself included.
        let used = self.used.unwrap_or_else(own_cpu_time).saturating_sub(self.used_before).as_secs_f64();
        let of_capacity = |seconds: f64| seconds / capacity_s;
        let own = Quantity::measured(Estimate::exact(of_capacity(used)), Unit::Ratio);
        let taken = taken_s(&self.calibration, samples + self.own_samples, 0.0);
        profile.summary.overhead = match taken {
            Some(taken) => {
                let with = |taken: f64| of_capacity(used + taken.max(0.0));
                Quantity::modelled(
                    Estimate::new(with(taken.value), with(taken.lo), with(taken.hi)),
                    Unit::Ratio,
                )
            }
            None => Quantity::unresolved("what a sample costs is not known"),
        };
        profile.summary.overhead_beside = own.clone();
        if let Some(system) = &mut profile.system {
            system.cpus = self.cpus;
            system.cgroup = self.cgroup;
            system.busy = Quantity::measured(
                Estimate::new(
                    cpu_time.value / capacity_s,
                    cpu_time.lo / capacity_s,
                    cpu_time.hi / capacity_s,
                ),
                Unit::Ratio,
            );
            system.own = own;
            system.kernel = self.in_kernel.functions(samples);
        }
        (profile, places)
    }
}

/// Files that samples are in and that were not read.
fn not_read(missing: &[Missing], all: u64) -> Option<Refused> {
    const NAMED: usize = 3;
    let share = |samples: u64| 100.0 * samples as f64 / all.max(1) as f64;
    let part = share(missing.iter().map(|file| file.samples).sum());
    if missing.is_empty() {
        return None;
    }
    let told = |file: &Missing| format!("{} ({:.1}%: {})", file.path, share(file.samples), file.why);
    let named: Vec<String> = missing.iter().take(NAMED).map(told).collect();
    let more = missing.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let is_dear = missing.iter().any(|file| file.why == TOO_DEAR);
    Some(Refused {
        what: "names in files".to_owned(),
        why: format!("{part:.1}% of the samples are in files that were not read: {}{more}", named.join(", ")),
        would_help: is_dear.then(|| "a longer run, or a larger --budget".to_owned()),
    })
}
