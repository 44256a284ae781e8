//! Single sites of the primary that do not pay are switched off.
//!
//! [`crate::counting::count`] counts how often the yield after a site's came too soon for a miss.
//! Where that is so nearly always, and other sites pay, primary and guests lose by the site: it is
//! switched off, and tried again later, after a time that doubles. Where no site pays, all stay on,
//! and the slowdown controller decides whether guests are worth it.

pub(crate) mod switches;

use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::figures::{
    JUDGE_EVERY_NS, PAYING_LEAST, PAYING_PART, SITE_OFF_DOUBLINGS, SITE_OFF_NS,
};
use crate::supervisor::sites::switches::{SwitchedYield, YieldSwitches};
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, SITES, SiteRow, loses, site_rows};

/// The outcomes counted at a yield; its row is found by the address behind the yield.
fn row_of(page: &'static Control, of: &SwitchedYield) -> Option<&'static SiteRow> {
    site_rows(of.resume).map(|at| &page.site[at % SITES]).find(|row| row.resume.load(Relaxed) == of.resume)
}

/// The outcomes counted at a yield, and whether they say that it does not pay. `None`: none were
/// counted.
fn judged(page: &'static Control, of: &SwitchedYield) -> Option<(u64, bool)> {
    let row = row_of(page, of)?;
    let [outcomes, soon] = [(&row.outcomes, of.outcomes), (&row.soon, of.soon)]
        .map(|(count, before)| count.load(Relaxed).saturating_sub(before));
    Some((outcomes, loses(outcomes, soon)))
}

impl Supervisor {
    /// Judges the sites now and then. At once where the primary is awaited at a yield and does not
    /// come: then all single sites are switched on again, since it may run where there are no
    /// others.
    pub(crate) fn judge_sites(&mut self) {
        if !self.switches.are_on() || self.now < self.judge_at && !self.waited_for {
            return;
        }
        self.judge_at = self.now + JUDGE_EVERY_NS;
        judge(&mut self.switches, self.page, self.now, self.waited_for);
    }
}

fn judge(switches: &mut YieldSwitches, page: &'static Control, now: u64, all_on: bool) {
    let (mut all, mut losing) = (0, 0);
    for index in 0..switches.yields.len() {
        let of = &mut switches.yields[index];
        if of.off_until == 0 {
            let (outcomes, loses) = judged(page, of).unwrap_or_default();
            all += outcomes;
            losing += if loses { outcomes } else { 0 };
            continue;
        }
        let row = row_of(page, of);
        if let Some(row) = row {
            page::add(&row.off_ns, now.saturating_sub(of.off_since));
        }
        of.off_since = now;
        if all_on || now >= of.off_until {
            // Earlier outcomes do not count any more.
            of.off_until = 0;
            (of.outcomes, of.soon) =
                row.map_or((0, 0), |row| (row.outcomes.load(Relaxed), row.soon.load(Relaxed)));
            switches.set(index, true);
            switches.changes += 1;
        }
    }
    if losing == 0 || all - losing < (all / PAYING_PART).max(PAYING_LEAST) {
        return;
    }
    for index in 0..switches.yields.len() {
        let of = &mut switches.yields[index];
        if of.off_until == 0 && judged(page, of).is_some_and(|(_, loses)| loses) {
            of.off_since = now;
            of.off_until = now + (SITE_OFF_NS << of.times.min(SITE_OFF_DOUBLINGS));
            of.times += 1;
            if let Some(row) = row_of(page, of) {
                page::add(&row.offs, 1);
            }
            switches.set(index, false);
            switches.changes += 1;
        }
    }
}
