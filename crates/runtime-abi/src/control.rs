//! The control page: one shared mapping (a memfd) through which launcher and runtime speak.
//!
//! The launcher fills it before the primary starts; from then on it writes only the words under
//! *orders*, and reads the rest. It uses `pread` and `pwrite` at `offset_of!`, so that it needs no
//! mapping; the runtime maps it. Strings stand behind the structure, each ended by a zero, and are
//! named by their offset from the page's beginning; 0 is none. Times are nanoseconds of
//! `CLOCK_MONOTONIC`.
//!
//! To add a figure: a field here, the code in the runtime that counts it, a field of the launcher's
//! snapshot.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// First word of the page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"GLNRHARV");
/// Launcher and runtime are built together; this catches a mix of two builds.
pub const VERSION: u32 = 21;
/// Environment variable that names the control page to the runtime's constructor, which takes it
/// away again.
pub const VARIABLE: &str = "GLEANER_HARVEST_CONTROL";
/// Variables whose names begin with this bring the primary entries of its environment that the
/// launcher's means have no place for: what stands behind the sign.
pub const ASIDE: &str = "GLEANER_HARVEST_ASIDE_";
/// The name of the supervisor's process, as `ps` shows it: the kernel keeps 15 characters.
pub const SUPERVISOR_NAME: &core::ffi::CStr = c"gleaner-superv";
/// Most scavengers of one harvest.
pub const SCAVENGERS: usize = 64;
/// Forked children that are known at a time.
pub const FORKED: usize = 64;
/// Areas of primary threads that are shown; there may be more.
pub const AREAS: usize = 64;
/// Most sites that are told apart; a power of two.
pub const SITES: usize = 256;
/// The rows that a place may have, by where the primary goes on behind it: they are looked through
/// in this order, each modulo [`SITES`].
pub fn site_rows(resume: u64) -> core::ops::Range<usize> {
    let first = (resume >> 2 ^ resume >> 10) as usize;
    first..first + 8
}
/// Whether a site does not pay: there are enough `outcomes` to tell, and `soon` of them were hits:
/// at least nine of ten, by the lower end of a 95 % interval (Wilson's).
///
/// This is the same interval as the units room's `share`, once more: the supervisor, a freestanding
/// library without square roots, decides by it while a harvest runs. The launcher's test of what it
/// reports (`crates/harvest/src/report/site_outcomes.rs`) holds the two together.
pub fn loses(outcomes: u64, soon: u64) -> bool {
    const ENOUGH: u64 = 100;
    const HITS: f64 = 0.9;
    const Z: f64 = 1.96;
    if outcomes < ENOUGH {
        return false;
    }
    let (n, p) = (outcomes as f64, soon as f64 / outcomes as f64);
    let above = p + Z * Z / (2.0 * n) - HITS * (1.0 + Z * Z / n);
    above > 0.0 && above * above > Z * Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n))
}
/// Places at which a scavenger leaves its twins that are told apart.
pub const LEAVES: usize = 64;
/// Absences are counted by length, in this many buckets, four for each doubling. See [`bucket`].
pub const BUCKETS: usize = 256;

/// The bucket of an absence of `ticks`.
pub const fn bucket(ticks: u64) -> usize {
    let ticks = if ticks < 4 { 4 } else { ticks };
    let exponent = 63 - ticks.leading_zeros() as usize;
    exponent * 4 + (ticks >> (exponent - 2) & 3) as usize
}

/// What is shorter than this many ticks is in this bucket or one before.
pub const fn bucket_end(bucket: usize) -> u64 {
    let (exponent, quarter) = (bucket / 4, bucket as u64 % 4);
    if exponent < 2 { 4 } else { (5 + quarter) << (exponent - 2) }
}

const _: () =
    assert!(bucket(u64::MAX) < BUCKETS && bucket_end(bucket(99)) > 99 && bucket_end(bucket(99) - 1) <= 99);

/// How far a harvest is.
pub mod stage {
    /// The constructor has not run.
    pub const NONE: u32 = 0;
    /// It refused; `refusal` says why. The primary runs alone.
    pub const REFUSED: u32 = 1;
    /// The supervisor and the scavengers are started.
    pub const RUNNING: u32 = 2;
    /// The primary has ended and every guest is at home or lost.
    pub const ALL_HOME: u32 = 3;
}

/// Why the runtime refused.
pub mod refusal {
    pub const NONE: u32 = 0;
    /// Launcher and runtime are of different builds.
    pub const VERSION: u32 = 1;
    /// No memory for the areas.
    pub const MEMORY: u32 = 2;
    /// The GS base cannot be set, or is in use.
    pub const GS_BASE: u32 = 3;
    /// The supervisor could not be started.
    pub const SUPERVISOR: u32 = 4;
    /// The processor lacks XSAVE, or its state is larger than what is kept for it.
    pub const XSAVE: u32 = 5;
}

/// How far a scavenger is.
pub mod life {
    pub const NONE: u32 = 0;
    /// Its process is there and being set up.
    pub const STARTING: u32 = 1;
    /// Its program runs.
    pub const RUNNING: u32 = 2;
    /// It could not be started; `failure` and `errno` say why.
    pub const FAILED: u32 = 3;
    /// Its process has ended.
    pub const ENDED: u32 = 4;
}

/// Why a scavenger could not be started.
pub mod failure {
    pub const NONE: u32 = 0;
    /// Its process could not be made.
    pub const CLONE: u32 = 1;
    /// One of its files for input or output could not be opened.
    pub const STREAMS: u32 = 2;
    /// Its working directory is not there.
    pub const DIRECTORY: u32 = 3;
    /// Its file could not be opened or read.
    pub const FILE: u32 = 4;
    /// It is not an x86-64 ELF executable that can be loaded here.
    pub const FORMAT: u32 = 5;
    /// Its interpreter (dynamic loader) could not be opened or is not one.
    pub const INTERPRETER: u32 = 6;
    /// Its fixed addresses are occupied.
    pub const OCCUPIED: u32 = 7;
    /// No memory, or too much of it asked for.
    pub const MEMORY: u32 = 8;
    /// System call filters (seccomp) are not to be had.
    pub const SECCOMP: u32 = 9;
    /// Its arguments and environment are too large.
    pub const ARGUMENTS: u32 = 10;
}

/// Why a guest went home, as an index of `trips`.
pub mod trip {
    /// It met a leave: a library, a system call, a return into an original.
    pub const LEAVE: usize = 0;
    /// It faulted; the instruction runs again at home.
    pub const FAULT: usize = 1;
    /// Signals wait for it.
    pub const RECALL: usize = 2;
    /// Its floating-point modes are not the primary's.
    pub const MODES: usize = 3;
    /// The primary's thread slept, ended, forked, or wanted fewer guests.
    pub const ENDED: usize = 4;
    /// With it aboard the primary was so much slower that it is not tried again soon.
    pub const SLOWED: usize = 5;
    /// It stayed aboard for longer than the primary may be away.
    pub const STAYED: usize = 6;
    /// There is a processor for its own thread.
    pub const FREE: usize = 7;
    /// The primary's thread came to no yield for long.
    pub const NO_YIELD: usize = 8;
    pub const COUNT: usize = 9;
}

/// A scavenger, as the launcher asks for it and the runtime reports on it.
#[repr(C)]
pub struct ScavengerRow {
    /// The executable, an absolute path.
    pub file: u32,
    /// The one that it was rewritten from, which the program takes itself for; 0: `file`.
    pub original: u32,
    /// First of `argc` strings, one behind the other.
    pub argv: u32,
    pub argc: u32,
    /// First of `envc` strings.
    pub envp: u32,
    pub envc: u32,
    /// Working directory; 0: the primary's.
    pub directory: u32,
    /// Its environment has more in `LD_LIBRARY_PATH` than it shall find there; and what that is, 0:
    /// it is not set.
    pub libraries: u32,
    pub libraries_before: u32,
    /// Its rewritten files, its own first: offset of the first [`ModuleRow`], and how many.
    pub first_module: u32,
    pub modules: u32,
    /// Its libc is one of them: it runs before the runtime's constructor, and makes threads.
    pub libc_has_twins: u32,
    /// Standard input, output, error: a file to open; 0: the primary's own.
    pub streams: [u32; 3],
    /// One bit for a standard stream that is opened for appending rather than made anew.
    pub append: u32,

    // The runtime's answers.
    pub pid: AtomicI32,
    pub life: AtomicU32,
    pub failure: AtomicU32,
    pub errno: AtomicI32,
    /// Threads it has now, as far as the runtime knows them.
    pub threads: AtomicU32,
    /// How many of them are aboard now.
    pub aboard: AtomicU32,
    pub boardings: AtomicU64,
    pub trips: [AtomicU64; trip::COUNT],
    /// Time its threads were parked or aboard, and the part of it aboard, to the supervisor's
    /// precision.
    pub parked_ns: AtomicU64,
    pub aboard_ns: AtomicU64,
    /// Where it left its twins while it was aboard, by how often.
    pub leave: [LeaveRow; LEAVES],
    /// Visits home while the primary's thread lent it the processor, and their time, which is no
    /// part of that aboard.
    pub visits: AtomicU64,
    pub visited_ns: AtomicU64,
    /// How often its contexts had their turn aboard.
    pub turns: AtomicU64,
    /// Killed by the runtime since one of its threads was lost with a primary that was killed.
    pub lost: AtomicU32,
    /// Why it does not have the lowest priority (`SCHED_IDLE`) at home; 0: it has.
    pub policy_errno: AtomicI32,
    /// It has no dynamic loader and asked for a thread, which it did not get.
    pub refused_threads: AtomicU32,
}

/// The area of a thread of the primary.
#[repr(C)]
pub struct AreaRow {
    /// 0: nobody's.
    pub tid: AtomicI32,
    pub guests: AtomicU32,
    /// Guests it may have for now.
    pub ring: AtomicU32,
    /// Its guests take part; otherwise it is alone for now.
    pub aboard: AtomicU32,
    /// How much slower it was with guests when that was measured last, in millionths; see `known`.
    pub slower: AtomicU32,
    /// Whether that has been measured.
    pub known: AtomicU32,
}

/// A place at which the primary yields.
#[repr(C)]
pub struct SiteRow {
    /// Where it goes on behind the yield; 0: the row is free.
    pub resume: AtomicU64,
    /// Site outcomes: how many of its yields there were timed while it was alone.
    pub outcomes: AtomicU64,
    /// Of them, how many were hits: the next yield came too soon for a miss.
    pub soon: AtomicU64,
    /// How often it was switched off for that, and for how long in all, as far as that is over.
    pub offs: AtomicU64,
    pub off_ns: AtomicU64,
}

/// A place at which a scavenger leaves its twins.
#[repr(C)]
pub struct LeaveRow {
    /// Where it goes on at home; 0: the row is free.
    pub place: AtomicU64,
    /// How often it left there. Where more places share rows than there are, the rarest gives its
    /// row to the next, with its count: then this is an upper end.
    pub leaves: AtomicU64,
}

/// One of the primary's yields that can be switched on and off. Addresses are those of the file
/// that it is in.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SwitchRow {
    /// The byte that is changed: [`ON`], or what the file has there.
    pub place: u64,
    /// Where it goes on behind the yield.
    pub resume: u64,
}

/// A rewritten file in the memory of a primary or scavenger: the program itself, or a library.
#[repr(C)]
pub struct ModuleRow {
    /// What its loader calls it; 0: the program itself.
    pub name: u32,
    /// The library that it was rewritten from, which it is called once it is there; 0: the program
    /// itself.
    pub original: u32,
    /// Of a primary's: its yields that can be switched: offset of the first [`SwitchRow`], and how
    /// many.
    pub first_switch: u32,
    pub switches: u32,
    /// The code, by its file's addresses, that all of them are in and that is loaded as one; none:
    /// there is no such.
    pub code: [u64; 2],
    /// Of the program itself: the address by its file at which it begins.
    pub entry: u64,
    /// Where twins lie that may run aboard, by the file's addresses, and their originals; none: a
    /// primary's, whose twins never do.
    pub twins: [u64; 2],
    pub originals: [u64; 2],
    /// Functions of it whose originals do not begin with a jump to their twins: offset of the first
    /// [`EntryRow`], and how many.
    pub first_entry: u32,
    pub entries: u32,

    // The runtime's answers.
    /// How far from where its file says it is loaded; and whether that is known.
    pub bias: AtomicU64,
    pub found: AtomicU32,
    pub reserved: u32,
}

/// A function and its twin, by their file's addresses.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EntryRow {
    pub original: u64,
    pub twin: u64,
}

/// The byte of a yield that is switched on: that of a jump.
pub const ON: u8 = 0xe9;

/// How much slower the primary was, as the supervisor's samples say. Floating-point numbers, by
/// their bits; time in nanoseconds. Each sample is a time of `t` in which a share `l` was lost to
/// guests.
#[repr(C)]
pub struct Slowdown {
    /// Time for which threads of the primary were watched, with guests and without, but for what
    /// they slept.
    pub watched: AtomicU64,
    /// Of it, with guests.
    pub with_guests: AtomicU64,
    /// The sum of t·l.
    pub lost: AtomicU64,
    /// Nanoseconds that threads of the primary lent to scavengers at home: no part of `lost`.
    pub lent: AtomicU64,
    /// By how much it may be wrong, since the pace without is known only so well.
    pub doubt: AtomicU64,
    /// Sums over guest phases, since samples of one phase are compared with the same solo pace: of
    /// T², T·L, L², where T is a phase's time and L what was lost of it.
    pub squares: [AtomicU64; 3],
    /// How many guest phases, and how many samples.
    pub phases: AtomicU64,
    pub samples: AtomicU64,
    /// Of them, those in which yields were too rare for a comparison: a bound was taken.
    pub bounded: AtomicU64,
}

#[repr(C)]
pub struct Control {
    pub magic: u64,
    pub version: u32,
    /// How many rows of `scavenger` are used.
    pub scavengers: u32,
    /// The launcher, the parent of all these processes.
    pub launcher: u32,
    /// The `LD_PRELOAD` entry of the runtime, without what the user had there.
    pub preload: u32,
    /// What the user had in `LD_PRELOAD`; 0: it was not set.
    pub preload_before: u32,
    /// The loader was told of libraries by `LD_LIBRARY_PATH`; and what the user had there, 0: it
    /// was not set.
    pub libraries: u32,
    pub libraries_before: u32,
    /// The primary's executable, an absolute path, and the one that it was rewritten from, which
    /// the program takes itself for; 0: `file`.
    pub file: u32,
    pub original: u32,
    /// The primary's environment as it was, in its order: first of `envc` strings.
    pub envp: u32,
    pub envc: u32,
    /// CPUs for threads at home and for the supervisor, as a mask of the first 64; 0: as inherited.
    pub home_cpus_known: u32,
    pub home_cpus: u64,
    /// Guests stay aboard even where they would get on faster on an idle CPU.
    pub stay_aboard: u32,
    /// Signals (bit 0: signal 1) that the primary began with ignored, were it alone: the launcher
    /// has handlers for them, and what has a handler is not ignored any more in what is started.
    pub ignored: u64,
    /// Signals that everybody begins with blocked.
    pub blocked: u64,
    /// Standard streams (bit 0: input) that the primary begins without: the launcher has them open.
    pub closed: u32,
    /// Scavengers live on when their launcher dies.
    pub outlive_launcher: u32,
    /// Whether the primary's pace is watched; otherwise guests are aboard whenever there are any.
    pub watched: u32,
    /// By how much it may become slower, in millionths.
    pub max_slowdown: u32,
    /// For how long it may be away at once.
    pub max_absence_ns: u64,
    /// What takes no longer than this between two yields is no miss.
    pub soon_ns: u64,
    /// The primary's rewritten files, its own first: offset of the first [`ModuleRow`], and how
    /// many.
    pub first_module: u32,
    pub modules: u32,

    // Orders, which may change while it runs.
    /// Most guests in one area's ring; 0: no harvest, everybody stays at home.
    pub ring: AtomicU32,
    /// Nanoseconds between two polls of whether signals wait for a guest, so that it goes home for
    /// them; 0: never.
    pub recall_ns: AtomicU64,
    /// The supervisor was killed: nothing sends guests home any more.
    pub supervisor_lost: AtomicU32,

    // The runtime's answers.
    pub stage: AtomicU32,
    pub refusal: AtomicU32,
    pub errno: AtomicI32,
    pub primary: AtomicI32,
    pub supervisor: AtomicI32,
    /// How many children the primary has forked, and their children, and the process ids of the
    /// last of them, in turn.
    pub forks: AtomicU64,
    pub forked: [AtomicI32; FORKED],
    /// Threads of the primary that have areas.
    pub areas: AtomicU32,
    /// Why the primary's yields cannot be switched; 0: they can.
    pub switch_errno: AtomicI32,
    /// Rounds of the supervisor.
    pub rounds: AtomicU64,
    /// Guests taken from a primary's thread that slept, or came to no yield for long.
    pub stolen: AtomicU64,
    pub slowdown: Slowdown,
    /// The time stamp counter's ticks in `clock_ns`, as far as it has been followed.
    pub clock_ticks: AtomicU64,
    pub clock_ns: AtomicU64,
    /// Absences that were timed, by [`bucket`].
    pub absences: [AtomicU64; BUCKETS],
    pub longest_absence: AtomicU64,
    pub site: [SiteRow; SITES],
    pub area: [AreaRow; AREAS],
    pub scavenger: [ScavengerRow; SCAVENGERS],
}
