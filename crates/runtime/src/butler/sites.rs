//! Sites of the primary that do not pay are switched off one by one.
//!
//! What is known of a site is what [`crate::count`] sees of it: how often the next yield came too soon for a miss. Where that is so nearly
//! always, and others pay, its guests lose by it and so does the primary: it is switched off, and tried again later, each time
//! later than before. Where no site pays, all stay: then it is the law ([`super::law`]) that says whether guests are worth it.

use super::Butler;
use super::switches::Switches;
use crate::page;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, SITES, SiteRow, site_rows};

/// How often they are judged.
const EVERY: u64 = 100_000_000;
/// So many visits tell something of a site; and one of so many must be of sites that pay.
const ENOUGH: u64 = 100;
const PAYING: u64 = 16;
/// For how long it is off at first, and how often that may double.
const OFF: u64 = 2_000_000_000;
const DOUBLINGS: u32 = 5;

/// Whether of so many visits so many without a miss are too many: nine of ten, by the lower end of a 95 % interval (Wilson's).
fn loses(visits: u64, soon: u64) -> bool {
    const Z: f64 = 1.96;
    if visits < ENOUGH {
        return false;
    }
    let (n, p) = (visits as f64, soon as f64 / visits as f64);
    // lower end = (p + z²/2n - z √(p(1-p)/n + z²/4n²)) / (1 + z²/n) > 0.9, without the root
    let middle = p + Z * Z / (2.0 * n) - 0.9 * (1.0 + Z * Z / n);
    middle > 0.0 && middle * middle > Z * Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n))
}

/// Where the primary goes on behind a yield.
fn resume_of(switches: &Switches, index: usize) -> u64 {
    switches.bias().wrapping_add(switches.rows[index].resume as usize) as u64
}

fn row_of(page: &'static Control, resume: u64) -> Option<&'static SiteRow> {
    site_rows(resume).map(|at| &page.site[at % SITES]).find(|row| row.resume.load(Relaxed) == resume)
}

impl Butler {
    /// Looks at the sites now and then; at once where the primary does not come to a yield that it is waited for at.
    pub(super) fn judge_sites(&mut self) {
        if !self.switches.are_on() || self.now < self.judge_at && !self.waited_for {
            return;
        }
        if self.waited_for {
            self.try_all_sites();
        }
        self.judge_at = self.now + EVERY;
        judge(&mut self.switches, self.page, self.now);
    }

    /// All that were switched off one by one are on again: the primary may be where there are no others.
    fn try_all_sites(&mut self) {
        for index in 0..self.switches.yields.len() {
            put_on(&mut self.switches, self.page, index);
        }
    }
}

fn judge(switches: &mut Switches, page: &'static Control, now: u64) {
    let counted = |switches: &Switches, index: usize| {
        let row = row_of(page, resume_of(switches, index))?;
        let of = &switches.yields[index];
        let [visits, soon] = [(&row.visits, of.visits), (&row.soon, of.soon)]
            .map(|(count, before)| count.load(Relaxed).saturating_sub(before));
        Some((visits, soon))
    };
    let (mut all, mut losing) = (0, 0);
    for index in 0..switches.yields.len() {
        if switches.yields[index].off_until != 0 {
            let resume = resume_of(switches, index);
            if let Some(row) = row_of(page, resume) {
                page::add(&row.off_ns, now.saturating_sub(switches.yields[index].off_since));
            }
            switches.yields[index].off_since = now;
            if now >= switches.yields[index].off_until {
                put_on(switches, page, index);
            }
            continue;
        }
        if let Some((visits, soon)) = counted(switches, index) {
            all += visits;
            losing += if loses(visits, soon) { visits } else { 0 };
        }
    }
    if losing == 0 || all - losing < (all / PAYING).max(ENOUGH) {
        return;
    }
    for index in 0..switches.yields.len() {
        let of = &switches.yields[index];
        let loses =
            of.off_until == 0 && counted(switches, index).is_some_and(|(visits, soon)| loses(visits, soon));
        if loses {
            switches.set(index, false);
            let of = &mut switches.yields[index];
            of.off_since = now;
            of.off_until = now + (OFF << of.times.min(DOUBLINGS));
            of.times += 1;
            if let Some(row) = row_of(page, resume_of(switches, index)) {
                page::add(&row.offs, 1);
            }
        }
    }
}

/// A site is on again, and what was counted of it does not count any more.
fn put_on(switches: &mut Switches, page: &'static Control, index: usize) {
    if switches.yields[index].off_until == 0 {
        return;
    }
    let resume = resume_of(switches, index);
    let of = &mut switches.yields[index];
    of.off_until = 0;
    if let Some(row) = row_of(page, resume) {
        (of.visits, of.soon) = (row.visits.load(Relaxed), row.soon.load(Relaxed));
    }
    if switches.are_on() {
        switches.set(index, true);
    }
}
