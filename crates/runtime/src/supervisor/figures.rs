//! All numbers that the supervisor goes by, in one place: how often it looks, how long it waits,
//! from where on it takes something for certain. By subject, each with what it is for; who uses one
//! imports it from here, and nowhere else stands another (a test of the house's rules).
//!
//! Few are sharp. What a change of one costs or gains is measured by `bench/ratchet.sh`.

// --- Rounds --------------------------------------------------------------------------------
/// Between two rounds while something moves.
pub(crate) const POLL_ACTIVE_NS: u64 = 50_000;
/// The same where a round takes the primary's time: it is charged, and pays for visits no more. And
/// the longest sleep while a parked context waits to be boarded.
pub(crate) const POLL_SHARED_CPU_NS: u64 = 400_000;
/// The longest sleep between two rounds.
pub(crate) const POLL_IDLE_NS: u64 = 5_000_000;
/// As long as no guest is aboard, rounds may take this part of what the primary may lose.
pub(crate) const ROUNDS_PART: f64 = 0.2;
/// So they are this rare at most.
pub(crate) const POLL_UNPAID_MOST_NS: u64 = 10_000_000;
/// What a round takes is a mean of this many.
pub(crate) const ROUNDS_MEAN: u64 = 8;
/// The sleep doubles each time that nothing has moved for this many rounds, so that nothing waits
/// for the supervisor longer than a small part of the time that it did without.
pub(crate) const ROUNDS_PER_DOUBLING: u32 = 8;
/// The sleep doubles this often at most.
pub(crate) const POLL_DOUBLINGS: u32 = 8;

// --- The clock -----------------------------------------------------------------------------
/// Attempts at one reading, of which the shortest counts.
pub(crate) const CLOCK_TRIES: usize = 4;
/// A reading's uncertainty is at most this part (1/50) of the time that passed.
pub(crate) const CLOCK_UNCERTAINTY_PART: u64 = 50;
/// The first reading after the beginning, and the next one where a reading could not be used.
pub(crate) const CLOCK_FIRST_READING_NS: u64 = 1_000_000;
/// The interval between readings doubles up to this: then the rate is exact enough.
pub(crate) const CLOCK_READINGS_MOST_NS: u64 = 1_000_000_000;

// --- Threads of the primary ----------------------------------------------------------------
/// Between two polls of whether a thread sleeps, and for credit.
pub(crate) const POLL_THREAD_NS: u64 = 1_000_000;
/// Of slices that a thread lends to homes, short ones are lent after this long without one.
pub(crate) const LONG_SLICE_WAIT_NS: u64 = 50_000_000;
/// So long before a slice is over the supervisor wakes, to switch yields off.
pub(crate) const BEFORE_ITS_END_NS: u64 = 20_000;
/// A thread that slept takes no guests for this long.
pub(crate) const AFTER_SLEEP_NS: u64 = 2_000_000;
/// Between two questions about what changes rarely: which system calls a thread may make, and what
/// no descriptor tells of processes.
pub(crate) const POLL_RARELY_NS: u64 = 50_000_000;
/// The share of its time that a thread sleeps is of about this much time.
pub(crate) const SLEEP_SHARE_OF_NS: f64 = 250e6;
/// A thread that sleeps for a larger share takes no guests.
pub(crate) const SLEEPS_FROM_SHARE: f64 = 0.05;
/// One that did not sleep for this long computes, whatever it did before.
pub(crate) const COMPUTES_NS: u64 = 50_000_000;

// --- Scavengers at home --------------------------------------------------------------------
/// A parked context that no primary takes goes home again after this.
pub(crate) const PARKED_WAIT_NS: u64 = 2_000_000;
/// A thread at home starves if it runs for less of the time.
pub(crate) const STARVING_SHARE: f64 = 0.5;
/// Between two looks at whether it starves it was not at home all the while, if they are so far
/// apart.
pub(crate) const AWAY_NS: u64 = 100_000_000;
/// Between two polls of a thread at home: whether it lives, and starves.
pub(crate) const POLL_HOME_NS: u64 = 20_000_000;
/// A CPU without work for this long is idle.
pub(crate) const CPU_IDLE_NS: u64 = 20_000_000;
/// One guest goes home in this time at most: should others have that CPU, it soon comes back.
pub(crate) const NEXT_FOR_CPU_NS: u64 = 1_000_000_000;

// --- Samples of the pace -------------------------------------------------------------------
/// The longest stage of counting.
pub(crate) const STAGE_NS: u64 = 250_000;
/// Solo, until caches are nearly the primary's again.
pub(crate) const CACHES_SETTLE_NS: u64 = 300_000;
/// A sample is given up after this.
pub(crate) const GIVE_UP_NS: u64 = 4_000_000;
/// The first sample with guests, after the solo sample.
pub(crate) const FIRST_GUEST_SAMPLE_NS: u64 = 1_000_000;
/// Between two samples with guests.
pub(crate) const GUEST_SAMPLE_EVERY_NS: u64 = 5_000_000;
/// The longest guest phase.
pub(crate) const GUEST_PHASE_NS: u64 = 64_000_000;
/// Guest phases are longer by this factor where guests may cost what they like.
pub(crate) const UNBOUNDED_PHASES_FACTOR: u64 = 16;
/// Guests that wait for credit longer than this go home.
pub(crate) const WAIT_ABOARD_NS: u64 = 5_000_000;
/// The same of guests that would have no CPU at home.
pub(crate) const WAIT_ABOARD_SHARED_CPU_NS: u64 = 500_000_000;
/// The most doubt about a lost share: where paces differ by much more, the program has turned to
/// other work.
pub(crate) const MOST_DOUBT: f64 = 0.25;
/// Between two polls of a sample under way, where the supervisor has a CPU of its own.
pub(crate) const POLL_SAMPLE_NS: u64 = 100_000;
/// The same where it takes the primary's.
pub(crate) const POLL_SAMPLE_SHARED_CPU_NS: u64 = 300_000;
/// Where the mean of all samples is this many times the mean of the lower three quarters, the tail
/// may be idle time.
pub(crate) const TAIL_MAY_BE_IDLE: f64 = 1.2;
/// From this ratio on the tail is idle time.
pub(crate) const TAIL_IS_IDLE: f64 = 1.5;
/// Samples that differ by a larger share are of other work.
pub(crate) const OTHER_WORK: f64 = 0.3;
/// A sample that takes this many times as long is no chance.
pub(crate) const FAR_SLOWER: f64 = 2.0;
/// The weight of the latest sample in the mean.
pub(crate) const LATEST_WEIGHT: f64 = 0.25;

// --- Cache recovery ------------------------------------------------------------------------
/// How long a recovery is.
pub(crate) const RECOVERY_NS: u64 = 100_000_000;
/// The primary is sampled after each such part of a recovery.
pub(crate) const RECOVERY_STEP_NS: u64 = 4_000_000;
/// The first recovery after guests came aboard for the first time.
pub(crate) const RECOVERY_FIRST_NS: u64 = 250_000_000;
/// The interval between recoveries is four times as long each time, up to this: then they take a
/// fortieth of the time.
pub(crate) const RECOVERY_INTERVAL_MOST_NS: u64 = 4_000_000_000;
/// Recoveries are rarer by this factor where guests may cost what they like, and only the run
/// record has a use for them.
pub(crate) const UNBOUNDED_RECOVERIES_FACTOR: u64 = 32;
/// After guests left, the primary is taken to be short of its caches for this long.
pub(crate) const CACHES_SHORT_NS: u64 = RECOVERY_NS / 2;
/// Samples needed after [`CACHES_SHORT_NS`].
pub(crate) const RECOVERY_SAMPLES_LEAST: u32 = 3;
/// Solo samples needed before the recovery, to compare with.
pub(crate) const RECOVERY_SOLO_SAMPLES_LEAST: u32 = 4;
/// A kept share outside of this range says that the program has turned to other work meanwhile.
pub(crate) const SAME_WORK_LEAST: f64 = 0.05;
pub(crate) const SAME_WORK_MOST: f64 = 1.2;
/// Below this kept share guests displaced what the primary had in its caches.
pub(crate) const CERTAINLY_LOST: f64 = 0.8;
/// The error of a single recovery's share.
pub(crate) const ERROR_OF_ONE_RECOVERY: f64 = 0.1;
/// The mean is of about this many recoveries, the latest.
pub(crate) const RECOVERIES_REMEMBERED: f64 = 8.0;

// --- The contract --------------------------------------------------------------------------
/// Of the slowdown that was asked for, this part is used; the rest is for what is not measured.
pub(crate) const USED_PART: f64 = 0.9;
/// Where a larger share may be lost, nothing follows from samples.
pub(crate) const ALLOWS_ALL: f64 = 0.75;
/// Credit is limited to what this time gives: what was not lost long ago may not be lost now.
pub(crate) const CREDIT_NS: f64 = 1e9;
/// The credit that the first phase needs: half a millisecond, should it cost all of its time.
pub(crate) const FIRST_NEEDS_NS: f64 = 5e5;
/// A later phase has credit for this long: guests and primary cost each other more in the first
/// milliseconds.
pub(crate) const PHASE_LEAST_NS: f64 = 16e6;
/// A cost of which there was no sample for this long is not known any more.
pub(crate) const COST_KNOWN_FOR_NS: u64 = 2_000_000_000;
/// The mean of a cost is of about this many samples.
pub(crate) const COST_SAMPLES: u32 = 8;
/// One phase of this many has a shorter ring, and one a longer one.
pub(crate) const TRIES_EVERY: u32 = 16;
pub(crate) const TRIES_UP: u32 = TRIES_EVERY / 2;
/// The first ban of a guest.
pub(crate) const BAN_NS: u64 = 100_000_000;
/// The longest ban: bans double up to it.
pub(crate) const BAN_MOST_NS: u64 = 5_000_000_000;
/// A guest without an offence for this many times its last ban has one offence less.
pub(crate) const FORGIVEN_AFTER_BANS: u64 = 2;
/// Stays of one guest beyond the limit, of the samples of one stage, that are no accident.
pub(crate) const TOO_LONG: usize = 3;

// --- Threads that come to no yield ---------------------------------------------------------
/// A thread without a yield for this much CPU time is hooked. A hypervisor's steal counts as CPU
/// time, too, and takes some milliseconds at once.
pub(crate) const HOOK_AFTER_CPU_NS: u64 = 4_000_000;
/// Hooked, and without a yield for this much CPU time, it loses its guests.
pub(crate) const TAKE_AFTER_CPU_NS: u64 = 20_000_000;
/// The same of elapsed time, where the kernel does not tell CPU time.
pub(crate) const AFTER_ELAPSED_NS: u64 = 100_000_000;
/// It gets no guests for this long after that.
pub(crate) const NO_GUESTS_NS: u64 = 4_000_000;
/// That time doubles up to this where it happens again and again.
pub(crate) const NO_GUESTS_MOST_NS: u64 = 512_000_000;
/// This many yields between two polls say that it comes to yields for good.
pub(crate) const YIELDS_AGAIN: u64 = 64;

// --- Sites ---------------------------------------------------------------------------------
/// Between two judgements.
pub(crate) const JUDGE_EVERY_NS: u64 = 100_000_000;
/// Sites are switched off only if one outcome in this many is of sites that pay.
pub(crate) const PAYING_PART: u64 = 16;
/// At least this many outcomes must be of sites that pay.
pub(crate) const PAYING_LEAST: u64 = 100;
/// A site is off this long at first.
pub(crate) const SITE_OFF_NS: u64 = 2_000_000_000;
/// The time that a site is off doubles this often.
pub(crate) const SITE_OFF_DOUBLINGS: u32 = 5;
/// Without guests for this long, and for a number of times what switching took, yields are switched
/// off.
pub(crate) const LINGER_NS: u64 = 2_000_000;
/// That number where the supervisor has a CPU of its own; and where a thread was only awaited at a
/// yield, once. Loans come a thousand times a second, and a program that runs ahead of its misses
/// loses by each yield, guest or not: a hash join whose yields were on from loan to loan took twice
/// its time.
pub(crate) const LINGER_TIMES: u64 = 10;
/// The same where switching takes the primary's CPU time: thousands of yields, one by one, take
/// some ten milliseconds, and would cost the primary a fifth of its pace while no guest is there.
pub(crate) const LINGER_SHARED_CPU: u64 = 100;
/// From this many yields of a file on they are written at once.
pub(crate) const AT_ONCE_LEAST: usize = 8;

// --- What ended scavengers leave -----------------------------------------------------------
/// Between two searches for vfork children, of which [`SEARCHES`] must find none.
pub(crate) const SEARCH_EVERY_NS: u64 = 100_000_000;
/// While there are some, the interval doubles up to this.
pub(crate) const SEARCH_EVERY_MOST_NS: u64 = 5_000_000_000;
/// Searches in a row that find none.
pub(crate) const SEARCHES: u32 = 2;
/// Unmapping takes this much of a round at most: meanwhile the supervisor does nothing else.
pub(crate) const UNMAP_ROUND_NS: u64 = 1_000_000;
/// Bytes unmapped by one call at least; it adapts so that a call, in which no thread can map
/// anything, takes about a quarter of that.
pub(crate) const UNMAP_LEAST: usize = 1 << 20;
/// Pieces of memory that are known at a time.
pub(crate) const UNMAP_PIECES: usize = 64;
