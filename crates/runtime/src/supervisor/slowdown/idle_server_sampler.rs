//! The pace of a primary's thread that sleeps often ([`super::idle_server`]): what of it is looked at when, and what guests cost it.

use super::idle_server::Window;
use super::sampler::{MOST_DOUBT, Pace, Phase, Step};
use crate::counting::count::{self, YIELDS};
use crate::supervisor::processes::Processes;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

impl Step {
    /// For how long it ran since this was asked last.
    pub(crate) fn ran(&self, pace: &mut Pace) -> f64 {
        let ran = Processes::ran(self.area).map_or(pace.ran, |ran| ran.ns);
        let gone = ran.saturating_sub(pace.ran);
        pace.ran = ran;
        gone as f64
    }

    /// Looks at it while its yields are counted; whether that was for long enough.
    pub(crate) fn window_is_over(&self, pace: &mut Pace, asleep: bool) -> bool {
        let area = self.area;
        if !self.is_obeyed() || area.stage.load(Relaxed) != YIELDS {
            pace.window = Window::default();
            return false;
        }
        let yields = count::yields(area);
        if pace.phase == Phase::Look && (area.slept.load(Relaxed) != 0 || area.guests.load(Relaxed) == 0) {
            // Its guests are gone as of now: what was seen up to now counts.
            pace.work = pace.window.close(pace.ran, yields);
            return pace.work.is_some();
        }
        if !pace.window.is_open() {
            pace.window = Window::open(self.now);
        }
        let work = pace.window.look(self.now, asleep, pace.ran, yields);
        pace.work = work.or(pace.work);
        work.is_some()
    }

    /// Which share was lost with guests, the doubt about it, and whether that was compared.
    pub(crate) fn lost_by_work(&self, pace: &Pace) -> (f64, f64, bool) {
        let Some(work) = pace.work else {
            // It did not come to a yield: it runs, or one guest does. Or it slept so soon that nothing is known.
            let away = self.area.cur.load(Acquire) != self.area.own().pointer();
            let lost = if self.is_obeyed() { pace.law.last() } else { f64::from(u8::from(away)) };
            return (lost, 0.0, false);
        };
        match (pace.reference.mean(), work.pace()) {
            (Some(own), Some(with)) => {
                let lost = (1.0 - pace.rest.kept() * own.ticks[0] / with).clamp(-0.5, 1.0);
                (lost, (own.error / with).min(MOST_DOUBT), true)
            }
            // Guests that cannot be compared cost at most what they may stay, each time.
            _ => ((work.yields * self.page.max_absence_ns as f64 / work.ran.max(1.0)).min(1.0), 0.0, false),
        }
    }

    /// Other sites than before are switched off: yields are others.
    pub(crate) fn refer_to_other_sites(&self, pace: &mut Pace) {
        pace.refer_anew(self.now);
        let lost = pace.law.last();
        pace.law.charge(pace.uncharged, lost);
        self.note(pace, lost, 0.0, false);
        pace.window = Window::default();
        if matches!(pace.phase, Phase::Look | Phase::Guests) {
            self.leave_alone(pace);
        }
    }
}
