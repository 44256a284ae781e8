//! Samples of a primary's thread that sleeps often ([`super::idle_server`]): when it is polled, and
//! what guests cost it.

use super::idle_server::SampleWindow;
use super::sampler::{MOST_DOUBT, Phase, SampleStep, ThreadPace};
use crate::counting::count::{self, YIELDS};
use crate::supervisor::processes::Processes;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

impl SampleStep {
    /// Its CPU time since the last call, in nanoseconds.
    pub(crate) fn ran(&self, pace: &mut ThreadPace) -> f64 {
        let ran = Processes::cpu_time(self.area).map_or(pace.ran, |ran| ran.ns);
        let gone = ran.saturating_sub(pace.ran);
        pace.ran = ran;
        gone as f64
    }

    /// Polls it while its yields are counted; returns whether the sample is over.
    pub(crate) fn window_is_over(&self, pace: &mut ThreadPace, asleep: bool) -> bool {
        let area = self.area;
        if !self.is_obeyed() || area.counting.stage() != YIELDS {
            pace.window = SampleWindow::default();
            return false;
        }
        let yields = count::yields(area);
        if pace.phase == Phase::GuestSample
            && (area.supervisor.slept.load(Relaxed) != 0 || area.supervisor.guests.load(Relaxed) == 0)
        {
            // Its guests left just now: what was seen up to now counts.
            pace.work = pace.window.close(pace.ran, yields);
            return pace.work.is_some();
        }
        if !pace.window.is_open() {
            pace.window = SampleWindow::open(self.now);
        }
        let work = pace.window.poll(self.now, asleep, pace.ran, yields);
        pace.work = work.or(pace.work);
        work.is_some()
    }

    /// The share lost with guests, the doubt about it, and whether it was compared with a solo
    /// pace.
    pub(crate) fn lost_by_work(&self, pace: &ThreadPace) -> (f64, f64, bool) {
        let Some(work) = pace.work else {
            // It did not come to a yield: it runs, or one guest does. Or it slept too soon to tell.
            let away = self.area.twin.cur.load(Acquire) != self.area.own().pointer();
            let lost = if self.is_obeyed() { pace.controller.last() } else { f64::from(u8::from(away)) };
            return (lost, 0.0, false);
        };
        match (pace.solo.mean(), work.pace()) {
            (Some(own), Some(with)) => {
                let lost = (1.0 - pace.recovery.kept() * own.ticks[0] / with).clamp(-0.5, 1.0);
                (lost, (own.error / with).min(MOST_DOUBT), true)
            }
            // Guests that cannot be compared cost at most what they may stay, each time.
            _ => ((work.yields * self.page.max_absence_ns as f64 / work.ran.max(1.0)).min(1.0), 0.0, false),
        }
    }

    /// Other sites than before are switched off, so yields are not comparable.
    pub(crate) fn refer_to_other_sites(&self, pace: &mut ThreadPace) {
        pace.refer_anew(self.now);
        let lost = pace.controller.last();
        pace.controller.charge(pace.uncharged, lost);
        self.note(pace, lost, 0.0, false);
        pace.window = SampleWindow::default();
        if matches!(pace.phase, Phase::GuestSample | Phase::Guests) {
            self.leave_alone(pace);
        }
    }
}
