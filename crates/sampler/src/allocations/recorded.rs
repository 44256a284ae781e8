//! What the library told, in the order of time, with the calls that led there.

use super::region::{Copied, Region, Told, What};
use crate::files;
use insight::samples::{Allocated, MappedId, Place, Sample, SiteId, Tally, Unwinder};
use std::collections::{HashMap, HashSet, VecDeque};
use units::Avma;

/// What was read, and is not counted yet.
#[derive(Default)]
pub(crate) struct Recorded {
    told: VecDeque<Told>,
    /// Stacks by process and key, until their first record is counted.
    copied: HashMap<(u32, u64), Copied>,
    fresh: (Vec<Told>, Vec<Copied>),
    /// Processes whose `malloc` is another one.
    pub not_interposed: HashSet<u32>,
}

impl Recorded {
    pub(crate) fn read(&mut self, region: &mut Region) {
        region.drain(&mut self.fresh.0, &mut self.fresh.1);
        if !self.fresh.0.is_empty() {
            self.told.extend(self.fresh.0.drain(..));
            self.told.make_contiguous().sort_by_key(|told| told.time_ns);
        }
        for copied in self.fresh.1.drain(..) {
            self.copied.insert((copied.process, copied.key), copied);
        }
    }

    /// Counts what was told of until then.
    pub(crate) fn count_until(&mut self, time_ns: u64, tally: &mut Tally, unwinder: &mut Unwinder) {
        while let Some(told) = self.told.front().copied().filter(|told| told.time_ns <= time_ns) {
            self.told.pop_front();
            let process = told.process;
            match told.what {
                What::Allocated { address, size, return_address, key, is_kept } => {
                    // Where a program takes the address of `malloc`, that is its own stub's.
                    if self.not_interposed.remove(&process) {
                        tally.heaps.tells(process);
                    }
                    let site = self.site(tally, unwinder, process, key, return_address);
                    let new = Allocated { process, time_ns: told.time_ns, address, size, is_kept };
                    tally.heaps.allocated(&new, site);
                }
                What::Freed { address } => tally.heaps.freed(process, address, told.time_ns),
                What::Mapped { address, size, return_address, key } => {
                    let site = self.site(tally, unwinder, process, key, return_address);
                    let new = Allocated { process, time_ns: told.time_ns, address, size, is_kept: true };
                    tally.heaps.mapped(&new, site);
                }
                What::Unmapped { address, size } => {
                    tally.heaps.unmapped(process, address, size, told.time_ns);
                }
                What::Lowered { threshold } => tally.heaps.lowered(threshold, told.time_ns),
                What::Probed { ip, address, thread, ticks } => {
                    let (at, registers) = (Some(Avma(ip)), None);
                    let sample = Sample {
                        process,
                        thread,
                        time_ns: told.time_ns,
                        in_kernel: false,
                        ip: at,
                        registers,
                    };
                    tally.probed(sample, Avma(ip), address, ticks);
                }
                What::Began { is_interposed } => {
                    if is_interposed {
                        tally.heaps.began(process, told.time_ns);
                    } else {
                        self.not_interposed.insert(process);
                    }
                }
            }
        }
    }

    /// The site of a key; where its stack was not copied, by the return address alone.
    fn site(
        &mut self,
        tally: &mut Tally,
        unwinder: &mut Unwinder,
        process: u32,
        key: u64,
        return_address: u64,
    ) -> SiteId {
        if let Some(known) = tally.heaps.site(process, key) {
            return known;
        }
        let known = tally.processes.get(&process);
        let space = known.map(|process| &process.space);
        let place = space.and_then(|space| space.place(Avma(return_address.wrapping_sub(1))));
        let Some((space, place)) = space.zip(place) else { return tally.heaps.sites.id(Vec::new()) };
        let Some(mut copied) = self.copied.remove(&(process, key)) else {
            return tally.heaps.sites.id(vec![place]);
        };
        let mapped = &tally.mapped;
        let tables = |what: MappedId| files::unwind_tables(&mapped[what.0 as usize]);
        // As if the allocating function were one that has called nothing: its caller is the frame
        // of these registers.
        copied.registers.ip = Avma(return_address);
        let calls = unwinder.calls(&copied.registers, &copied.stack, space, false, tables);
        let path: Vec<Place> = [place].into_iter().chain(calls.callers).collect();
        let site = tally.heaps.sites.id(path);
        tally.heaps.learn(process, key, site);
        site
    }
}
