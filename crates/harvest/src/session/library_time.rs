//! How long rewriting may keep everybody waiting: one program, and the libraries of scavengers.
//!
//! A program that would take longer runs as it is; it never gets ready by itself, but by a dry run.
//!
//! A program may be linked to a hundred libraries, and call ten of them. Libraries that are not
//! ready in time are left as they are, and run at home; whatever was made is in the cache, so that
//! each further launch makes more of them, until it has all. That makes one at least, however long
//! it takes.

use records::run::Refused;
use std::time::Duration;

/// What a library is taken to need before any was made: it is counted as one more of these.
const FIRST_GUESS: (u64, Duration) = (1 << 20, Duration::from_secs(1));

#[derive(Debug)]
pub(super) struct LibraryTime {
    /// `None`: as long as they take.
    limit: Option<Duration>,
    /// The same of a program's own file.
    program_limit: Option<Duration>,
    spent: Duration,
    /// A library was made that could have been left.
    made_one: bool,
    /// All code that was rewritten, in bytes, and how long that took.
    rewritten: (u64, Duration),
    /// How many libraries were left.
    pub(super) left: usize,
}

impl LibraryTime {
    pub(super) fn of(limit: Option<Duration>, program_limit: Option<Duration>) -> Self {
        Self { limit, program_limit, spent: Duration::ZERO, made_one: false, rewritten: FIRST_GUESS, left: 0 }
    }

    /// Whether there is time for a library with so much code.
    pub(super) fn is_enough_for(&self, code_bytes: u64) -> bool {
        let needed = self.needed(code_bytes);
        self.limit.is_none_or(|limit| {
            let is_first = !self.made_one && !limit.is_zero();
            is_first || self.spent.as_secs_f64() + needed <= limit.as_secs_f64()
        })
    }

    /// Why a program with so much code runs as it is this time.
    pub(super) fn too_long_for(&self, code_bytes: u64) -> Option<String> {
        let limit = self.program_limit?;
        (self.needed(code_bytes) > limit.as_secs_f64()).then(|| {
            let mib = code_bytes >> 20;
            format!(
                "rewriting it ({mib} MiB of code) would take longer than {limit:?} (--program-time); a dry run does it (--dry-run)"
            )
        })
    }

    fn needed(&self, code_bytes: u64) -> f64 {
        let (bytes, took) = self.rewritten;
        took.as_secs_f64() / bytes as f64 * code_bytes as f64
    }

    /// A file with so much code was rewritten.
    pub(super) fn took(&mut self, code_bytes: u64, took: Duration) {
        self.rewritten.0 += code_bytes;
        self.rewritten.1 += took;
    }

    /// The same, for a library that could have been left; whether it will be there the next time.
    pub(super) fn spend(&mut self, code_bytes: u64, took: Duration, is_made: bool) {
        self.took(code_bytes, took);
        self.spent += took;
        self.made_one |= is_made;
    }

    /// What a user is told of those that were left.
    pub(super) fn refused(&self) -> Option<Refused> {
        let what = match self.left {
            0 => return None,
            1 => "1 library of scavengers".to_owned(),
            many => format!("{many} libraries of scavengers"),
        };
        let limit = self.limit.unwrap_or_default();
        let why = format!("not rewritten yet: all would have taken longer than {limit:?} (--library-time)");
        let help = "each further launch rewrites more of these libraries, and a dry run all (--dry-run)";
        let would_help = Some(help.to_owned());
        Some(Refused { what, why, would_help })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MIB: u64 = 1 << 20;

    #[test]
    fn what_would_take_longer_is_left_and_smaller_ones_are_not() {
        let mut time = LibraryTime::of(Some(4 * SECOND), None);
        time.spend(3 * MIB, 3 * SECOND, true);
        assert!(time.is_enough_for(MIB) && !time.is_enough_for(2 * MIB));
        time.spend(MIB, SECOND, true);
        assert!(time.is_enough_for(0) && !time.is_enough_for(4096));
        time.left = 12;
        let refused = time.refused().expect("some are left");
        assert_eq!(refused.what, "12 libraries of scavengers");
        assert!(refused.why.ends_with("longer than 4s (--library-time)"), "{}", refused.why);
    }

    /// Else a large one would be left for ever.
    #[test]
    fn one_is_always_made() {
        let mut time = LibraryTime::of(Some(4 * SECOND), None);
        time.spend(MIB, SECOND, false);
        assert!(time.is_enough_for(100 * MIB), "what could not be made is no progress");
        time.spend(100 * MIB, 100 * SECOND, true);
        assert!(!time.is_enough_for(4096));
        assert!(!LibraryTime::of(Some(Duration::ZERO), None).is_enough_for(4096), "unless none is wanted");
    }

    #[test]
    fn programs_tell_how_fast_it_goes_and_spend_nothing() {
        let mut time = LibraryTime::of(Some(4 * SECOND), None);
        time.took(99 * MIB, 9 * SECOND);
        time.spend(0, Duration::ZERO, true);
        assert!(time.is_enough_for(39 * MIB) && !time.is_enough_for(41 * MIB));
    }

    #[test]
    fn a_program_is_judged_by_what_was_seen_so_far() {
        let mut time = LibraryTime::of(None, Some(10 * SECOND));
        assert_eq!(time.too_long_for(9 * MIB), None);
        let why = time.too_long_for(11 * MIB).expect("a second for each");
        assert!(why.contains("11 MiB") && why.contains("10s (--program-time)"), "{why}");
        time.took(99 * MIB, 9 * SECOND);
        assert_eq!(time.too_long_for(99 * MIB), None, "it goes faster here");
    }

    #[test]
    fn without_a_limit_there_is_always_time() {
        let mut time = LibraryTime::of(None, None);
        time.spend(MIB, 1000 * SECOND, true);
        assert!(time.is_enough_for(1 << 40));
        assert_eq!(time.refused(), None);
    }
}
