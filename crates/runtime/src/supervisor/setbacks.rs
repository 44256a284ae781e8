//! What is tried again and again, and left for a while where it fails: twice in a row begins a
//! pause, which doubles each time. Pure: time and outcomes in, whether it pauses out.

/// Failures in a row that begin a pause.
const IN_A_ROW: u32 = 2;
/// The longest pause.
const PAUSE_MOST_NS: u64 = 32_000_000_000;

/// `FIRST_NS`: the first pause.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setbacks<const FIRST_NS: u64> {
    in_a_row: u32,
    pub(crate) until: u64,
    /// How long the last pause was.
    pub(crate) pause_ns: u64,
}

impl<const FIRST_NS: u64> Setbacks<FIRST_NS> {
    pub(crate) fn pauses(&self, now: u64) -> bool {
        now < self.until
    }

    /// What goes well for as long as the last pause was is not held against it any more.
    pub(crate) fn went_well(&mut self, now: u64) {
        self.in_a_row = 0;
        if now.saturating_sub(self.until) > self.pause_ns {
            self.pause_ns = 0;
        }
    }

    /// Whether a pause begins.
    pub(crate) fn went_badly(&mut self, now: u64) -> bool {
        self.in_a_row += 1;
        let begins = self.in_a_row >= IN_A_ROW;
        if begins {
            self.begin(now);
        }
        begins
    }

    /// A pause begins, whatever came before.
    pub(crate) fn begin(&mut self, now: u64) {
        self.in_a_row = 0;
        self.pause_ns = (2 * self.pause_ns).clamp(FIRST_NS, PAUSE_MOST_NS);
        self.until = now + self.pause_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE_NS: u64 = 1_000_000_000;

    #[test]
    fn pauses_double_up_to_the_longest_until_all_went_well_for_as_long() {
        let (mut it, mut now) = (Setbacks::<PAUSE_NS>::default(), 5);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            assert!(!it.went_badly(now));
            it.went_well(now);
            assert!(!it.went_badly(now), "not in a row");
            assert!(it.went_badly(now) && it.pauses(now));
            pauses.push(it.pause_ns / PAUSE_NS);
            now = it.until;
            assert!(!it.pauses(now));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 32]);
        it.went_well(now + PAUSE_MOST_NS);
        assert!(!it.went_badly(now) && it.went_badly(now));
        assert_eq!(it.pause_ns, PAUSE_MOST_NS, "not long enough");
        it.went_well(it.until + PAUSE_MOST_NS + 1);
        assert!(!it.went_badly(now) && it.went_badly(now));
        assert_eq!(it.pause_ns, PAUSE_NS);
    }
}
