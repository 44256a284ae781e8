//! What a kernel can be asked to be. The contract of each stands at its variant: what the four
//! arguments mean, what is returned, what memory is touched, and what one loop counts as.

use crate::stream::LINES_PER_LOOP;

/// One measuring kernel. `rsi` is the number of loops for all of them.
///
/// "Unused" means that the kernel never looks at that argument. A *chain* is a set of 8-byte
/// aligned words, each holding the address of another of them, so that following it never leaves
/// the set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Spec {
    /// Returns 0 at once, whatever `rsi` says: the cost of a call. Everything else unused.
    Nothing,

    /// A busy loop of four independent add chains, 4 × `unroll` (1..=1024) adds a loop, for
    /// measuring what an SMT sibling takes away. Touches no memory; returns 4 × `unroll` × `rsi`.
    Spin { unroll: u32 },

    /// A dependent chain of `unroll` (1..=4096) adds a loop, each of which takes one core cycle on
    /// every core known: the core clock. Touches no memory; returns `unroll` × `rsi`.
    Adds { unroll: u32 },

    /// A dependent chain of `unroll` (1..=4096) multiplications a loop, 3 core cycles each on every
    /// core known: cross-checks [`Spec::Adds`]. Touches no memory; returns 3 to the power `unroll`
    /// × `rsi`, modulo 2^64.
    Muls { unroll: u32 },

    /// `unroll` (1..=4096) dependent steps a loop along the chain that starts at `rdi`; returns the
    /// address it stands at in the end. `rdx`, `rcx` unused. Reads the chain's words, and with
    /// [`Access::ReadModifyWrite`] writes to each the value it holds.
    Chase { unroll: u32, access: Access },

    /// One step a loop along each of `chains` (1..=64) chains. `rdx` is a table of `chains`
    /// addresses: where each chain stands, before and after (it is written while the kernel runs).
    /// Returns the first of them. `rdi`, `rcx` unused.
    ParallelChains { chains: u32 },

    /// `rsi` timed shots of `accesses` (1..=64) independent loads, all but the last of them before
    /// `gap` (0..=4096) fillers. `rdi` is a table of `rsi` rows of `accesses` addresses each, which
    /// are read and whose targets (8 bytes) are read; `rdx` takes `rsi` words: the TSC ticks of
    /// each shot, timing overhead included. One loop is one shot. Returns what the last load read.
    /// `rcx` unused.
    ///
    /// A row is brought into L1 before its shot. The time includes one load from it before each
    /// access, in parallel.
    Burst { accesses: u32, gap: u32, filler: Filler, fence: Fence },

    /// `rsi` timed shots of `accesses` (0..=64) *dependent* loads, along the chain that starts at
    /// `rdi` and goes on from shot to shot; 0 accesses time the empty harness. `rdx` takes `rsi`
    /// words: the TSC ticks of each shot. One loop is one shot. Returns the address it stands at in
    /// the end. `rcx` unused.
    Sequence { accesses: u32, fence: Fence },

    /// Two chains, from `rdi` and from `rcx`, a step along each per loop, with `gap` (0..=4096)
    /// fillers after each of the two steps. As long as the fillers leave space for both steps in
    /// the core, their misses overlap. `rdx` takes two words: where the chains stand in the end.
    /// Returns the first of them. 2 steps a loop.
    Rob { filler: Filler, gap: u32 },

    /// A pass over arrays at `rdi` (a), `rdx` (b), `rcx` (c), each of
    /// [`STREAM_LINES_PER_LOOP`](crate::STREAM_LINES_PER_LOOP) × `rsi` lines of 64 bytes and
    /// aligned to 64 bytes; what the operation does not name is unused. With `delay` (0..=4096)
    /// further core cycles, at least, for each loop. One line counts as one operation, whatever
    /// number of arrays it is in.
    ///
    /// Returns the sum of all 64-bit words for [`StreamOp::Read`], and the last word of `a` for the
    /// others; 0 for 0 loops. Triad computes: what it reads should be ordinary doubles (as
    /// [`StreamOp::Write`] leaves), for others may take long.
    Stream { op: StreamOp, width: Width, delay: u32 },

    /// `rsi` windows of `bytes` (64..=65536, a multiple of 64) in the area at `rdi`, at the byte
    /// offsets (multiples of 64) that the table at `rdx` lists: each double in them is read, its
    /// sign changed, and written back, one at a time or, with `vectorised`, four. Returns the bits
    /// of the last double as written, 0 for 0 loops. `rcx` unused. One loop is one window.
    Windows { bytes: u32, vectorised: bool },

    /// One side of a hand-over between two CPUs. `rdi` is a word, alone on its line, 0 at the
    /// start; each side waits until it is [even](Role::Even) or [odd](Role::Odd), adds one, and
    /// does so `rsi` times. `rdx` is a word that ends the wait when it is not 0. Returns how many
    /// times it handed over: `rsi`, unless stopped. `rcx` unused. One loop is one round trip.
    PingPong { role: Role },

    /// Adds 1 to the word at `rdi`, 16 times a loop, and returns it; atomically if `locked`.
    /// Threads that do this to words of one line show false sharing; to the same word, contention.
    /// `rdx`, `rcx` unused.
    Bump { locked: bool },

    /// User-level switches between the [`SWITCH_CONTEXTS`](crate::SWITCH_CONTEXTS) contexts of a
    /// ring, saving and restoring in each `live` (0..=14) general registers beside the stack
    /// pointer, the flags if asked, and the low 128 bits of `vectors` (0..=16) vector registers.
    /// Each context goes through `sites` (1..=4) switches a loop; with one, its jump has one target
    /// for ever and is the cheapest there is, with more the targets take turns, as in life.
    ///
    /// `rdx` is [`SWITCH_SCRATCH_BYTES`](crate::SWITCH_SCRATCH_BYTES) of memory, aligned to 64
    /// bytes: contexts and their stacks, large enough for a signal to arrive on one. `rdi`, `rcx`
    /// unused. One operation is one switch. Returns the sum of what the first context's registers
    /// hold in the end, which is [`switch_checksum`](crate::switch_checksum) if nothing was lost.
    Switch { live: u32, flags: bool, vectors: u32, sites: u32 },
}

/// What a chase does to each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    /// Writes the pointer back where it was read: lines become dirty, the chain stays whole.
    ReadModifyWrite,
}

/// What stands between two accesses, `gap` instructions of it, independent of the accesses. Each
/// kind fills another part of the core, and the first part to be full makes a cliff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filler {
    /// No-operations of 1..=9 bytes, in the forms the vendors recommend. Several may share an entry
    /// of the re-order buffer.
    Nop { bytes: u32 },
    /// Integer adds: an integer register and flags each.
    IntAdd,
    /// 128-bit integer vector adds (SSE2 `paddd`): a vector register each.
    VectorAdd,
    /// A result in an integer register (a move of a constant, so no flags), one in a vector
    /// register, and so on.
    Alternating,
    /// A mix in which the re-order buffer itself is full before anything else is; `filler.rs` says
    /// why.
    Mixed,
    /// Loads from L1.
    Load,
    /// Stores to L1.
    Store,
    /// Conditional branches that are never taken.
    Branch,
    /// Jumps to the next instruction.
    TakenBranch,
    /// Comparisons: flags only.
    Cmp,
}

/// How a timed shot is kept apart from what is before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `mfence; lfence; rdtsc; lfence` before, `rdtscp; lfence` after. For guests too.
    Lfence,
    /// `cpuid; rdtsc` before, `rdtscp; cpuid` after, as the experiment was first published. A
    /// hypervisor intercepts `cpuid`, which then costs microseconds and disturbs the caches: for
    /// bare metal.
    Cpuid,
}

/// What a pass over memory does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamOp {
    /// Sums `a` as 64-bit words.
    Read,
    /// Sets every double of `a` to 1.
    Write,
    /// Computes `a = b`.
    Copy,
    /// `a = b + 3 × c`, in doubles.
    Triad,
    /// As [`StreamOp::Write`], with stores that go past the caches.
    NtWrite,
    /// As [`StreamOp::Copy`], with stores that go past the caches.
    NtCopy,
    /// Adds 1 to every 64-bit word of `a`.
    Update,
}

/// How many bytes one load or store moves. The wider ones need a processor that has them: see
/// [`Spec::isa`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    Bytes16,
    Bytes32,
    Bytes64,
}

impl Width {
    pub fn bytes(self) -> u32 {
        match self {
            Width::Bytes16 => 16,
            Width::Bytes32 => 32,
            Width::Bytes64 => 64,
        }
    }
}

/// Which values of the shared counter a side of [`Spec::PingPong`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Even,
    Odd,
}

/// What a processor must have to run a kernel, beyond x86-64 with SSE2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    Baseline,
    Avx2,
    Avx512F,
}

impl Spec {
    /// The instruction set extension that the kernel uses.
    pub fn isa(&self) -> Isa {
        match self {
            Spec::Stream { width: Width::Bytes64, .. } => Isa::Avx512F,
            Spec::Stream { width: Width::Bytes32, .. } | Spec::Windows { vectorised: true, .. } => Isa::Avx2,
            _ => Isa::Baseline,
        }
    }

    /// Operations in one loop; results are per operation.
    pub(crate) fn ops_per_loop(&self) -> u64 {
        match *self {
            Spec::Nothing
            | Spec::Burst { .. }
            | Spec::Sequence { .. }
            | Spec::Windows { .. }
            | Spec::PingPong { .. } => 1,
            Spec::Spin { unroll } => 4 * u64::from(unroll),
            Spec::Adds { unroll } | Spec::Muls { unroll } | Spec::Chase { unroll, .. } => unroll.into(),
            Spec::ParallelChains { chains } => chains.into(),
            Spec::Rob { .. } => 2,
            Spec::Stream { .. } => LINES_PER_LOOP,
            Spec::Bump { .. } => crate::sharing::BUMPS_PER_LOOP.into(),
            Spec::Switch { sites, .. } => crate::switch::CONTEXTS * u64::from(sites),
        }
    }
}
