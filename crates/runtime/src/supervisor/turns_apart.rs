//! Programs that ran together and run apart now take turns, and so do those that cannot come
//! aboard: on each processor one of them has its caches to itself for long. Where the kernel shared
//! the processor out, each would find them full of the others' lines every few milliseconds:
//! searches of 6 MB each took half as long again.

use crate::layout::area::{Area, kind};
use crate::layout::context::state;
use crate::supervisor::Supervisor;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// Next to this what caches take to come back is little.
const TURN_NS: u64 = 100_000_000;

/// Whether its thread would use a processor now, as far as that is known.
fn has_work(home: &Area) -> bool {
    match home.own().state.load(Acquire) {
        state::PARKED | state::PARKING => true,
        state::HOME => home.supervisor.has_work.load(Relaxed) != 0,
        _ => false,
    }
}

impl Supervisor {
    /// Says of each home whether it waits for its turn: as many have theirs as threads of the
    /// carrier carry no guest. A home that sleeps lets the next one go.
    pub(crate) fn take_turns(&mut self) {
        if self.together.is_none() {
            return;
        }
        let carries = |carrier: &Area| carrier.supervisor.guests.load(Relaxed) > 0;
        let all = self.areas(kind::PRIMARY).filter(|carrier| !carries(carrier)).count();
        let mut places = all.max(self.apart);
        let take_turns = places > 0;
        let homes = self.areas(kind::HOME).count().max(1);
        let first = (self.now / TURN_NS) as usize % homes;
        let in_turn = self.areas(kind::HOME).skip(first).chain(self.areas(kind::HOME).take(first));
        for home in in_turn {
            let works = take_turns && has_work(home);
            let waits = works && places == 0;
            places -= usize::from(works && !waits);
            home.supervisor.waits_for_turn.store(u32::from(waits), Relaxed);
        }
        if take_turns {
            self.wake_at = self.wake_at.min((self.now / TURN_NS + 1) * TURN_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::ring_tests::world;

    #[test]
    fn those_with_work_take_turns_one_for_each_thread_that_would_carry_them() {
        let (area, guests) = world(3);
        let region = area.region();
        let mut supervisor = Supervisor::new(region, &[]);
        // SAFETY: zero is a value of it.
        supervisor.together = unsafe { super::super::table() };
        let homes: [&Area; 3] = [0, 1, 2].map(|at| guests[at].home());
        let mut wait = |now: u64, apart: usize| {
            (supervisor.now, supervisor.apart) = (now * TURN_NS, apart);
            area.supervisor.guests.store(1, Relaxed);
            supervisor.take_turns();
            homes.map(|home| home.supervisor.waits_for_turn.load(Relaxed) != 0)
        };
        for home in homes {
            home.own().state.store(state::HOME, Relaxed);
            home.supervisor.has_work.store(1, Relaxed);
        }
        assert_eq!(wait(3, 0), [false; 3], "they are together");
        assert_eq!(wait(3, 1), [false, true, true]);
        assert_eq!(wait(4, 1), [true, false, true]);
        assert_eq!(wait(5, 2), [false, true, false]);
        assert_eq!(wait(5, 3), [false; 3]);
        homes[1].supervisor.has_work.store(0, Relaxed);
        assert_eq!(wait(4, 1), [true, false, false], "a sleeping one lets the next one go");
        homes[1].own().state.store(state::PARKED, Relaxed);
        assert_eq!(wait(4, 1), [true, false, true]);
        area.supervisor.guests.store(0, Relaxed);
        supervisor.apart = 0;
        supervisor.take_turns();
        assert_eq!(homes.map(|home| home.supervisor.waits_for_turn.load(Relaxed)), [1, 0, 1]);
    }
}
