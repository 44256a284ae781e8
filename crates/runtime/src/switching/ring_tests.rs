//! The ring without threads: every way in and out, hooked and not.

use crate::layout::area::{Area, kind, lock};
use crate::layout::context::{Context, state};
use crate::layout::region::{AreaPurpose, Region};
use crate::switching::ring;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, trip};

pub(crate) fn world(guests: usize) -> (&'static Area, Vec<&'static Context>) {
    let size = size_of::<Control>() / 8 + 1;
    let page: *mut u64 = Vec::leak(vec![0_u64; size]).as_mut_ptr();
    let region = Region::map(page.cast(), 7, true).expect("memory");
    let purpose = |kind| AreaPurpose { kind, primary: kind == kind::PRIMARY, row: 0, pid: 1, tid: 1, fs: 0 };
    let area = region.claim(&purpose(kind::PRIMARY)).expect("an area");
    let homes = (0..guests).map(|_| region.claim(&purpose(kind::HOME)).expect("an area").own());
    (area, homes.collect())
}

/// As the supervisor boards a parked context.
pub(crate) fn board(area: &'static Area, guest: &Context, modes: u64) {
    guest.modes.store(modes, Relaxed);
    guest.state.store(state::ABOARD, Relaxed);
    ring::offer(area, guest);
    ring::hook(area);
}

/// The order of the ring, from own to own, forwards; checked backwards.
pub(crate) fn order(area: &Area) -> Vec<*mut Context> {
    let own = area.own().pointer();
    let (mut at, mut before, mut found) = (ring::first(area), own, Vec::new());
    while at != own {
        found.push(at);
        // SAFETY: contexts of the region.
        let context = unsafe { &*at };
        assert_eq!(context.prev.load(Relaxed), before);
        before = at;
        at = context.next.load(Relaxed);
    }
    assert_eq!(area.own().prev.load(Relaxed), before);
    found
}

pub(crate) fn pointers(guests: &[&Context]) -> Vec<*mut Context> {
    guests.iter().map(|guest| guest.pointer()).collect()
}

#[test]
fn guests_join_at_the_next_yield_if_their_modes_are_the_primarys() {
    let (area, guests) = world(3);
    for guest in &guests[..2] {
        board(area, guest, ring::modes());
    }
    board(area, guests[2], ring::modes() ^ 1 << 13);
    assert_eq!(area.own().next.load(Relaxed), area.control().pointer());
    let next = ring::control(area);
    assert_eq!(order(area), pointers(&[guests[1], guests[0]]), "an inbox is a stack");
    assert_eq!(next, guests[1].pointer());
    assert_eq!(area.own().next.load(Relaxed), next, "no longer hooked");
    assert_eq!(guests[2].state.load(Relaxed), state::LEAVING);
    assert_eq!(guests[2].why.load(Relaxed), trip::MODES as u32);
    assert_eq!(area.lock.load(Relaxed), lock::FREE);
}

#[test]
fn each_can_be_taken_out_hooked_or_not() {
    for hooked in [false, true] {
        for out in 0..3 {
            let (area, guests) = world(3);
            for guest in &guests {
                board(area, guest, ring::modes());
            }
            ring::control(area);
            let before = order(area);
            if hooked {
                ring::hook(area);
            }
            // SAFETY: a context of the region.
            let gone = unsafe { &*before[out] };
            let next = ring::take_out(area, gone);
            let mut expected = before.clone();
            expected.remove(out);
            assert_eq!(order(area), expected, "hooked {hooked}, out {out}");
            assert_eq!(next, before.get(out + 1).copied().unwrap_or(area.own().pointer()));
            assert_eq!(gone.next.load(Relaxed), gone.pointer());
        }
    }
}

#[test]
fn a_recalled_guest_goes_home_at_the_next_yield() {
    let (area, guests) = world(2);
    for guest in &guests {
        board(area, guest, ring::modes());
    }
    ring::control(area);
    guests[0].recall.store(trip::RECALL as u32, Relaxed);
    ring::hook(area);
    ring::control(area);
    assert_eq!(order(area), pointers(&guests[1..]));
    assert_eq!(guests[0].why.load(Relaxed), trip::RECALL as u32);
    area.closed.store(1, Relaxed);
    ring::hook(area);
    assert_eq!(ring::control(area), area.own().pointer());
    assert_eq!(guests[1].state.load(Relaxed), state::LEAVING);
}

#[test]
fn while_the_supervisor_takes_guests_away_the_thread_goes_on_alone() {
    let (area, guests) = world(3);
    for guest in &guests[..2] {
        board(area, guest, ring::modes());
    }
    ring::control(area);
    board(area, guests[2], ring::modes());
    area.lock.store(lock::SUPERVISOR, Relaxed);
    assert_eq!(ring::control(area), area.own().pointer());
    let mut taken = Vec::new();
    ring::take_all(area, |guest| taken.push(guest.pointer()));
    taken.sort();
    let mut all = pointers(&guests);
    all.sort();
    assert_eq!(taken, all, "those in the ring and those in the inbox");
    area.lock.store(lock::FREE, Relaxed);
    assert_eq!(ring::control(area), area.own().pointer());
    assert_eq!(area.own().next.load(Relaxed), area.own().pointer());
}

#[test]
fn a_home_is_hooked_and_unhooked() {
    let (_, guests) = world(1);
    let home = guests[0].home();
    ring::hook(home);
    assert_eq!(guests[0].next.load(Relaxed), home.control().pointer());
    assert!(ring::unhook(home));
    assert_eq!(guests[0].next.load(Relaxed), guests[0].pointer());
    assert!(!ring::unhook(home), "its thread came first");
}

#[test]
fn a_former_guest_has_a_ring_of_its_own_again() {
    let (area, guests) = world(3);
    for guest in &guests[..2] {
        board(area, guest, ring::modes());
    }
    ring::control(area);
    let host = guests[1].home();
    ring::take_out(area, guests[1]);
    board(host, guests[2], ring::modes());
    ring::control(host);
    assert_eq!(order(host), pointers(&guests[2..]));
    assert_eq!(order(area), pointers(&guests[..1]));
}

#[test]
fn a_thread_that_finds_the_lock_taken_is_alone_and_comes_again() {
    let (area, guests) = world(1);
    board(area, guests[0], ring::modes());
    ring::control(area);
    let entries = area.thread.control_entries.load(Relaxed);
    ring::hook(area);
    area.lock.store(lock::SUPERVISOR, Relaxed);
    assert_eq!(ring::control(area), area.own().pointer());
    assert_eq!(area.thread.control_entries.load(Relaxed), entries);
    area.lock.store(lock::FREE, Relaxed);
    assert_eq!(ring::control(area), guests[0].pointer());
    assert_eq!(area.thread.control_entries.load(Relaxed), entries + 1);
}
