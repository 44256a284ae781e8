//! The independent checker of rewritten ELF files.
//!
//! [`check`] gets an original and a rewritten file and decides whether the second is the first with
//! twins and nothing else. It does not know how the second was made; it goes by
//! `docs/twin-format.md` and `docs/harvest-abi.md` alone. `docs/proof-rules.md` states the rules in
//! full; here is what they are for.
//!
//! # The picture
//!
//! ```text
//!  ORIGINAL ──► container/ ──┐ R1 R3 R10 R11 R12: what is in the file, and what changed
//!  REWRITTEN ─► container/ ──┤
//!                            ├─► code/      R2 R4-R8: entries, each instruction and its copy
//!               unwind/ ─────┤   unwind/    R9: frames and exception tables, byte by byte
//!               decode/ ─────┤   yields/    R13-R18 R21: what is inserted into harvest twins
//!               liveness/ ───┘
//!                                    │
//!                                    └─► violations: rule, place, what is wrong
//! ```
//!
//! # Examples
//!
//! ## A twin of a function of three instructions (R1, R2, R4, R5)
//!
//! ```text
//!   original                              twin
//!   1000: e9 fb 7f 00 00  jmp 9000        9000: 48 8b 07  mov rax, [rdi]
//!         (was: 48 8b 07  mov rax, [rdi]  9003: 48 ff c0  inc rax
//!               48 ff c0  inc rax)        9006: c3        ret
//!   1005: c0
//!   1006: c3              ret
//! ```
//!
//! - R1: all bytes of the original are there, except the five of the *patch* at 1000.
//! - R2: the patch is a jump to the place in the twin of the instruction that it replaces; whole
//!   instructions with copies cover it; and nothing known refers to 1001 to 1004, where the middle
//!   of a jump now stands. A branch to 1003 anywhere in the module would break this rule.
//! - R4: each copy has the bytes of its instruction. Were the load `mov rax, [rip + 0x100]`, its
//!   displacement would have to change by exactly 1000 − 9000.
//! - R5: what follows an instruction in the original follows its copy in the twin. Without the last
//!   byte of the twin, control would run out of it.
//!
//! ## A yield (R13, R14)
//!
//! In a primary, before `mov rax, [rdi]` with rdi and rbx live behind it, and rcx, rdx and the
//! flags dead (`docs/harvest-abi.md` has all forms; this one leaves out a counter):
//!
//! ```text
//!         mov   rcx, gs:[CUR]        the running context
//!         cmp   rcx, [rcx + NEXT]    is there another one?
//!         jne   cold
//!   back: mov   rax, [rdi]           the copy
//!         …
//!   cold: prefetcht0 [rdi]           R14: the operand of an instruction behind it, rdi unchanged
//!         mov   [rcx + RDI], rdi     R13: each live register is saved to its own slot
//!         mov   [rcx + RBX], rbx
//!         mov   [rcx + RSP], rsp
//!         lea   rdx, [rip + resume]
//!         mov   [rcx + RIP], rdx
//!         mov   rax, [rcx + NEXT]    R13: the next context becomes current …
//!         mov   gs:[CUR], rax
//!         jmp   [rax + RIP]          … and another program runs: nothing is known of any register
//! resume: mov   rsp, [rax + RSP]     rax is this context again
//!         mov   rbx, [rax + RBX]
//!         mov   rdi, [rax + RDI]
//!         jmp   back
//! ```
//!
//! `yields/run.rs` executes such a piece symbolically on all paths: each register holds *its own
//! value*, *the context*, *anything* … At `back` every register that is live there must hold its
//! own value, on the path that switched as on the path that did not. Leave out `mov rbx, [rax +
//! RBX]`, and rbx holds *anything* where it is live: R13 refuses the file. That rcx, rdx and the
//! flags are dead is not the rewriter's word but comes from `yields/interprocedural/`, the
//! checker's own liveness.
//!
//! ## A return check (R16)
//!
//! A guest may return into code that has no twin; that code must run at home. Before `ret` in a
//! scavenger:
//!
//! ```text
//!         cmp   byte gs:[GUEST], 0   no guest is aboard: any return is fine
//!         je    stay
//!         mov   rcx, [rsp]           the return address
//!         lea   rdx, [rip + TWINS]
//!         sub   rcx, rdx
//!         cmp   rcx, SIZE
//!         jb    stay                 it lies in the twins
//!         …                          a leave: the guest goes home and continues at `stay`
//!   stay: ret
//! ```
//!
//! R16 holds if every path to `ret` passed one of the three: not a guest, an address in the twins,
//! or a leave.
//!
//! ## Calling it
//!
//! ```
//! use gleaner_proof::{Refusal, check};
//!
//! let original = std::fs::read("/proc/self/exe")?;
//! let mut rewritten = twin::rewrite(&original, None, twin::Mode::Identity)?.bytes;
//! let counts = check(&original, &rewritten)?;
//! println!("{} units with twins, {} instructions", counts.units, counts.instructions);
//!
//! rewritten[original.len() / 2] ^= 1; // one bit of the program, anywhere
//! assert!(matches!(check(&original, &rewritten), Err(Refusal::Wrong { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo run -p gleaner-proof --example proof ORIGINAL REWRITTEN` does it for two files.
//!
//! # The rules
//!
//! | rule | says |
//! |---|---|
//! | R1 unchanged | the original is there, except for patches and a few header fields |
//! | R2 entry | a patch jumps to its twin, and nothing refers to its last four bytes |
//! | R3 headers | headers are the original's, with two segments and a note added |
//! | R4 copy | a copy has the bytes of its instruction, except for what depends on its address |
//! | R5 flow | control goes in a twin where it goes in the original |
//! | R6 calls | so do calls, and return addresses are followed by code |
//! | R7 inserted | inserted code is of a closed list and writes only what is dead |
//! | R8 tables | a jump table's twin leads where the original leads |
//! | R9 unwind | frames and exceptions are found in a twin as in its original |
//! | R10 relocations | no relocation writes where twins or patches are |
//! | R11 symbols | symbols are the original's, and name the twins |
//! | R12 mapping | the mapping is consistent, and both decoders agree on each instruction |
//! | R13 yields | a yield preserves all that is live, whichever context runs meanwhile |
//! | R14 prefetches | a yield prefetches what a following instruction reads |
//! | R15 early | no primary yields before the runtime is set up |
//! | R16 aboard | no guest leaves the twins, or acts on its thread, unless it went home first |
//! | R17 thread-local | a guest's thread-local variables are its own |
//! | R18 bounds | a guest meets a yield after a bounded number of instructions |
//! | R21 sunk restores | registers that a loop's yields leave in their slots are found there |
//!
//! `docs/proof-rules.md` also says what is *not* proven.
//!
//! # Independence
//!
//! The checker uses no code of the rooms `twin` and `image`; the tidy test enforces that. It has
//! its own reader of the container (over the crate `object`), of unwind and exception tables, its
//! own liveness, and its own judgement of inserted code. With the rewriter it shares:
//!
//! - *`iced-x86`*, which decodes instructions and lists what each reads and writes. The rules need
//!   these lists, and no other crate has them as complete. What it says is compared (next section).
//! - *`runtime-abi`*: offsets of the area and of contexts. They are a definition, which generated
//!   code, runtime and checker must have in common.
//! - *`twin-format`*: the layout of note and mapping. Everything that they claim is checked.
//! - *`units`*: types of addresses, without logic.
//!
//! ## Two decoders
//!
//! `yaxpeax-x86`, of another author and with other tables, reads the same bytes (`decode/`): every
//! mapped instruction, every copy that differs from its original, every inserted instruction, and
//! the code without twins that liveness follows. It must find the same length, operation, `lock`
//! prefix, branch target, registers, memory operand (base, index, scale, displacement, RIP-relative
//! target, FS or GS) and constants. Where liveness counts, it must confirm each register, and the
//! flags as a whole, that `iced-x86` says is surely overwritten, and name nothing as read or
//! written that `iced-x86` leaves out. A contradiction refuses the file (R12, R4).
//! Bytes that the two agree about are not compared again, unless they tell an address
//! (`decode/agreed.rs`).
//!
//! Only `iced-x86` answers for the following, since the second decoder (2.2) cannot:
//!
//! - instructions that it does not know, which are accepted: moves and tests of mask registers
//!   (`kmov`, `kortest` …), FMA4, XOP, EVEX shifts by a constant, VIA's `xcrypt` and kin;
//! - the number of EVEX destinations from 16 on, vectors of indices, x87 registers, and the width
//!   of some general registers (`decode/operands.rs` lists them);
//! - which of the status flags, which bytes of a register, and how many bytes of memory are meant;
//!   and all accesses of the operations that it calls complex (`bt` with memory, `xsave` and the
//!   like);
//! - for a few operations it names more accesses than the manuals do (`decode/accesses.rs` lists
//!   them);
//! - sweeps over bytes that may be no code (R2), which look for branches.
//!
//! In 245 million instructions of 1438 files of a Debian system the two differ about nothing but
//! double REX prefixes, in data among code. `decode/mod.rs` has the survey as an ignored test.
//!
//! # To add a rule
//!
//! A variant of [`Rule`], a line above, a section in `docs/proof-rules.md`, a file, a call in
//! [`check`], and wrong twins in `tests/`. A file's head names its rules.
#![forbid(unsafe_code)]

mod code;
mod container;
mod decode;
mod earlier;
mod liveness;
mod rule;
mod unwind;
mod yields;

use code::patches::Patched;
use code::unit::{Scratch, View};
use container::elf::Elf;
pub use container::elf::ElfError;
use container::mapping::{Mapping, Note};
use container::relocations::Relocations;
use rayon::prelude::*;
use rule::Findings;
pub use rule::{Rule, Violation, ViolationPlace};

/// What a proof is by, and the version of this checker: one more wherever it may find otherwise
/// than before.
pub const RULES: &str = "R1 to R18 and R21";
pub const VERSION: u32 = 37;

/// What was looked at, when nothing was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    pub units: usize,
    pub patches: usize,
    pub instructions: usize,
    pub escapes: usize,
    pub tables: usize,
    pub call_sites: usize,
}

impl Counts {
    fn and(self, other: Self) -> Self {
        Self {
            units: self.units + other.units,
            patches: self.patches + other.patches,
            instructions: self.instructions + other.instructions,
            escapes: self.escapes + other.escapes,
            tables: self.tables + other.tables,
            call_sites: self.call_sites + other.call_sites,
        }
    }
}

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the original cannot be read: {0}")]
    Original(ElfError),
    #[error("the rewritten file cannot be read: {0}")]
    Rewritten(ElfError),
    #[error("the second file is not a rewritten file: it has no rewriter's note")]
    NotRewritten,
    #[error("rewritten in mode {0}, which this checker does not know")]
    UnknownMode(u32),
    #[error("{}", told(violations, *total))]
    Wrong {
        /// Those with the lowest addresses, by address.
        violations: Vec<Violation>,
        total: usize,
    },
}

fn told(violations: &[Violation], total: usize) -> String {
    let first = violations.first().map_or(String::new(), ToString::to_string);
    match total {
        0 | 1 => first,
        _ => format!("{first} (and {} more)", total - 1),
    }
}

/// What all units are looked at with.
pub(crate) struct Context<'d> {
    pub(crate) original: Elf<'d>,
    pub(crate) rewritten: Elf<'d>,
    pub(crate) position_independent: bool,
    pub(crate) note: Note,
    pub(crate) mapping: Mapping<'d>,
    pub(crate) patched: Patched,
    pub(crate) relocations: Relocations,
    pub(crate) unwind: unwind::Tables<'d>,
    /// The part of the new data where tables of twins may lie.
    pub(crate) table_range: (u64, u64),
    /// What sections say is data, though executable.
    pub(crate) data: Vec<(u64, u64)>,
    pub(crate) findings: Findings,
}

/// Checks that `rewritten` is `original` with twins, by the rules above.
pub fn check(original: &[u8], rewritten: &[u8]) -> Result<Counts, Refusal> {
    concluded(look(original, rewritten, Findings::default(), None)?)
}

/// Checks several rewritten files of one original. Each is checked by all rules, as [`check`] does;
/// but what follows from the original and from the choice of units, instructions and tables alone
/// is found once for files that agree in these ([`earlier`]).
pub struct Checker<'o> {
    original: &'o [u8],
    earlier: earlier::Earlier,
}

impl<'o> Checker<'o> {
    pub fn of(original: &'o [u8]) -> Self {
        Self { original, earlier: earlier::Earlier::default() }
    }

    pub fn check(&mut self, rewritten: &[u8]) -> Result<Counts, Refusal> {
        concluded(look(self.original, rewritten, Findings::default(), Some(&mut self.earlier))?)
    }
}

fn concluded((counts, findings): (Counts, Findings)) -> Result<Counts, Refusal> {
    if findings.none() {
        return Ok(counts);
    }
    let (violations, total) = findings.finish();
    Err(Refusal::Wrong { violations, total })
}

fn look(
    old: &[u8],
    new: &[u8],
    findings: Findings,
    mut earlier: Option<&mut earlier::Earlier>,
) -> Result<(Counts, Findings), Refusal> {
    let nothing = Counts::default();
    let original = Elf::parse(old).map_err(Refusal::Original)?;
    let rewritten = Elf::parse(new).map_err(Refusal::Rewritten)?;
    let Some(note) = container::mapping::note(&rewritten, &findings)? else {
        return Ok((nothing, findings));
    };
    let Some(mut mapping) = Mapping::read(&original, &rewritten, &note, &findings) else {
        return Ok((nothing, findings));
    };
    container::header(&original, &rewritten, &findings);
    let Some(added) = container::segments(&original, &rewritten, &findings) else {
        return Ok((nothing, findings));
    };
    container::sections(&original, &rewritten, &added, &findings);
    mapping.relays = code::relays::read(&rewritten, &added, &mapping, &findings);
    container::rest::check(&original, &rewritten, &added, &note, &findings);
    container::padding(&original, &rewritten, &added, &mapping, &findings);
    let relocations = Relocations::of(&original);
    let places = code::patches::places(&original, &mapping, note.mode, &findings);
    container::unchanged(old, new, &note, &places, &findings);
    let span = (added.data.address, added.text.address.saturating_add(added.text.memory_size));
    let table_range = code::tables::range(&rewritten, &added.data);
    if !code::tables::apart(&mapping, table_range, &findings) {
        return Ok((nothing, findings));
    }
    let Some(unwind) = unwind::Tables::read(&original, &rewritten, &mapping, &findings) else {
        return Ok((nothing, findings));
    };
    relocations.check(&mapping, span, &findings);
    code::restartable::check(&original, &mapping, &relocations, &findings);
    container::names::check(&original, &rewritten, &mapping, &findings);
    let patched = Patched::of(&original, &mapping);
    let functions = unwind.functions();
    let named = container::names::functions(&original, &relocations);
    code::references::look(&original, &mapping, &functions, &named, &relocations, &patched, &findings);
    let context = Context {
        position_independent: original.is_position_independent(),
        data: original.data_among_code(),
        table_range,
        original,
        rewritten,
        note,
        mapping,
        patched,
        relocations,
        unwind,
        findings,
    };
    context.landing_pads();
    let (counts, claims) = context.units();
    let entries = yields::entries(&context.mapping, &claims);
    code::claims::check(&context.mapping, claims, &context.findings);
    context.return_addresses();
    // Entries of a trace preserve everything, so it does not count what is live.
    if !matches!(context.note.mode, container::mapping::IDENTITY | container::mapping::TRACE) {
        let (original, mapping) = (&context.original, &context.mapping);
        let unwind = &context.unwind;
        let basis = earlier.as_ref().map(|_| earlier::Basis::of(mapping, unwind));
        let known = earlier.as_mut().zip(basis.as_ref()).and_then(|(earlier, basis)| earlier.take(basis));
        let (known, of_callers) = known.unzip();
        let dead = liveness::Liveness::of(original, mapping, unwind, &context.relocations, &named, known);
        context.decoders_agree_on_others(&dead);
        if matches!(context.note.mode, container::mapping::POISON | container::mapping::PREFETCH) {
            context.inserted_code(&dead);
        } else {
            let of_callers = context.harvest(&dead, &entries, of_callers);
            if let (Some(earlier), Some(basis)) = (earlier, basis) {
                earlier.keep(basis, dead.into_found(), of_callers);
            }
        }
    }
    Ok((counts, context.findings))
}

impl Context<'_> {
    /// R2 for landing pads.
    fn landing_pads(&self) {
        self.unwind.with_exceptions().into_par_iter().for_each(|fde| {
            for pad in
                self.unwind.pads(&self.original, fde).into_iter().filter(|&pad| self.patched.holds(pad))
            {
                self.findings.at(Rule::Entry, pad, "a landing pad inside an entry patch");
            }
        });
    }

    fn units(&self) -> (Counts, Vec<code::claims::Claim>) {
        let units = &self.mapping.units;
        let parts = units.par_iter().enumerate().with_min_len(32).fold(
            Scratch::default,
            |mut scratch, (index, unit)| {
                let tables = &self.mapping.tables[unit.tables.0 as usize..unit.tables.1 as usize];
                let view = View { context: self, unit, tables };
                scratch.counts.units += 1;
                if view.instructions(&mut scratch) {
                    view.jump_tables(&mut scratch);
                    view.label_table(self.table_range, &scratch);
                    view.unwinding(index, &mut scratch);
                }
                scratch
            },
        );
        parts.map(|scratch| (scratch.counts, scratch.claims)).reduce(
            || (Counts::default(), Vec::new()),
            |(counts, mut claims), (more, mut others)| {
                claims.append(&mut others);
                (counts.and(more), claims)
            },
        )
    }
}
