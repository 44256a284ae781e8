//! Events in the order of their times, counted into a tally.
//!
//! Each CPU has its ring, and a mapping is told on one CPU before a sample in it is on another. So
//! what was read is held back until nothing earlier can come any more: in one round all rings are
//! read; what was written before that round began is complete when it ends.

use crate::allocations::recorded::Recorded;
use crate::allocations::region::Region;
use crate::files::{self, BuildIds};
use crate::interpreted::Interpreters;
use crate::made_code::{self, Maps, Pages};
use crate::opened::Opened;
use crate::perf::event::{Event, NewMapping, events};
use crate::perf::open::now_ns;
use crate::perf::ring::Ring;
use crate::runtime_heaps::RuntimeHeaps;
use crate::signals::reader::Reader;
use insight::samples::{
    Area, Calls, CutOff, Mapped, MappedId, Mapping, Place, Population, Sample, Tally, Unwinder,
};
use units::{Avma, FileOffset};

#[derive(Default)]
pub(crate) struct Recorder {
    pub tally: Tally,
    unwinder: Unwinder,
    pub allocations: Recorded,
    waiting: Vec<Event>,
    bytes: Vec<u8>,
    /// Only samples from this time on, and before that one, count; mappings always do.
    window_ns: Option<(u64, u64)>,
    build_ids: BuildIds,
    /// Reads the region's samples, where these are not the kernel's.
    pub signals: Option<Reader>,
    /// The maps of code that processes make.
    pub maps: Maps,
    interpreters: Interpreters,
    runtime_heaps: RuntimeHeaps,
    /// The code itself, where the processes run here.
    pub pages: Option<Pages>,
    /// Where all processes of the machine are sampled: their files, opened while they ran.
    pub opened: Option<Opened>,
}

impl Recorder {
    /// Reads samples from the region, too.
    pub(crate) fn with_signals(mut self, signals: Reader) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Of all processes of the machine, with their files.
    pub(crate) fn of_all(opened: Opened) -> Self {
        let mut recorder = Self { opened: Some(opened), ..Self::default() };
        recorder.tally.population = Some(Population::default());
        recorder
    }

    /// Counts samples of this part of the run only, by their clock.
    pub(crate) fn within(mut self, window_ns: Option<(u64, u64)>) -> Self {
        self.window_ns = window_ns;
        self
    }

    /// Reads code that no file has from the processes while they run.
    pub(crate) fn with_pages(mut self) -> Self {
        self.pages = Some(Pages::default());
        self
    }

    /// Files are believed to be what was mapped only if they have these build ids.
    pub(crate) fn with_build_ids(mut self, build_ids: BuildIds) -> Self {
        self.build_ids = build_ids;
        self
    }

    /// What was counted, and the build ids of the files that it names.
    pub(crate) fn into_parts(self) -> (Tally, BuildIds) {
        (self.tally, self.build_ids)
    }

    /// Reads all rings once.
    pub(crate) fn round(&mut self, rings: &mut [Ring], region: Option<&mut Region>) {
        let began_ns = now_ns();
        self.maps.look();
        self.runtime_heaps.look(began_ns, &mut self.tally);
        self.read(rings);
        self.begin_reading();
        if let Some(region) = region {
            self.read_region(region);
            self.count_before(began_ns);
            if self.tally.heaps.is_nearly_full() {
                let threshold = self.tally.heaps.threshold() / 2;
                region.lower(threshold);
                self.tally.heaps.lowered(threshold, began_ns);
            }
        } else {
            self.count_before(began_ns);
        }
    }

    /// Reads what is left, and counts all.
    pub(crate) fn finish(&mut self, rings: &mut [Ring], region: Option<&mut Region>) {
        self.read(rings);
        self.begin_reading();
        if let Some(region) = region {
            self.read_region(region);
        }
        self.count_before(u64::MAX);
        self.tally.heaps.end(now_ns());
    }

    /// Whether code was sampled that was not there before.
    pub(crate) fn is_busy(&self) -> bool {
        self.pages.as_ref().is_some_and(Pages::is_busy)
    }

    fn begin_reading(&mut self) {
        if let Some(pages) = &mut self.pages {
            pages.begin(now_ns());
        }
    }

    /// Where a thread was, with the version of its code if that is of no file.
    fn place(&mut self, sample: &Sample, ip: Avma) -> Option<(Place, u32)> {
        let place = self.tally.processes.get(&sample.process)?.space.place(ip)?;
        let pages = self.pages.as_mut().filter(|_| self.tally.mapped(place.what).area.is_some());
        let version = pages.map_or(0, |pages| pages.version(sample.process, ip.0, sample.time_ns));
        Some((place, version))
    }

    fn read_region(&mut self, region: &mut Region) {
        self.allocations.read(region);
        if let Some(signals) = &mut self.signals {
            signals.read(region, &mut self.waiting);
        }
    }

    fn read(&mut self, rings: &mut [Ring]) {
        for ring in rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            self.waiting.extend(events(&self.bytes, ring.holds()));
        }
    }

    fn count_before(&mut self, time_ns: u64) {
        self.waiting.sort_by_key(Event::time_ns);
        let ready = self.waiting.partition_point(|event| event.time_ns() < time_ns);
        let ready: Vec<Event> = self.waiting.drain(..ready).collect();
        for event in ready {
            self.allocations.count_until(event.time_ns(), &mut self.tally, &mut self.unwinder);
            self.count(event);
        }
        self.allocations.count_until(time_ns, &mut self.tally, &mut self.unwinder);
    }

    pub(crate) fn count(&mut self, event: Event) {
        let time_ns = event.time_ns();
        match event {
            Event::Sample(sample) if self.is_asked_for(sample.time_ns) => {
                let place = sample.ip.and_then(|ip| self.place(&sample, ip));
                self.tally.count_version(sample, place.map_or(0, |(_, version)| version));
            }
            Event::Stack(sample, stack) if self.is_asked_for(sample.time_ns) => self.unwind(sample, &stack),
            Event::Chain(sample, callers) if self.is_asked_for(sample.time_ns) => {
                self.chain(sample, &callers);
            }
            Event::Access(access) if self.is_asked_for(access.time_ns) => self.tally.count_access(&access),
            Event::Sample(_) | Event::Stack(..) | Event::Chain(..) | Event::Access(_) => {}
            Event::Mapped(mapping) => self.map(mapping),
            Event::Named { process, thread, name, executed, .. } => {
                let entry = self.tally.processes.entry(process).or_default();
                if executed {
                    if let Some(pages) = &mut self.pages {
                        pages.forget(process);
                    }
                    self.interpreters.forget(process);
                    self.runtime_heaps.forget(process);
                    entry.runtime_heap = None;
                    entry.space = insight::samples::AddressSpace::default();
                    self.tally.heaps.forget(process, time_ns);
                }
                if process == thread {
                    entry.name = name;
                }
            }
            Event::Forked { process, parent: parent_id, .. } => {
                if process != parent_id {
                    let parent = self.tally.processes.get(&parent_id);
                    let (name, space, heap) = parent.map_or_else(Default::default, |p| {
                        (p.name.clone(), p.space.clone(), p.runtime_heap.clone())
                    });
                    let entry = self.tally.processes.entry(process).or_default();
                    (entry.name, entry.space, entry.runtime_heap) = (name, space, heap);
                    self.tally.heaps.forked(process, parent_id, time_ns);
                }
            }
            Event::Ended { process, .. } => {
                self.runtime_heaps.forget(process);
                self.tally.heaps.forget(process, time_ns);
            }
            Event::Lost { count, .. } => self.tally.lost += count,
            Event::LostStacks { count, .. } => self.tally.stacks.lost += count,
        }
    }

    fn is_asked_for(&self, time_ns: u64) -> bool {
        self.window_ns.is_none_or(|(from, to)| (from..to).contains(&time_ns))
    }

    /// Stacks are unwound at once: kept as bytes they would take megabytes a second.
    fn unwind(&mut self, sample: Sample, stack: &[u8]) {
        let Some(registers) = sample.registers else { return };
        let Some((place, version)) = self.place(&sample, sample.ip.unwrap_or(registers.ip)) else { return };
        let place = self.tally.with_version(place, version);
        let Some(process) = self.tally.processes.get(&sample.process) else { return };
        // What a recording was made of is not there any more.
        let runs_scripts =
            self.pages.is_some() && self.interpreters.runs_scripts(&self.tally, sample.process);
        let (mapped, build_ids, opened) = (&self.tally.mapped, &self.build_ids, &mut self.opened);
        let tables = |what: MappedId| match opened {
            Some(opened) => {
                opened.unwind_tables(what, &mapped[what.0 as usize], sample.process, &process.space)
            }
            None => files::unwind_tables_with(&mapped[what.0 as usize], build_ids),
        };
        let calls = self.unwinder.calls(&registers, stack, &process.space, runs_scripts, tables);
        let mut scripts = Vec::new();
        if runs_scripts {
            let places: Vec<Place> = [place].into_iter().chain(calls.callers.iter().copied()).collect();
            let stack = (registers.general[4], stack);
            let lines =
                self.interpreters.lines(&self.tally, sample.process, &places, &calls.registers, stack);
            scripts =
                lines.into_iter().map(|(frame, line)| (frame, self.tally.stacks.script(line))).collect();
        }
        self.tally.stacks.count_scripts(&process.name, place, sample.in_kernel, &calls, &scripts);
    }

    /// Counts a stack that is unwound already.
    fn chain(&mut self, sample: Sample, callers: &[Avma]) {
        let Some(process) = self.tally.processes.get(&sample.process) else { return };
        let Some(place) = sample.ip.and_then(|ip| process.space.place(ip)) else { return };
        // Each caller goes on behind its call.
        let inside = |at: &Avma| process.space.place(Avma(at.0.checked_sub(1)?));
        let found: Vec<_> = callers.iter().map_while(inside).collect();
        let cut_off = (found.len() < callers.len()).then_some(CutOff::ByKernel);
        let calls = Calls { callers: found, cut_off, registers: Vec::new() };
        self.tally.stacks.count(&process.name, place, sample.in_kernel, &calls);
    }

    fn map(&mut self, new: NewMapping) {
        self.maps.mapped(new.process, &new.name);
        let is_area = new.name.is_empty() || new.name.starts_with(b"//") || new.name.starts_with(b"[");
        // Shared memory that holds code is told from a file; other such memory keeps its number, by
        // which processes are known to share it.
        let is_area = is_area && new.name != files::VDSO || new.executable && made_code::is_memory(&new.name);
        if is_area && new.executable {
            self.maps.expect(new.process);
        }
        let area =
            is_area.then_some(Area { process: new.process, start: new.start, bytes: new.bytes, version: 0 });
        // An area's offset means nothing: addresses themselves tell its instructions apart.
        let offset = FileOffset(if is_area { new.start } else { new.offset });
        let mapped = Mapped { name: new.name, device: new.device, inode: new.inode, area };
        // What a recording was made of is not there any more.
        if self.pages.is_some() && area.is_none() {
            let part = new.offset..new.offset.saturating_add(new.bytes);
            self.runtime_heaps.mapped(new.process, &mapped, part, new.start);
        }
        let what = self.tally.id(mapped);
        let (start, end) = (Avma(new.start), Avma(new.start.saturating_add(new.bytes)));
        let mapping = Mapping { start, end, offset, what, is_shared: new.is_shared };
        self.tally.processes.entry(new.process).or_default().space.map(mapping);
    }
}
