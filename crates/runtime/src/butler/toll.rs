//! What the butler takes of the primary's own time, where it has no CPU to itself: that is lost to the primary, too, and held against its
//! guests, for whose sake it is taken.

use crate::area::Area;
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;

#[derive(Default)]
pub(super) struct Toll {
    /// How long the butler ran up to the last round; 0: that is not known.
    ran: u64,
    /// Since the round before, and where it is.
    took: u64,
    cpu: u32,
}

impl Toll {
    /// A round begins. `spare`: where no primary's thread is.
    pub(super) fn look(&mut self, spare: bool) {
        if spare {
            *self = Self::default();
            return;
        }
        let ran = sys::ran_ns();
        self.took = if self.ran == 0 { 0 } else { ran.saturating_sub(self.ran) };
        (self.ran, self.cpu) = (ran, sys::cpu());
    }

    /// Since the round before, from this thread.
    pub(super) fn from(&self, area: &Area) -> f64 {
        let there = area.cpu.load(Relaxed) == self.cpu && area.slept.load(Relaxed) == 0;
        if there { self.took as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring_tests::world;

    #[test]
    fn what_it_takes_is_taken_from_who_is_there_and_awake() {
        let (area, _) = world(1);
        let mut toll = Toll::default();
        let mut most = 0.0_f64;
        for _ in 0..1000 {
            toll.look(false);
            area.cpu.store(toll.cpu, Relaxed);
            most = most.max(toll.from(area));
        }
        assert!(most > 0.0 && most < 1e9, "{most}");
        area.cpu.store(toll.cpu + 1, Relaxed);
        assert_eq!(toll.from(area).to_bits(), 0);
        area.cpu.store(toll.cpu, Relaxed);
        area.slept.store(1, Relaxed);
        assert_eq!(toll.from(area).to_bits(), 0);
        // With a CPU to itself it takes nothing, nor is that held against anybody later.
        area.slept.store(0, Relaxed);
        toll.look(true);
        assert_eq!(toll.from(area).to_bits(), 0);
        toll.look(false);
        assert_eq!(toll.took, 0);
    }
}
