//! What a sample with guests says about their cost, and what follows: charge, ring length, bans,
//! and the sums of the run record.

use super::{Phase, SampleStep, ThreadPace};
use crate::counting::count::{self, row};
use crate::layout::page;
use crate::supervisor::figures::{FIRST_GUEST_SAMPLE_NS, GUEST_SAMPLE_EVERY_NS, MOST_DOUBT};
use core::sync::atomic::Ordering::{Acquire, Relaxed};

impl SampleStep {
    /// The sample with guests is done, or was given up.
    pub(super) fn looked(&self, pace: &mut ThreadPace, region: &'static crate::layout::region::Region) {
        let area = self.area;
        pace.phase = Phase::Guests;
        pace.until = self.now + GUEST_SAMPLE_EVERY_NS;
        if area.supervisor.slept.load(Relaxed) != 0 || area.supervisor.guests.load(Relaxed) == 0 {
            return; // then no guest cost anything
        }
        let waited = self.now.saturating_sub(pace.ordered_at).max(1) as f64;
        // Guests that cannot be compared cost at most what they may stay, each time.
        let bound = |yields: f64| (yields * self.page.max_absence_ns as f64 / waited).min(1.0);
        let alone = area.twin.cur.load(Acquire) == area.own().pointer();
        let few = f64::from(2 * count::FEW);
        let with = self.mean(row::ABOARD, self.area.counting.lap(true)).filter(|_| self.is_obeyed());
        let (lost, doubt, compared) = match (pace.solo.mean(), with) {
            (Some(own), Some(with)) => {
                let kept = pace.recovery.kept();
                let lost = [0, 1].map(|i| (1.0 - kept * own.ticks[i] / with.ticks[i]).clamp(-0.5, 1.0));
                (
                    lost[0] + own.idles() * (lost[1] - lost[0]).max(0.0),
                    (own.error / with.ticks[0]).min(MOST_DOUBT),
                    true,
                )
            }
            // It did not come to a yield: it runs, or one guest does.
            (_, None) if !self.is_obeyed() => (f64::from(u8::from(!alone)), 0.0, false),
            // Yields are suddenly frequent: a solo sample first.
            (None, Some(_)) => {
                pace.contract.charge(pace.uncharged, 1.0);
                self.note(pace, 1.0, 0.0, false);
                return self.leave_alone(pace);
            }
            (Some(own), None) => {
                ((1.0 - own.ticks[0] * few / (waited * self.rate)).clamp(0.0, 1.0), 0.0, false)
            }
            (None, None) => (bound(few), 0.0, false),
        };
        self.conclude(pace, region, lost, doubt, compared);
    }

    /// With guests the share `lost` was lost: what follows.
    fn conclude(
        &self,
        pace: &mut ThreadPace,
        region: &'static crate::layout::region::Region,
        lost: f64,
        doubt: f64,
        compared: bool,
    ) {
        pace.contract.charge(pace.uncharged, lost);
        self.note(pace, lost, doubt, compared);
        self.judge(region);
        if pace.contract.sample(self.now, self.area.supervisor.guests.load(Relaxed), lost) {
            let soon = self.now.saturating_sub(pace.phase_began) < GUEST_SAMPLE_EVERY_NS;
            pace.until = self.now + if soon { FIRST_GUEST_SAMPLE_NS } else { GUEST_SAMPLE_EVERY_NS };
        } else {
            self.leave_alone(pace);
        }
    }

    /// Adds to the record: of the uncharged time the share `lost` was lost.
    pub(crate) fn note(&self, pace: &mut ThreadPace, lost: f64, doubt: f64, compared: bool) {
        let sums = &self.page.slowdown;
        let time = core::mem::take(&mut pace.uncharged);
        page::add_number(&sums.lost, time * lost);
        page::add_number(&sums.doubt, time * doubt);
        page::add(&sums.phases, u64::from(pace.phase_ns <= 0.0 && time > 0.0));
        let squares = |pace: &ThreadPace| {
            let (time, lost) = (pace.phase_ns, pace.phase_lost_ns);
            [time * time, time * lost, lost * lost]
        };
        let before = squares(pace);
        pace.phase_ns += time;
        pace.phase_lost_ns += time * lost;
        for (sum, (after, before)) in sums.squares.iter().zip(squares(pace).into_iter().zip(before)) {
            page::add_number(sum, after - before);
        }
        page::add(&sums.samples, 1);
        page::add(&sums.bounded, u64::from(!compared));
        let tid = self.area.tid.load(Relaxed);
        if let Some(row) = self.page.area.iter().find(|row| row.tid.load(Relaxed) == tid) {
            let slower = (lost / (1.0 - lost).max(1e-3)).clamp(0.0, 1000.0);
            row.slower.store((slower * 1e6) as u32, Relaxed);
            row.known.store(1, Relaxed);
        }
    }
}
