//! Sites of the primary that do not pay are switched off one by one.
//!
//! What is known of a site is what [`crate::counting::count`] sees of it: how often the next yield came too soon for a miss. Where that is so nearly
//! always, and others pay, its guests lose by it and so does the primary: it is switched off, and tried again later, each time
//! later than before. Where no site pays, all stay: then it is the law ([`super::slowdown::controller`]) that says whether guests are worth it.

pub(crate) mod switches;

use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::sites::switches::{Switches, Yield};
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, SITES, SiteRow, loses, site_rows};

/// How often they are judged.
const EVERY: u64 = 100_000_000;
/// Visits of sites that pay: one of so many, and so many at least.
const PAYING: (u64, u64) = (16, 100);
/// For how long it is off at first, and how often that may double.
const OFF: u64 = 2_000_000_000;
const DOUBLINGS: u32 = 5;

/// What was seen at a yield, by where the primary goes on behind it.
fn row_of(page: &'static Control, of: &Yield) -> Option<&'static SiteRow> {
    site_rows(of.resume).map(|at| &page.site[at % SITES]).find(|row| row.resume.load(Relaxed) == of.resume)
}

/// Whether it does not pay, and of how many visits that is known; none if nobody saw it.
fn judged(page: &'static Control, of: &Yield) -> Option<(u64, bool)> {
    let row = row_of(page, of)?;
    let [visits, soon] = [(&row.visits, of.visits), (&row.soon, of.soon)]
        .map(|(count, before)| count.load(Relaxed).saturating_sub(before));
    Some((visits, loses(visits, soon)))
}

impl Supervisor {
    /// Looks at the sites now and then; at once where the primary does not come to a yield that it is waited for at: then all
    /// that were switched off one by one are on again, since it may be where there are no others.
    pub(crate) fn judge_sites(&mut self) {
        if !self.switches.are_on() || self.now < self.judge_at && !self.waited_for {
            return;
        }
        self.judge_at = self.now + EVERY;
        judge(&mut self.switches, self.page, self.now, self.waited_for);
    }
}

fn judge(switches: &mut Switches, page: &'static Control, now: u64, all_on: bool) {
    let (mut all, mut losing) = (0, 0);
    for index in 0..switches.yields.len() {
        let of = &mut switches.yields[index];
        if of.off_until == 0 {
            let (visits, loses) = judged(page, of).unwrap_or_default();
            all += visits;
            losing += if loses { visits } else { 0 };
            continue;
        }
        let row = row_of(page, of);
        if let Some(row) = row {
            page::add(&row.off_ns, now.saturating_sub(of.off_since));
        }
        of.off_since = now;
        if all_on || now >= of.off_until {
            // What was counted of it does not count any more.
            of.off_until = 0;
            (of.visits, of.soon) =
                row.map_or((0, 0), |row| (row.visits.load(Relaxed), row.soon.load(Relaxed)));
            switches.set(index, true);
            switches.changes += 1;
        }
    }
    if losing == 0 || all - losing < (all / PAYING.0).max(PAYING.1) {
        return;
    }
    for index in 0..switches.yields.len() {
        let of = &mut switches.yields[index];
        if of.off_until == 0 && judged(page, of).is_some_and(|(_, loses)| loses) {
            of.off_since = now;
            of.off_until = now + (OFF << of.times.min(DOUBLINGS));
            of.times += 1;
            if let Some(row) = row_of(page, of) {
                page::add(&row.offs, 1);
            }
            switches.set(index, false);
            switches.changes += 1;
        }
    }
}
