//! One run: the clock chosen and calibrated, the program started or attached to, its samples
//! counted until it ends, and the profile made of them.

use crate::allocations::preload::{Preload, is_there, refused};
use crate::allocations::recorded::Recorded;
use crate::allocations::region::{ClockSettings, Region};
use crate::calibrate::calibrate;
use crate::files;
use crate::frequency;
use crate::made_code;
use crate::overhead::{overheads, taken_s};
use crate::perf::open::{Clock, Holds, cpus, highest_frequency_hz, open, write_into};
use crate::perf::ring::{RING_BYTES, Ring, STACK_RING_BYTES};
use crate::probes::calibrate::ProbeCalibration;
use crate::probes::{self, Allowance, Probes};
use crate::recorder::Recorder;
use crate::request::{Backend, Request, SampleError, Subject};
use crate::signals::calibration::{self, Found};
use crate::signals::left_out;
use crate::signals::reader::Reader;
use crate::target::{Child, End, Running, cpu_time_of, cpu_time_of_children, threads_of, told_by};
use insight::probes::latency::Timing;
use insight::tally::Tally;
use lab::stop::Stop;
use records::profile::{self, Calibration, Profile, ProgramEnd, Sampling};
use records::run::Refused;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use units::{Estimate, Quantity, Unit};

const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// While allocations come in bursts.
const QUICK_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// While threads have ended and their program has not.
const SHORT_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Less than this is not sharp enough to name a load by one sample.
const SHARP: f64 = 0.9;

/// What is being watched.
pub(crate) enum Watched {
    Started(Running),
    Attached(u32),
}

/// What takes the samples.
pub(crate) enum Method {
    Events(Clock),
    Signals(Box<Found>),
}

/// Profiles, and says how the program ended as well.
pub fn run(request: &Request, stop: Stop) -> Result<Profile, SampleError> {
    let mut method = method(request)?;
    let mut calibration = match &method {
        Method::Events(clock) => calibrate(*clock),
        Method::Signals(found) => found.calibration.clone(),
    };
    if let Method::Events(clock) = &mut method {
        clock.frequency_hz = match request.frequency_hz {
            Some(wanted) => wanted.min(highest_frequency_hz()),
            None => frequency::within(request.budget, &calibration),
        };
    }
    let (mut preload, no_allocations) = preload(request, &method)?;
    let (probing, no_probes) = probing(request, &method, preload.as_mut(), &mut calibration);
    let mut probes = probing
        .as_ref()
        .map(|(found, frequency_hz)| Probes::new(allowance(request.budget, *frequency_hz, found)));
    let children_before = cpu_time_of_children();
    let (watched, mut rings, no_stacks) = begin(request, preload.as_ref(), &method)?;
    let began = Instant::now();
    let window = request.window_from_now_ns();
    let signals = match &method {
        Method::Events(_) => None,
        Method::Signals(found) => Some(Reader::of(period_ns(request), found.period_ns)),
    };
    let mut recorder = Recorder::default().within(window).with_signals(signals);
    if let Watched::Attached(pid) = watched {
        for event in told_by(pid) {
            recorder.count(event);
        }
    }
    let used_before = own_cpu_time();
    let ended = watch(&watched, request, stop, &mut rings, preload.as_mut(), &mut probes, &mut recorder);
    let elapsed = began.elapsed();
    let cpu_time = match &recorder.signals {
        // The events of registers count time, of all threads.
        None => Duration::from_nanos(
            rings.iter().filter(|ring| ring.holds() == Holds::Registers).map(Ring::counted).sum(),
        ),
        Some(signals) => {
            let running: Duration = signals.processes().map(cpu_time_of).sum();
            cpu_time_of_children().saturating_sub(children_before) + running
        }
    };
    let cpu_time = Quantity::measured(Estimate::exact(cpu_time.as_secs_f64()), Unit::Seconds);
    recorder.finish(&mut rings, preload.as_mut().map(|preload| &mut preload.region));
    let region = preload.as_ref().map(|preload| &preload.region);
    let ticks_a_ns = region.map(Region::ticks_a_ns);
    let probes_done = probes.as_ref().map_or(0, Probes::done);
    let none_done = probes.zip(region).and_then(|(probes, region)| probes.end(region, &recorder.tally));
    drop(rings);
    let used = own_cpu_time().saturating_sub(used_before);
    let mut tally = recorder.tally;
    if let (Some(_), Some(clock)) = (&recorder.signals, preload.as_ref().and_then(|p| p.region.clock())) {
        clock.is_over.store(1, Relaxed);
        tally.lost += clock.lost.load(Relaxed);
    }
    let probes_s = probing.as_ref().map_or(0.0, |(found, _)| found.cost_s.value * probes_done as f64);
    let taken = taken_s(&calibration, tally.samples, probes_s);
    let [overhead, overhead_beside] = overheads(&cpu_time, used, taken);
    let mut refusals = refusals(&calibration, tally.lost);
    match (&method, &recorder.signals) {
        (Method::Events(clock), _) => {
            refusals.extend((!clock.with_kernel).then(no_kernel));
            // The CPU time is that of the whole run, and with the kernel's.
            let is_comparable = window.is_none() && clock.with_kernel;
            let cpu_time_s = cpu_time.value().filter(|_| is_comparable).unwrap_or(0.0);
            let samples = tally.samples + tally.lost;
            refusals.extend(frequency::too_few(clock.frequency_hz, cpu_time_s, samples));
        }
        (Method::Signals(found), Some(reader)) => {
            let region = preload.as_ref().map(|preload| &preload.region);
            refusals.extend(left_out::of(found, reader, region, &tally, cpu_time.value().unwrap_or(0.0)));
        }
        _ => {}
    }
    refusals.extend(no_stacks);
    refusals.extend(no_allocations);
    refusals.extend(no_probes.or(none_done));
    let made_code = recorder.maps.names(&tally);
    refusals.extend(made_code::refusal(&made_code, &tally));
    // The preloaded library is one of them: it is read before it goes.
    let modules = files::modules(&tally);
    if let Some(preload) = preload {
        if request.finds_out.allocations {
            refusals.extend(allocations_left_out(&preload, &recorder.allocations, &tally));
        }
        preload.end(&tally);
    }
    let program = request.program(ended, &tally);
    let (backend, frequency, sees_kernel) = match method {
        Method::Events(clock) => {
            let asked = Quantity::claimed(clock.frequency_hz as f64, Unit::Hertz);
            (profile::Backend::Clock, asked, clock.with_kernel)
        }
        Method::Signals(found) => {
            // This run's own, if it has enough to tell.
            let own = recorder.signals.as_ref().filter(|_| tally.samples >= ENOUGH_FOR_A_RATE);
            let own = own.and_then(Reader::frequency);
            let frequency = own.map_or(found.frequency, |own| Quantity::measured(own, Unit::Hertz));
            (profile::Backend::Signal, frequency, true)
        }
    };
    let (samples, lost) = (tally.samples, tally.lost);
    let sampling = Sampling {
        backend,
        frequency,
        latency: None,
        least_latency: Quantity::unresolved("samples of a clock show stall, not latency"),
        samples,
        lost,
        sees_kernel,
        selected: request.selected(),
        calibration,
    };
    let run = insight::Run {
        program,
        sampling,
        elapsed: Quantity::measured(Estimate::exact(elapsed.as_secs_f64()), Unit::Seconds),
        cpu_time,
        overhead,
        overhead_beside,
        refusals,
        caches: request.caches,
        yield_cycles: request.yield_cycles,
        timing: ticks_a_ns.zip(probing).map(|(ticks_a_ns, (found, _))| Timing {
            ticks_a_ns,
            latencies: request.latencies.clone(),
            cache_ns: found.cache_ns.value,
            probed_ns: found.probed_ns.value,
            known_ns: found.known_ns,
        }),
        made_code,
    };
    Ok(insight::profile(run, &tally, &modules))
}

/// Of what profiling may take, the part that probes take.
const PROBES_PART: f64 = 1.0 / 3.0;

fn allowance(budget: f64, frequency_hz: u64, found: &ProbeCalibration) -> Allowance {
    Allowance { share: budget * PROBES_PART, cost_s: found.cost_s.hi, frequency_hz: frequency_hz as f64 }
}

/// What a probe costs and sees, with the clock's frequency; or why there are none. Signals leave no
/// room for them: where perf events are forbidden, so are breakpoints.
fn probing(
    request: &Request,
    method: &Method,
    preload: Option<&mut Preload>,
    calibration: &mut Calibration,
) -> (Option<(ProbeCalibration, u64)>, Option<Refused>) {
    let (Method::Events(clock), Some(preload)) = (method, preload) else { return (None, None) };
    if !request.finds_out.latencies {
        return (None, None);
    }
    let l2_bytes = request.caches.l2.map_or(1 << 20, |l2| l2.0);
    match probes::calibrate::calibrate(&mut preload.region, l2_bytes) {
        Ok(found) => {
            calibration.probe_cost = Quantity::measured(found.cost_s, Unit::Seconds);
            calibration.cache_latency = Quantity::measured(found.cache_ns, Unit::Nanos);
            calibration.cache_latency_probed = Quantity::measured(found.probed_ns, Unit::Nanos);
            (Some((found, clock.frequency_hz)), None)
        }
        Err(why) => (None, Some(probes::refused(why))),
    }
}

/// CPU time between two samples, as asked for.
fn period_ns(request: &Request) -> u64 {
    1_000_000_000 / request.frequency_hz.unwrap_or(frequency::HIGHEST_HZ).max(1)
}

/// The kernel's events if they may be used; else, or if asked for, signals.
fn method(request: &Request) -> Result<Method, SampleError> {
    let is_started = matches!(request.subject, Subject::Command(_));
    let mut clock = Clock {
        frequency_hz: frequency::LOWEST_HZ,
        with_kernel: true,
        from_exec: is_started,
        wake_at_bytes: (RING_BYTES / 2) as u32,
        holds: Holds::Registers,
    };
    if request.backend == Backend::Signal && !is_started {
        return Err(SampleError::SignalsNotAttached);
    }
    let mut events_refused = None;
    if request.backend != Backend::Signal {
        match may_sample_kernel(clock) {
            Ok(with_kernel) => {
                clock.with_kernel = with_kernel;
                return Ok(Method::Events(clock));
            }
            Err(SampleError::NotAllowed { why }) if request.backend == Backend::Auto && is_started => {
                events_refused = Some(why);
            }
            Err(refused) => return Err(refused),
        }
    }
    let found = calibration::calibrate(period_ns(request));
    let found = found.map_err(|why| SampleError::NoSignals { why })?;
    Ok(Method::Signals(Box::new(Found { events_refused, ..found })))
}

/// With fewer samples the calibration tells it better.
const ENOUGH_FOR_A_RATE: u64 = 100;
/// More than enough to know who calls what.
const STACKS_A_SECOND: f64 = 300.0;

/// What tells of the program's allocations, or why nothing does. Without it there are no signals.
pub(crate) fn preload(
    request: &Request,
    method: &Method,
) -> Result<(Option<Preload>, Option<Refused>), SampleError> {
    if let (Method::Signals(found), Subject::Command(words)) = (method, &request.subject) {
        // That it cannot be executed is said when that is tried.
        if !words.first().is_some_and(|word| is_there(word)) {
            return Ok((None, None));
        }
        let every = (found.frequency.value().unwrap_or(0.0) / STACKS_A_SECOND).ceil() as u32;
        let stack_every = if request.finds_out.stacks { every } else { 0 };
        let settings = ClockSettings { period_ns: period_ns(request), stack_every };
        let preload =
            Preload::of(words, cpus().len(), Some(settings)).map_err(|why| SampleError::NoSignals { why })?;
        if !request.finds_out.allocations {
            preload.region.forgo_allocations();
        }
        return Ok((Some(preload), None));
    }
    Ok(match &request.subject {
        _ if !request.finds_out.allocations => (None, None),
        Subject::Process(_) => (
            None,
            Some(refused("known only of programs that the profiler starts, not of those it attaches to")),
        ),
        Subject::Command(words) => match Preload::of(words, cpus().len(), None) {
            Ok(preload) => (Some(preload), None),
            Err(why) => (None, Some(refused(why))),
        },
    })
}

/// What was not told of allocations.
pub(crate) fn allocations_left_out(preload: &Preload, recorded: &Recorded, tally: &Tally) -> Vec<Refused> {
    let mut left_out = Vec::new();
    let sampled: Vec<u32> =
        tally.processes.iter().filter(|(_, p)| !p.threads.is_empty()).map(|(id, _)| *id).collect();
    let of = |what: &str, count: usize| format!("{what} {count} of {} processes", sampled.len());
    let own = sampled.iter().filter(|process| recorded.not_interposed.contains(process)).count();
    if own > 0 {
        left_out.push(refused(of("a malloc of its own has each of", own)));
    }
    let silent =
        sampled.iter().filter(|process| !tally.heaps.was_told_of(**process)).count().saturating_sub(own);
    if silent > 0 {
        let why =
            "linked statically, for another architecture, of another user, or with an environment of its own";
        left_out.push(refused(format!("{}: {why}", of("not known of", silent))));
    }
    let lost = preload.region.lost() + preload.region.passed_over + tally.heaps.left_out;
    if lost > 0 {
        left_out.push(refused(format!("{lost} records were lost, since they came too fast")));
    }
    if tally.heaps.share() < 1.0 {
        let share = 1.0 / tally.heaps.share();
        left_out.push(refused(format!(
            "small ones are known of one page in {share:.0}, at the end; their figures are estimates"
        )));
    }
    left_out
}

/// Whether time in the kernel may be sampled, too; an error if nothing may.
fn may_sample_kernel(clock: Clock) -> Result<bool, SampleError> {
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for with_kernel in [true, false] {
        for cpu in cpus() {
            match open(Clock { with_kernel, from_exec: true, ..clock }, thread, cpu) {
                Ok(_) => return Ok(with_kernel),
                Err(e) => last = e,
            }
        }
    }
    Err(SampleError::NotAllowed { why: records::plain(&last) })
}

/// Opens all events, and lets the program go. Says why there are no stacks, if there should be.
pub(crate) fn begin(
    request: &Request,
    preload: Option<&Preload>,
    method: &Method,
) -> Result<(Watched, Vec<Ring>, Option<Refused>), SampleError> {
    let opened = |threads: &[u32]| match *method {
        Method::Events(clock) => {
            let mut rings = rings(threads, clock)?;
            let no_stacks = add_stacks(request, &mut rings, threads, clock);
            Ok((rings, no_stacks))
        }
        Method::Signals(_) => Ok((Vec::new(), None)),
    };
    match &request.subject {
        Subject::Command(words) => {
            let what =
                || records::text_of(words.first().map_or(OsStr::new(""), OsString::as_os_str).as_ref());
            let not_started = |e: io::Error| SampleError::NotStarted {
                what: what(),
                why: records::plain(&e),
                missing: e.kind() == io::ErrorKind::NotFound,
            };
            let environment = preload.map(Preload::environment);
            let environment = environment.as_deref();
            let child = Child::start(words, environment, request.output_to_error, &request.inherited)
                .map_err(not_started)?;
            let (rings, no_stacks) = opened(&[child.pid])?;
            let running = child.go().map_err(not_started)?;
            Ok((Watched::Started(running), rings, no_stacks))
        }
        Subject::Process(pid) => {
            let not_attached = |e: io::Error| SampleError::NotAttached { pid: *pid, why: records::plain(&e) };
            let threads = threads_of(*pid).map_err(not_attached)?;
            allow_all_files();
            // This process may sample itself, so what is refused is that process.
            let (rings, no_stacks) = opened(&threads).map_err(|e| match e {
                SampleError::NotAllowed { why } => SampleError::NotAttached { pid: *pid, why },
                other => other,
            })?;
            Ok((Watched::Attached(*pid), rings, no_stacks))
        }
    }
}

/// Bytes of the stack that are copied at a sample: about thirty frames of compiled programs.
const STACK_BYTES: u32 = 8 << 10;
/// A stack costs more than a sample of registers does, and who calls what is known from fewer.
const SAMPLES_A_STACK: u64 = 16;

/// Opens the slower event that copies stacks, too. Without it there is a profile all the same.
fn add_stacks(request: &Request, rings: &mut Vec<Ring>, threads: &[u32], clock: Clock) -> Option<Refused> {
    if !request.finds_out.stacks {
        return None;
    }
    let slower = Clock {
        frequency_hz: clock.frequency_hz.div_ceil(SAMPLES_A_STACK),
        wake_at_bytes: (STACK_RING_BYTES / 2) as u32,
        holds: Holds::Stacks(STACK_BYTES),
        ..clock
    };
    match self::rings(threads, slower) {
        Ok(added) => {
            rings.extend(added);
            None
        }
        Err(e) => Some(Refused { what: "call stacks".to_owned(), why: e.to_string(), would_help: None }),
    }
}

/// A ring for each CPU, and in it the events of all these threads.
fn rings(threads: &[u32], clock: Clock) -> Result<Vec<Ring>, SampleError> {
    let mut rings = Vec::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for cpu in cpus() {
        let mut ring: Option<Ring> = None;
        for &thread in threads {
            let event = match open(clock, thread, cpu) {
                Ok(event) => event,
                // Threads end at any time, and CPUs that are offline have no events.
                Err(e) if matches!(e.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {
                    last = e;
                    continue;
                }
                Err(e) if e.raw_os_error() == Some(libc::EMFILE) => {
                    return Err(SampleError::TooManyFiles { pid: threads[0], threads: threads.len() });
                }
                Err(e) => return Err(SampleError::NotAllowed { why: records::plain(&e) }),
            };
            let no_ring = |e: io::Error| SampleError::NoRing { why: records::plain(&e) };
            match &mut ring {
                None => ring = Some(Ring::of(event, clock.holds).map_err(no_ring)?),
                Some(ring) => {
                    write_into(&event, ring.event()).map_err(no_ring)?;
                    ring.keep(event);
                }
            }
        }
        rings.extend(ring);
    }
    if rings.is_empty() { Err(SampleError::NotAllowed { why: records::plain(&last) }) } else { Ok(rings) }
}

/// Counts until the program ends, or the user stops it.
pub(crate) fn watch(
    watched: &Watched,
    request: &Request,
    stop: Stop,
    rings: &mut [Ring],
    mut preload: Option<&mut Preload>,
    probes: &mut Option<Probes>,
    recorder: &mut Recorder,
) -> ProgramEnd {
    let began = Instant::now();
    let over = pid_descriptor(watched.pid());
    let mut told = false;
    loop {
        let is_busy = preload.as_ref().is_some_and(|preload| preload.region.is_busy());
        let is_over = wait(over.as_ref(), rings, if is_busy { QUICK_POLL } else { POLL });
        recorder.round(rings, preload.as_mut().map(|preload| &mut preload.region));
        if let Some((probes, preload)) = probes.as_mut().zip(preload.as_ref()) {
            probes.round(&recorder.tally, &recorder.allocations, &preload.region);
        }
        match watched {
            Watched::Started(running) => {
                if let Some(end) = running.ended() {
                    return match end {
                        End::Exited(code) => ProgramEnd::Exited { code },
                        End::Killed(signal) => ProgramEnd::Killed { signal },
                    };
                }
                // Ctrl-C reaches the program by itself; what was sent to the profiler alone goes on
                // to the program, whose end is waited for.
                if let Some(signal) = stop.signal().filter(|_| !std::mem::replace(&mut told, stop.asked())) {
                    if let (true, Some(pid), Some(signal)) =
                        (signal != libc::SIGINT, raw_pid(running.pid), Signal::from_named_raw(signal))
                    {
                        let _ = kill_process(pid, signal);
                    }
                }
            }
            Watched::Attached(pid) => {
                if is_over || !Path::new(&format!("/proc/{pid}")).exists() {
                    return ProgramEnd::Unknown;
                }
                if stop.asked() {
                    return ProgramEnd::StillRunning;
                }
            }
        }
        if request.limit().is_some_and(|limit| began.elapsed() >= limit) {
            return ProgramEnd::StillRunning;
        }
    }
}

/// Waits until a ring is half full, the program has ended, or the time is over; whether
/// the program has ended.
fn wait(over: Option<&OwnedFd>, rings: &[Ring], longest: Timespec) -> bool {
    let mut waits: Vec<PollFd<'_>> =
        rings.iter().map(|ring| PollFd::from_borrowed_fd(ring.fd(), PollFlags::IN)).collect();
    if let Some(over) = over {
        waits.push(PollFd::new(over, PollFlags::IN));
    }
    // A signal ends it early, which is as good.
    let _ = poll(&mut waits, Some(&longest));
    // Rings whose threads have all ended are always ready: their reader must not spin, and not be
    // late for the program's end, which comes just behind theirs.
    let only_hung_up = waits.iter().all(|fd| !fd.revents().contains(PollFlags::IN))
        && waits.iter().any(|fd| fd.revents().contains(PollFlags::HUP));
    if only_hung_up {
        // Without a descriptor for it, this sleeps.
        let end = if over.is_some() { waits.len() - 1 } else { waits.len() };
        let _ = poll(&mut waits[end..], Some(&SHORT_POLL));
    }
    over.is_some() && waits.last().is_some_and(|fd| fd.revents().contains(PollFlags::IN))
}

fn no_kernel() -> Refused {
    Refused {
        what: "time in the kernel".to_owned(),
        why: "it may not be sampled here; shares are of the time in user mode".to_owned(),
        would_help: Some("root, CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1".to_owned()),
    }
}

fn refusals(calibration: &Calibration, lost: u64) -> Vec<Refused> {
    let mut refusals = Vec::new();
    let sharp = calibration.one_behind.value();
    if sharp.is_none_or(|share| share < SHARP) {
        let how = sharp.map_or("not known".to_owned(), |share| format!("{:.0}%", 100.0 * share));
        refusals.push(Refused {
            what: "naming loads".to_owned(),
            why: format!(
                "samples of a known load that land right behind it: {how}; loads named here may be neighbours of those that stall"
            ),
            would_help: None,
        });
    }
    if lost > 0 {
        refusals.push(Refused {
            what: "samples".to_owned(),
            why: format!("{lost} were lost, since the profiler was not given a CPU in time"),
            would_help: Some("a lower --frequency".to_owned()),
        });
    }
    refusals
}

impl Watched {
    fn pid(&self) -> u32 {
        match self {
            Self::Started(running) => running.pid,
            Self::Attached(pid) => *pid,
        }
    }
}

/// Each thread takes a descriptor for each CPU: as many as may be had are allowed.
fn allow_all_files() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // Where that is refused, opening tells.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
}

pub(crate) fn own_cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid as i32)
}

fn pid_descriptor(pid: u32) -> Option<OwnedFd> {
    pidfd_open(raw_pid(pid)?, PidfdFlags::empty()).ok()
}
