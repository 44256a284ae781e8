//! How much a primary's thread sleeps. One that sleeps now and then leaves its processor to others
//! by itself, and wakes for requests that wait for it: it takes no guests, and scavengers run at
//! home meanwhile, when it sleeps. Pure: what was seen in, a share out.

use crate::supervisor::figures::{COMPUTES_NS, SLEEP_SHARE_OF_NS, SLEEPS_FROM_SHARE};

/// Zero is a thread of which nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SleepShare {
    tid: i32,
    at: u64,
    share: f64,
    slept_at: u64,
}

impl SleepShare {
    /// The thread was seen asleep or not.
    pub(crate) fn saw(&mut self, now: u64, tid: i32, asleep: bool) {
        if self.tid != tid {
            *self = Self { tid, at: now, slept_at: now, ..Self::default() };
        }
        if asleep {
            self.slept_at = now;
        }
        let passed = now.saturating_sub(core::mem::replace(&mut self.at, now)) as f64;
        let seen = f64::from(u8::from(asleep));
        self.share += (seen - self.share) * (passed / SLEEP_SHARE_OF_NS).min(1.0);
        if now.saturating_sub(self.slept_at) >= COMPUTES_NS {
            self.share = 0.0;
        }
    }

    pub(crate) fn takes_guests(&self) -> bool {
        self.share < SLEEPS_FROM_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_takes_no_guests_and_a_program_that_begins_to_compute_soon_does() {
        let (mut it, mut now) = (SleepShare::default(), 1);
        let mut live = |it: &mut SleepShare, ms: u64, asleep: &dyn Fn(u64) -> bool| {
            (0..ms).find(|at| {
                now += 1_000_000;
                let before = it.takes_guests();
                it.saw(now, 7, asleep(*at));
                it.takes_guests() != before
            })
        };
        assert_eq!(live(&mut it, 10_000, &|_| false), None);
        assert_eq!(live(&mut it, 10_000, &|at| at % 100 == 0), None, "a file now and then");
        let went = live(&mut it, 1000, &|at| at % 10 < 2).expect("it serves");
        assert!(went < 300, "{went}");
        assert_eq!(live(&mut it, 10_000, &|at| at % 10 < 2), None);
        let back = live(&mut it, 2000, &|_| false).expect("it computes");
        assert!(back <= 50, "{back}");
        it.saw(now, 8, true);
        assert!(it.takes_guests(), "another thread");
    }
}
