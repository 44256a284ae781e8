//! The memory in which all areas and contexts of a harvest lie: mapped once by the primary, never
//! unmapped.
//!
//! It is private memory: a child that the primary or a scavenger forks gets a copy, in which no
//! other process works. The kernel gives pages only to slots that are used. Unused slots may not
//! even be touched, so that they count neither as data of the program (`RLIMIT_DATA`), nor as
//! memory to be locked (`mlockall`).

use crate::counting::order::{ALONE, GUESTS};
use crate::layout::area::{Area, SLOT, SLOW_STACK_TOP, kind};
use crate::layout::context::{CONTEXT_STRIDE, Context};
use crate::layout::page;
use crate::mappings::ScavengerMappings;
use crate::switching::labels;
use crate::switching::twin_entries::{self, TwinEntries};
use crate::switching::twin_pages::{self, TwinPages};
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use runtime_abi::context;
use runtime_abi::control::{Control, ModuleRow, SCAVENGERS, stage};

/// Most threads at a time, of primary and scavengers together.
pub(crate) const SLOTS: usize = 4096;

const HEADER: usize = 0x10000;
const HUGE: usize = 2 << 20;
const MADV_HUGEPAGE: usize = 14;
const CONTEXTS: usize = (CONTEXT_STRIDE * SLOTS).next_multiple_of(HUGE);
pub(crate) const SIZE: usize = HUGE + CONTEXTS + SLOT * SLOTS;
/// Slots that are opened at a time.
const OPENED: usize = 64;

/// Its header; contexts and slots follow.
#[repr(C)]
pub(crate) struct Region {
    pub(crate) control: AtomicPtr<Control>,
    contexts: AtomicU64,
    slots: AtomicU64,
    pub(crate) primary: AtomicI32,
    pub(crate) supervisor: AtomicI32,
    /// Rung by threads that want the supervisor to begin its next round at once.
    bell: AtomicU32,
    /// Odd while a round of the supervisor's is under way: until it changes, the supervisor may act
    /// on what it saw before. The supervisor's.
    pub(crate) round: AtomicU32,
    /// Slots from here on were never used.
    pub(crate) used: AtomicU32,
    /// Slots from here on may not be touched yet.
    opened: AtomicU32,
    pub(crate) threads: AtomicU32,
    /// Descriptors from this number on the supervisor keeps for a moment only, so that there is
    /// always one more to be had.
    pub(crate) kept_descriptors: AtomicI32,
    pub(crate) compact: AtomicU32,
    /// A copy that is a forked child's: no supervisor looks after it.
    forked: AtomicU32,
    pub(crate) xsave_mask: AtomicU64,
    /// Where contexts that were captured whole go on: in the primary's instance of the runtime,
    /// whichever instance asks.
    pub(crate) restore: AtomicU64,
    /// Where that code ends.
    pub(crate) restore_end: AtomicU64,
    /// A thread of the primary has forbidden itself system calls, as far as that is seen: none
    /// makes any for others. Written by the thread before it does, or by the supervisor.
    pub(crate) sandboxed: AtomicU32,
    /// Counts homes that parked, and threads that lend their processor until one does
    /// ([`crate::switching::loans`]).
    pub(crate) parked: AtomicU32,
    pub(crate) lenders: AtomicU32,
    /// Where guests find twins. Set once.
    pub(crate) twin_pages: AtomicPtr<TwinPages>,
    pub(crate) twin_entries: AtomicPtr<TwinEntries>,
    pub(crate) scavenger_mappings: [ScavengerMappings; SCAVENGERS],
    /// Thread ids by slot, 0 where a slot is free, [`TO_COME`] where its thread has not begun, and
    /// below that what [`in_hands_of`] says: they are searched without touching the slots.
    tids: [AtomicI32; SLOTS],
}

const _: () = assert!(size_of::<Region>() <= HEADER);

/// In place of the id of a thread that will get its area as it begins.
pub(crate) const TO_COME: i32 = -1;

/// In place of a thread's id while this process makes the area or gives it back: below
/// [`TO_COME`]. The other way round, too.
fn in_hands_of(pid: i32) -> i32 {
    TO_COME - 1 - pid
}

/// What a new area is for.
#[derive(Clone, Copy)]
pub(crate) struct AreaPurpose {
    pub(crate) kind: u32,
    /// For a thread of the primary.
    pub(crate) primary: bool,
    pub(crate) row: u32,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) fs: u64,
}

impl Region {
    /// Maps it. Vector state as [`crate::startup::constructor`] found it.
    pub(crate) fn map(control: *mut Control, xsave_mask: u64, compact: bool) -> Result<&'static Region, i32> {
        let (pages, entries) = (twin_pages::map()?, twin_entries::map()?);
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
        // SAFETY: a new mapping; nothing is replaced.
        let base = unsafe { sys::mmap(0, SIZE + HUGE, sys::PROT_NONE, flags, -1, 0) }?;
        let contexts = (base + HEADER).next_multiple_of(HUGE);
        // SAFETY: our own mapping.
        let opened =
            unsafe { sys::mprotect(base, contexts + CONTEXTS - base, sys::PROT_READ | sys::PROT_WRITE) };
        if opened < 0 {
            return Err(-opened as i32);
        }
        // SAFETY: advice on our own mapping.
        unsafe { sys::syscall(sys::nr::MADVISE, [contexts, HUGE, MADV_HUGEPAGE, 0, 0, 0]) };
        // SAFETY: zeroed memory large enough, and all fields are atomics, for which zero is a
        // value.
        let region: &'static Region = unsafe { &*(base as *const Region) };
        region.control.store(control, Relaxed);
        region.twin_pages.store(core::ptr::from_ref(pages).cast_mut(), Relaxed);
        region.twin_entries.store(core::ptr::from_ref(entries).cast_mut(), Relaxed);
        region.contexts.store(contexts as u64, Relaxed);
        region.slots.store((contexts + CONTEXTS) as u64, Relaxed);
        region.xsave_mask.store(xsave_mask, Relaxed);
        region.restore.store(labels::restore_address() as u64, Relaxed);
        region.restore_end.store(labels::restore_end() as u64, Relaxed);
        region.compact.store(u32::from(compact), Relaxed);
        Ok(region)
    }

    pub(crate) fn page(&self) -> &'static Control {
        crate::layout::area::follow!(self.control)
    }

    /// A module is there, at this distance from where its file says: guests find its twins.
    pub(crate) fn add_twins(&self, row: &ModuleRow, bias: u64) {
        self.twin_pages().add(row, bias);
        self.twin_entries().add(page::entries(self.page(), row), bias);
    }

    /// It is there no more.
    pub(crate) fn remove_twins(&self, row: &ModuleRow, bias: u64) {
        self.twin_pages().remove(row, bias);
        self.twin_entries().remove(page::entries(self.page(), row), bias);
    }

    fn twin_pages(&self) -> &'static TwinPages {
        crate::layout::area::follow!(self.twin_pages)
    }

    fn twin_entries(&self) -> &'static TwinEntries {
        crate::layout::area::follow!(self.twin_entries)
    }

    pub(crate) fn area(&self, slot: usize) -> &'static Area {
        // SAFETY: slots lie in the region; an area is made of atomics, for which zeroed memory
        // holds values.
        unsafe { &*((self.slots.load(Relaxed) as usize + slot * SLOT) as *const Area) }
    }

    /// Whether there is a supervisor that takes guests in and sends them home.
    pub(crate) fn has_supervisor(&self) -> bool {
        let (page, supervisor) = (self.page(), self.supervisor.load(Relaxed));
        page.supervisor_lost.load(Acquire) == 0
            && page.stage.load(Acquire) != stage::ALL_HOME
            && sys::tgkill(supervisor, supervisor, 0) != sys::ESRCH
    }

    pub(crate) fn bell(&self) -> u32 {
        self.bell.load(Acquire)
    }

    pub(crate) fn ring_bell(&self) {
        self.bell.fetch_add(1, AcqRel);
        sys::futex_wake(&self.bell);
    }

    /// The supervisor sleeps, unless the bell rings or has rung since.
    pub(crate) fn sleep_to_bell(&self, bell: u32, nanoseconds: u64) {
        sys::futex_wait_for(&self.bell, bell, nanoseconds);
    }

    fn context(&self, slot: usize) -> *mut Context {
        let table = self.contexts.load(Relaxed) as usize;
        (table + slot * CONTEXT_STRIDE + context::BEFORE) as *mut Context
    }

    /// Whether this may be the address of another area's context.
    pub(crate) fn holds_context(&self, area: &Area, address: u64) -> bool {
        self.in_table(address) && address != area.own().pointer() as u64
    }

    /// Whether an address lies where inserted code's contexts are.
    fn in_table(&self, address: u64) -> bool {
        let first = self.contexts.load(Relaxed);
        (first..first + (CONTEXT_STRIDE * SLOTS) as u64).contains(&address)
    }

    /// Whether an address is that of any context, also of one that lies in a slot.
    pub(crate) fn is_context(&self, address: u64) -> bool {
        self.in_table(address) || self.contains(address as usize)
    }

    pub(crate) fn slot_of(&self, area: &Area) -> usize {
        (area.address() - self.slots.load(Relaxed) as usize) / SLOT
    }

    /// Whether an address lies in one of the slots.
    pub(crate) fn contains(&self, address: usize) -> bool {
        let first = self.slots.load(Relaxed) as usize;
        (first..first + SLOT * SLOTS).contains(&address)
    }

    /// Slots that may be in use.
    pub(crate) fn slots(&self) -> usize {
        (self.used.load(Acquire) as usize).min(SLOTS)
    }

    pub(crate) fn tid(&self, slot: usize) -> i32 {
        self.tids[slot].load(Acquire)
    }

    /// Makes an area for a thread; none where all are in use.
    pub(crate) fn claim(&self, purpose: &AreaPurpose) -> Option<&'static Area> {
        self.claim_free(purpose).or_else(|| {
            self.reclaim(purpose.pid);
            self.claim_free(purpose)
        })
    }

    /// The same where a failure cannot be reported: waits for a thread that ends.
    pub(crate) fn claim_in_time(&self, purpose: &AreaPurpose) -> &'static Area {
        const NAP: u64 = 1_000_000;
        loop {
            match self.claim(purpose) {
                Some(area) => return area,
                None => sys::sleep_ns(NAP),
            }
        }
    }

    /// Gives back areas of this process whose threads are gone: the supervisor is slower, and a
    /// forked child has none. In a forked child this includes areas of processes that share its
    /// memory, and of threads that it left behind.
    fn reclaim(&self, pid: i32) {
        let forked = self.forked.load(Relaxed) != 0;
        for slot in (0..self.slots()).filter(|slot| self.tid(*slot) > 0) {
            let area = self.area(slot);
            let whose = area.pid.load(Relaxed);
            let idle = area.supervisor.guests() == 0 && (whose == pid || forked);
            let tid = self.tid(slot);
            if idle && sys::tgkill(whose, tid, 0) == sys::ESRCH {
                self.release(slot, tid);
            }
        }
    }

    /// The calling thread is that of a forked child, and has the area of the thread that forked it.
    pub(crate) fn forked(&self, area: &Area, tid: i32) {
        self.tids[self.slot_of(area)].store(tid, Release);
        area.tid.store(tid, Relaxed);
        self.forked.store(1, Relaxed);
    }

    /// A new thread has this id, so the one that had it is gone; the supervisor will not find it.
    pub(crate) fn supersede(&self, tid: i32, area: &Area) {
        for slot in (0..self.slots()).filter(|slot| self.tid(*slot) == tid) {
            let other = self.area(slot);
            if other.address() != area.address() {
                other.tid.store(i32::MAX, Release);
                self.tids[slot].store(i32::MAX, Release);
            }
        }
    }

    fn claim_free(&self, purpose: &AreaPurpose) -> Option<&'static Area> {
        let slot = self.hold(purpose.pid)?;
        let area = self.area(slot);
        self.prepare(area, self.context(slot), purpose);
        area.kind.store(purpose.kind, Release);
        self.tids[slot].store(purpose.tid, Release);
        Some(area)
    }

    /// Takes a free slot: from here on it is in this process's hands.
    pub(crate) fn hold(&self, pid: i32) -> Option<usize> {
        let slot = (0..SLOTS).find(|slot| {
            // Not touching slots that were never used: they have no memory yet.
            self.tid(*slot) == 0
                && self.open(*slot)
                && self.tids[*slot].compare_exchange(0, in_hands_of(pid), AcqRel, Relaxed).is_ok()
        })?;
        self.used.fetch_max(slot as u32 + 1, AcqRel);
        Some(slot)
    }

    /// The process that makes this area or gives it back right now, if one does. One that is killed
    /// meanwhile leaves it so.
    pub(crate) fn holder(&self, slot: usize) -> Option<i32> {
        Some(self.tid(slot)).filter(|tid| *tid < TO_COME).map(in_hands_of)
    }

    /// The process that had it in its hands is gone.
    pub(crate) fn take_from_holder(&self, slot: usize, pid: i32) {
        self.area(slot).kind.store(kind::FREE, Release);
        let _ = self.tids[slot].compare_exchange(in_hands_of(pid), 0, AcqRel, Relaxed);
    }

    /// A slot may be touched from here on, or never.
    fn open(&self, slot: usize) -> bool {
        let opened = self.opened.load(Acquire) as usize;
        if slot < opened {
            return true;
        }
        let (first, end) = (self.slots.load(Relaxed) as usize, (slot / OPENED + 1) * OPENED);
        // SAFETY: slots of the region, which no thread may touch yet; another thread may do the
        // same right now.
        let result = unsafe {
            let (at, size) = (first + opened * SLOT, (end - opened) * SLOT);
            sys::mprotect(at, size, sys::PROT_READ | sys::PROT_WRITE)
        };
        if result == 0 {
            self.opened.fetch_max(end as u32, AcqRel);
        }
        result == 0
    }

    /// An area that was made for a process to come is its thread's from here on.
    pub(crate) fn adopt(&self, area: &Area, tid: i32, kind: u32) {
        self.tids[self.slot_of(area)].store(tid, Release);
        area.kind.store(kind, Release);
    }

    /// Gives back an area whose thread, which had this id, is gone, and whose ring is empty. Once:
    /// supervisor and threads that look for a free area may both try.
    pub(crate) fn release(&self, slot: usize, tid: i32) {
        let area = self.area(slot);
        let held = in_hands_of(area.pid.load(Relaxed));
        if self.tids[slot].compare_exchange(tid, held, AcqRel, Relaxed).is_ok() {
            area.kind.store(kind::FREE, Release);
            self.tids[slot].store(0, Release);
        }
    }

    /// Gives back an area that was claimed for a thread to come: there is none, or none any more.
    pub(crate) fn give_back(&self, area: &Area) {
        self.release(self.slot_of(area), TO_COME);
    }

    fn prepare(&self, area: &'static Area, own: *mut Context, purpose: &AreaPurpose) {
        // Its pages are there before a primary's thread writes to them: frame, XSAVE image, slow
        // stack.
        for page in [0x0ff0, 0x1ff0, 0x2ff0, 0x3ff0, 0x6ff0, 0x7ff0] {
            // SAFETY: inside the slot, where nothing stands yet; volatile, so that it happens.
            unsafe { ((area.address() + page) as *mut u64).write_volatile(0) };
        }
        let (control, quiet) = area.inner_contexts();
        let here = core::ptr::from_ref(area).cast_mut();
        area.twin.this.store(here, Relaxed);
        area.twin.own.store(own, Relaxed);
        area.twin.cur.store(own, Relaxed);
        area.control.store(control, Relaxed);
        area.quiet.store(quiet, Relaxed);
        area.region.store(core::ptr::from_ref(self).cast_mut(), Relaxed);
        let primary = purpose.primary;
        area.set_primarys(primary);
        let leave = if primary { labels::leave_address() } else { labels::stay_address() };
        area.twin.leave.store(leave as u64, Relaxed);
        area.switching.slow_stack.store((area.address() + SLOW_STACK_TOP) as u64, Relaxed);
        area.switching.compact.store(self.compact.load(Relaxed), Relaxed);
        area.switching.xsave_mask.store(self.xsave_mask.load(Relaxed), Relaxed);
        area.inbox.store(core::ptr::null_mut(), Relaxed);
        area.pid.store(purpose.pid, Relaxed);
        area.tid.store(purpose.tid, Relaxed);
        area.row.store(purpose.row, Relaxed);
        for word in [
            &area.switching.deferred,
            &area.lock,
            &area.closed,
            &area.settled,
            &area.thread.lent,
            &area.thread.control_entries,
        ] {
            word.store(0, Relaxed);
        }
        area.thread.start[0].store(0, Relaxed);
        area.thread.wrapped.store(core::ptr::null_mut(), Relaxed);
        area.thread.sleeps.iter().for_each(|end| end.store(0, Relaxed));
        for pointer in [&area.thread.aside, &area.thread.aside_last] {
            pointer.store(core::ptr::null_mut(), Relaxed);
        }
        area.signals.reset();
        area.supervisor.reset();
        area.loans().reset();
        area.turn_words().reset();
        area.twin.budget.store(0, Relaxed);
        area.twin.passes.store(-1, Relaxed);
        // Where the pace is not kept, guests are aboard from the first.
        let order = if self.page().watched != 0 { ALONE } else { GUESTS };
        area.orders.reset(order);
        area.counting.reset(order);
        let counters = [area.front(), area.back()].map(Context::pointer);
        for context in [own, control, quiet].into_iter().chain(counters) {
            // SAFETY: contexts of this slot, in memory that holds atomics.
            let context = unsafe { &*context };
            context.next.store(context.pointer(), Relaxed);
            context.prev.store(context.pointer(), Relaxed);
            context.home.store(here, Relaxed);
            context.host.store(core::ptr::null_mut(), Relaxed);
            context.link.store(core::ptr::null_mut(), Relaxed);
            context.fs.store(purpose.fs, Relaxed);
            context.state.store(crate::layout::context::state::HOME, Relaxed);
            context.recall.store(0, Relaxed);
            context.since.store(0, Relaxed);
            context.rip.store(0, Relaxed);
            context.straight.store(0, Relaxed);
            context.back.store(0, Relaxed);
        }
        // The ring is own alone.
        area.control().next.store(own, Relaxed);
        let enter = if primary { labels::control_address() } else { labels::park_address() };
        area.control().rip.store(enter as u64, Relaxed);
        let parks = if primary { [0; 2] } else { labels::park_ends() };
        area.thread.parks.iter().zip(parks).for_each(|(end, at)| end.store(at, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::area::kind;
    use crate::layout::region::AreaPurpose;
    use crate::switching::ring_tests::world;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn the_maker_of_an_area_is_known_until_it_is_made() {
        let (area, _) = world(0);
        let region = area.region();
        let purpose = AreaPurpose { kind: kind::HOME, primary: false, row: 0, pid: 4711, tid: 12, fs: 0 };
        let other = region.claim(&purpose).expect("an area");
        let slot = region.slot_of(other);
        assert_eq!((region.holder(slot), region.tid(slot)), (None, 12));
        region.release(slot, 12);
        region.release(slot, 12);
        assert_eq!((region.holder(slot), region.tid(slot)), (None, 0));
        // As if it was killed there.
        assert_eq!(region.hold(4711), Some(slot));
        assert_eq!((region.holder(slot), region.slots()), (Some(4711), slot + 1));
        let next = region.claim(&purpose).expect("an area");
        assert_eq!(region.slot_of(next), slot + 1, "nobody takes what another makes");
        region.take_from_holder(slot, 4711);
        assert_eq!(region.slot_of(region.claim(&purpose).expect("an area")), slot);
        assert_eq!(region.area(slot).kind.load(Relaxed), kind::HOME);
    }
}
