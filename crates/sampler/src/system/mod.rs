//! All processes of the machine: one event for each CPU, whose samples tell whom they interrupt.
//!
//! ```text
//! cgroups    the control groups of processes, and what these are called
//! processes  what runs, and what comes and goes meanwhile
//! kernel     functions of the kernel
//! sampled    what was sampled, and the profile of it
//! ```
//!
//! The profiler's own samples are left out; what it costs is told instead. So that this is little,
//! the rate is low, only code is told of what processes map, and a process's data is read from
//! `/proc` when it is sampled first, and at the end.

mod cgroups;
mod kernel;
mod processes;
mod sampled;

pub use self::sampled::Sampled;

use self::kernel::InKernel;
use self::processes::Processes;
use self::sampled::own_cpu_time;
use crate::calibrate::{calibrate_for, not_sharp};
use crate::frequency;
use crate::made_code;
use crate::opened::Opened;
use crate::perf::event::{Event, events};
use crate::perf::open::{Clock, Holds, cpus, highest_frequency_hz, now_ns, open_for_all};
use crate::perf::ring::{RING_BYTES, Ring, STACK_RING_BYTES};
use crate::perf_data::records::{in_order, kind};
use crate::recorder::Recorder;
use crate::request::SampleError;
use crate::target::{mappings_of, told_by};
use image::elf::bytes::{u32_at, u64_at};
use insight::CacheSizes;
use insight::probes::Latencies;
use insight::samples::{Place, Population, Runs, Tally};
use records::profile::Calibration;
use records::run::Refused;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::Estimate;

/// A profile of all processes that is asked for.
#[derive(Clone, Debug)]
pub struct SystemRequest {
    /// Only what is in this control group: its path, a unit's name, or the id of a container.
    pub cgroup: Option<String>,
    /// Samples a second of each CPU; if none is given, as many as the budget allows.
    pub frequency_hz: Option<u64>,
    /// The share of what all CPUs have to give that profiling may take.
    pub budget: f64,
    /// Who calls what waits.
    pub stacks: bool,
    /// CPU time that files may be read for, even where that is more than the budget.
    pub reading: Duration,
    pub caches: CacheSizes,
    /// What a yield costs on this machine, if that is known.
    pub yield_cycles: Option<Estimate>,
    pub latencies: Latencies,
}

/// All processes of the machine, sampled.
pub struct Machine {
    rings: Vec<Ring>,
    recorder: Recorder,
    waiting: Vec<Event>,
    bytes: Vec<u8>,
    processes: Processes,
    in_kernel: InKernel,
    clock: Clock,
    calibration: Calibration,
    cpus: usize,
    cgroup: Option<String>,
    no_stacks: Option<Refused>,
    own: u32,
    own_samples: u64,
    began: Instant,
    used_before: Duration,
    /// The samples of this last time are kept one by one.
    recent: Option<(Duration, VecDeque<Moment>)>,
}

/// One of the last samples.
#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    pub runs: Arc<Runs>,
    pub process: u32,
    pub place: Option<Place>,
    pub in_kernel: bool,
}

/// Bytes of the stack that are copied at a sample.
const STACK_BYTES: u32 = 8 << 10;
/// Samples for each of them that has a stack, too.
const SAMPLES_A_STACK: u64 = 16;
/// What the kernel locks in memory for root, a CPU: stacks of ten seconds, while the profiler has
/// something else to do.
const LARGE_STACK_RING_BYTES: usize = 512 << 10;
/// The calibration's CPU time is part of what profiling costs.
const CALIBRATION: Duration = Duration::from_millis(60);
/// While the ring of a CPU that went offline does not let its reader wait.
const SHORT_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Beside the files of samples, descriptors are for events and records.
const OTHER_FILES: u64 = 128;

impl Machine {
    /// Opens the events; all processes that run are known from now on.
    pub fn watch(request: &SystemRequest) -> Result<Self, SampleError> {
        let used_before = own_cpu_time();
        let group = request.cgroup.as_deref().map(cgroups::directory).transpose();
        let group = group
            .map_err(|why| SampleError::NoCgroup { what: request.cgroup.clone().unwrap_or_default(), why })?;
        let descriptor = group.as_ref().map(|path| descriptor(path)).transpose()?;
        let mut clock = Clock {
            frequency_hz: frequency::LOWEST_HZ,
            with_kernel: true,
            from_exec: false,
            wake_at_bytes: (RING_BYTES / 2) as u32,
            holds: Holds::Registers,
        };
        // That it is allowed at all, before time goes into the calibration.
        drop(rings(clock, descriptor.as_ref())?);
        let calibration = calibrate_for(clock, CALIBRATION);
        clock.frequency_hz = match request.frequency_hz {
            Some(wanted) => wanted.min(highest_frequency_hz()),
            None => frequency::for_all(request.budget, &calibration),
        };
        let mut rings = rings(clock, descriptor.as_ref())?;
        let cpus = rings.len();
        let slower = Clock {
            frequency_hz: clock.frequency_hz.div_ceil(SAMPLES_A_STACK),
            wake_at_bytes: (STACK_RING_BYTES / 2) as u32,
            holds: Holds::Stacks(STACK_BYTES),
            ..clock
        };
        let mut no_stacks = None;
        if request.stacks {
            match self::rings(slower, descriptor.as_ref()) {
                Ok(stacks) => rings.extend(stacks),
                Err(e) => {
                    no_stacks = Some(Refused {
                        what: "call stacks".to_owned(),
                        why: e.to_string(),
                        would_help: None,
                    });
                }
            }
        }
        crate::session::allow_all_files();
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1 << 16);
        let most = most.saturating_sub(OTHER_FILES + 2 * cpus as u64).min(1 << 14) as usize;
        let recorder = Recorder::of_all(Opened::new(most));
        let mut machine = Self {
            rings,
            recorder,
            waiting: Vec::new(),
            bytes: Vec::new(),
            processes: Processes::default(),
            in_kernel: InKernel::default(),
            clock,
            calibration,
            cpus,
            cgroup: group.as_deref().map(cgroups::path_of),
            no_stacks,
            own: std::process::id(),
            own_samples: 0,
            began: Instant::now(),
            used_before,
            recent: None,
        };
        machine.look_at_all();
        Ok(machine)
    }

    /// Samples a second of each CPU.
    pub fn frequency_hz(&self) -> u64 {
        self.clock.frequency_hz
    }

    /// The processes that run already: their names, their parents, and what code they map.
    fn look_at_all(&mut self) {
        for process in processes::all() {
            if let Some(parent) = processes::parent_of(process)
                && let Some(opened) = &mut self.recorder.opened
            {
                opened.parents.insert(process, parent);
            }
            let told = told_by(process).into_iter();
            for event in told.filter(|event| !matches!(event, Event::Mapped(mapping) if !mapping.executable))
            {
                self.recorder.count(event);
            }
        }
    }

    /// Keeps the samples of the last time of this length, from now on.
    pub fn keep_recent(&mut self, time: Duration) {
        self.recent = Some((time, VecDeque::new()));
    }

    /// The last samples, and for how long there have been any.
    pub fn recent(&mut self) -> (Duration, &[Moment]) {
        let Some((time, moments)) = &mut self.recent else { return (Duration::ZERO, &[]) };
        let gone = moments.partition_point(|moment| moment.at.elapsed() > *time);
        moments.drain(..gone);
        (self.began.elapsed().min(*time), moments.make_contiguous())
    }

    /// All samples so far, by whom they belong to.
    pub fn population(&self) -> Option<&Population> {
        self.recorder.tally.population.as_ref()
    }

    /// Since when, and on how many CPUs.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// The profiler's own CPU time so far, of what all CPUs had to give.
    pub fn own_share(&self) -> f64 {
        let used = own_cpu_time().saturating_sub(self.used_before).as_secs_f64();
        used / (self.cpus as f64 * self.began.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE)
    }

    /// Waits this long, or until there is much to read, and counts what there is.
    pub fn round(&mut self, longest: Duration) {
        let longest =
            Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        let mut waits: Vec<PollFd<'_>> =
            self.rings.iter().map(|ring| PollFd::from_borrowed_fd(ring.fd(), PollFlags::IN)).collect();
        // A signal ends it early, which is as good.
        let _ = poll(&mut waits, Some(&longest));
        // The ring of a CPU that went offline is always ready: its reader must not spin.
        let is_any = |flag: PollFlags| waits.iter().any(|fd| fd.revents().contains(flag));
        if is_any(PollFlags::HUP) && !is_any(PollFlags::IN) {
            let _ = poll(&mut [], Some(&SHORT_POLL));
        }
        drop(waits);
        self.read();
    }

    /// Counts what there is.
    pub fn read(&mut self) {
        // What was written before is complete when all rings are read.
        let began_ns = now_ns();
        self.recorder.maps.look();
        self.read_rings();
        self.count_before(began_ns);
        if let Some(opened) = &mut self.recorder.opened {
            self.processes.tidy_up(&mut opened.parents, &mut self.recorder.tally);
        }
    }

    fn read_rings(&mut self) {
        for ring in &mut self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            if ring.holds() == Holds::Registers {
                count_kernel(&self.bytes, self.own, &mut self.in_kernel);
            }
            self.waiting.extend(events(&self.bytes, ring.holds()));
        }
    }

    fn count_before(&mut self, time_ns: u64) {
        self.waiting.sort_by_key(Event::time_ns);
        let ready = self.waiting.partition_point(|event| event.time_ns() < time_ns);
        let ready: Vec<Event> = self.waiting.drain(..ready).collect();
        for event in ready {
            self.count(event);
        }
    }

    fn count(&mut self, event: Event) {
        match &event {
            Event::Sample(sample) => {
                if sample.process == self.own {
                    self.own_samples += 1;
                    return;
                }
                self.make_known(sample.process);
                if let Some(ip) = sample.ip {
                    self.open_file_at(sample.process, ip);
                }
            }
            Event::Stack(sample, _) if sample.process == self.own => return,
            Event::Named { process, thread, .. } if process == thread => {
                Processes::renamed(*process, &mut self.recorder.tally);
            }
            Event::Forked { process, parent, .. } if process != parent => {
                self.processes.begun(*process, &mut self.recorder.tally);
                if let Some(opened) = &mut self.recorder.opened {
                    opened.parents.insert(*process, *parent);
                }
            }
            Event::Ended { process, .. } => self.processes.ending(*process, &mut self.recorder.tally),
            _ => {}
        }
        if self.recent.is_some() {
            self.remember(&event);
        }
        self.recorder.count(event);
    }

    fn remember(&mut self, event: &Event) {
        let Event::Sample(sample) = event else { return };
        let tally = &self.recorder.tally;
        let space = tally.processes.get(&sample.process).map(|process| &process.space);
        let runs = tally.population.as_ref().and_then(|population| population.runs(sample.process));
        let (Some(space), Some(runs), Some((_, moments))) = (space, runs, &mut self.recent) else { return };
        moments.push_back(Moment {
            at: Instant::now(),
            runs: Arc::clone(runs),
            process: sample.process,
            place: sample.ip.and_then(|ip| space.place(ip)),
            in_kernel: sample.in_kernel,
        });
    }

    /// The first sample of a process: what it runs and where, and what data it maps.
    fn make_known(&mut self, process: u32) {
        let tally = &mut self.recorder.tally;
        if tally.population.as_ref().is_some_and(|known| known.runs(process).is_some()) {
            return;
        }
        let Some(opened) = &self.recorder.opened else { return };
        self.processes.make_known(process, &opened.parents, tally);
        self.look_at_data(process);
    }

    /// What a process maps by now.
    fn look_at_data(&mut self, process: u32) {
        for mapping in mappings_of(process).unwrap_or_default() {
            self.recorder.count(Event::Mapped(mapping));
        }
    }

    fn open_file_at(&mut self, process: u32, ip: units::Avma) {
        let Recorder { tally, opened, .. } = &mut self.recorder;
        let (Some(opened), Some(known)) = (opened, tally.processes.get(&process)) else { return };
        if let Some(mapping) = known.space.at(ip) {
            opened.need(mapping.what, tally.mapped(mapping.what), process, &known.space);
        }
    }

    /// What was sampled so far; counting begins anew, with the processes that are known.
    pub fn take(&mut self) -> Sampled {
        let began_ns = now_ns();
        self.read_rings();
        self.count_before(began_ns);
        self.look_at_data_again();
        let next = self.recorder.tally.without_samples();
        let tally = std::mem::replace(&mut self.recorder.tally, next);
        let next_maps = self.recorder.maps.of_the_same();
        let maps = std::mem::replace(&mut self.recorder.maps, next_maps);
        let in_kernel = std::mem::take(&mut self.in_kernel);
        let sampled = Sampled { used: Some(own_cpu_time()), ..self.sampled(tally, maps, in_kernel) };
        if let Some(opened) = &mut self.recorder.opened {
            // A deleted file takes space on the disk for as long as it is open.
            opened.keep(&sampled.tally.places.keys().map(|place| place.what).collect());
        }
        self.processes.ask_again();
        self.own_samples = 0;
        (self.began, self.used_before) = (Instant::now(), own_cpu_time());
        if self.recorder.tally.mapped.len() > MOST_MAPPED {
            self.forget_files();
        }
        sampled
    }

    /// All that was sampled; nothing follows.
    pub fn finish(mut self) -> Sampled {
        Sampled { used: None, ..self.take() }
    }

    /// A copy of what was sampled so far; counting goes on.
    pub fn copy(&mut self) -> Sampled {
        self.look_at_data_again();
        let maps = self.recorder.maps.of_the_same();
        self.sampled(self.recorder.tally.clone(), maps, self.in_kernel.clone())
    }

    fn sampled(&self, tally: Tally, maps: made_code::Maps, in_kernel: InKernel) -> Sampled {
        let mut refusals: Vec<Refused> = not_sharp(&self.calibration).into_iter().collect();
        refusals.extend(self.no_stacks.clone());
        Sampled {
            tally,
            maps,
            opened: self.recorder.opened.clone().unwrap_or_else(|| Opened::new(0)),
            in_kernel,
            clock: self.clock,
            calibration: self.calibration.clone(),
            cpus: self.cpus,
            cgroup: self.cgroup.clone(),
            refusals,
            elapsed: self.began.elapsed(),
            own_samples: self.own_samples,
            used_before: self.used_before,
            used: None,
        }
    }

    /// Data that was mapped since the first sample of its process.
    fn look_at_data_again(&mut self) {
        const LEAST: f64 = 0.01;
        let Some(population) = &self.recorder.tally.population else { return };
        let large: HashSet<u32> = population.rows(LEAST).into_iter().filter_map(|(_, row)| row.pid).collect();
        for process in large {
            self.look_at_data(process);
        }
    }

    /// Files come and go for months: what is mapped is asked anew.
    fn forget_files(&mut self) {
        let opened = self.recorder.opened.take().map_or_else(|| Opened::new(0), Opened::emptied);
        self.recorder = Recorder::of_all(opened);
        self.processes = Processes::default();
        self.look_at_all();
    }
}

/// Files and areas that are known at most, before they are asked anew.
const MOST_MAPPED: usize = 100_000;

/// Where in the kernel samples fell; its functions are no places of a program.
fn count_kernel(bytes: &[u8], own: u32, in_kernel: &mut InKernel) {
    const MODE: u16 = 7;
    const MODE_KERNEL: u16 = 1;
    for record in in_order(bytes).filter(|record| record.kind == kind::SAMPLE) {
        if record.misc & MODE == MODE_KERNEL
            && u32_at(record.body, 8) != Some(own)
            && let Some(ip) = u64_at(record.body, 0)
        {
            in_kernel.count(ip);
        }
    }
}

fn descriptor(path: &std::path::Path) -> Result<OwnedFd, SampleError> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|e| SampleError::NoCgroup { what: records::text_of(path), why: records::plain(&e.into()) })
}

/// A ring for each CPU, with the event of all that runs there.
fn rings(clock: Clock, cgroup: Option<&OwnedFd>) -> Result<Vec<Ring>, SampleError> {
    let no_ring = |e: io::Error| SampleError::NoRing { why: records::plain(&e) };
    let mut rings = Vec::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for cpu in cpus() {
        let event = match open_for_all(clock, cpu, cgroup) {
            Ok(event) => event,
            // CPUs that are offline have no events.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {
                last = e;
                continue;
            }
            Err(e) => return Err(SampleError::NotAllowedForAll { why: records::plain(&e) }),
        };
        let is_large = matches!(clock.holds, Holds::Stacks(_));
        let ring = match is_large.then(|| event.try_clone()).transpose().map_err(no_ring)? {
            Some(same) => Ring::of_size(same, clock.holds, LARGE_STACK_RING_BYTES)
                .or_else(|_| Ring::of(event, clock.holds)),
            None => Ring::of(event, clock.holds),
        };
        rings.push(ring.map_err(no_ring)?);
    }
    if rings.is_empty() {
        return Err(SampleError::NotAllowedForAll { why: records::plain(&last) });
    }
    Ok(rings)
}
