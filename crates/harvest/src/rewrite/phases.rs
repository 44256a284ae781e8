//! How long the phases of a rewrite take. `twin` tells when each one ends; the time is taken here,
//! since a pure room has no clock.

use std::time::Instant;
use twin::report::Phase;

pub(super) struct PhaseClock {
    last: Instant,
    phases: Vec<Phase>,
}

impl PhaseClock {
    pub(super) fn start() -> Self {
        Self { last: Instant::now(), phases: Vec::new() }
    }

    /// Time before this belongs to no phase.
    pub(super) fn begin(&mut self) {
        self.last = Instant::now();
    }

    pub(super) fn ended(&mut self, name: &str) {
        let now = Instant::now();
        self.phases.push(Phase { name: name.to_owned(), nanos: (now - self.last).as_nanos() as u64 });
        self.last = now;
    }

    /// The phases until now; none is left here.
    pub(super) fn take(&mut self) -> Vec<Phase> {
        std::mem::take(&mut self.phases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_told_in_their_order_and_once() {
        let mut clock = PhaseClock::start();
        clock.ended("read");
        clock.begin();
        clock.ended("write");
        let names = |phases: Vec<Phase>| phases.into_iter().map(|phase| phase.name).collect::<Vec<_>>();
        assert_eq!(names(clock.take()), ["read", "write"]);
        clock.ended("proof");
        assert_eq!(names(clock.take()), ["proof"]);
    }
}
