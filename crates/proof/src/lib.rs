//! The independent checker of rewritten ELF files. It is given the original and the rewritten file and knows nothing of
//! how the second was made: it shares no code with the rewriter but the layout of note and mapping (`twin-format`), whose
//! every claim it checks; it decodes on its own, reads unwind tables on its own and has its own idea of what is dead. What
//! it goes by is `docs/twin-format.md`.
//!
//! # The rules
//!
//! Let U be the units of the mapping, T(a) the place in a twin of the instruction at a, *mapped* what has a T, P the patched
//! entries, and P⁻ the four bytes behind the first of each patch.
//!
//! - **R1 unchanged.** Every byte of the original file is unchanged in the rewritten one, but for `e_phoff`,
//!   `e_shoff`, `e_phentsize`, `e_phnum`, `e_shentsize`, `e_shnum`, `e_shstrndx`, the five bytes of each p ∈ P, and of Go programs the
//!   eight bytes that R20 names.
//! - **R2 entry.** p ∈ P is a unit's first byte, or the one behind the `endbr64` it begins with. In its place stands
//!   `jmp rel32` to T(p). Mapped instructions without gaps cover the five bytes, which lie in their unit, and in no part
//!   of the file that is also loaded as data. No operand with the same address whenever it is used (relative to RIP; or, with fixed addresses, without registers) of
//!   these instructions and of the sweep below has any of the five bytes, but where that address is only taken. Nothing refers to P⁻: no branch, address operand or constant of mapped
//!   instructions; nothing that would be a branch if code began at any byte of a unit's unmapped bytes; no instruction of
//!   a linear sweep over code without twins (but for what sections say is data, to which no mapped branch leads); no
//!   relocation, dynamic entry, symbol, landing pad, jump table entry; in
//!   modules with fixed addresses no aligned word of data. Where a unit jumps to a computed address, no instruction begins
//!   in its P⁻.
//! - **R3 headers.** Program headers are the original's, in order, but for `PT_PHDR` and `PT_GNU_EH_FRAME`, which lie in the
//!   new data segment; behind the last `PT_LOAD` two new ones follow, R and RX, each from bytes behind the original's,
//!   congruent to its file offset, in pages that no other segment has; the first of them at the distance from its offset that the original's first one
//!   has, unless that makes a hole of more than 64 MiB in the file; last comes the note. Section headers are the
//!   original's but for what the format says moves. Padding is zero.
//! - **R4 copy.** Every mapped instruction's copy is the same bytes, but for the displacement of a RIP-relative operand, which
//!   gives the same address, that of a direct branch, a longer form of a short direct branch, a call or jump through a
//!   slot for one to the linkage stub of that slot (R5), and the displacement of a load from a jump table (R8).
//! - **R5 flow.** Let →a be: T(a) if a is mapped in the same unit; T(a) or a if it is mapped in another; a if it is not mapped
//!   and not in P⁻. A direct branch to a leads to →a. Behind the copy of an instruction that may go on, at b, stands T(b) or a
//!   `jmp rel32` to →b. A plain call of, or jump to, a linkage stub a (`[endbr64] [bnd] jmp [slot]`, in code that is never
//!   written, has no twin, no patch and no relocation) may be a call or jump through that slot.
//! - **R6 calls.** A direct call of a leads to →a. Behind every call stands T(b) or a jump to →b, b being what follows it in
//!   the original: a return address is never without code. No direct call leads to what uses its return address for more than
//!   to return there, or to hand it on, and no unit reads that of its own calls: `return_addresses` says what that is.
//! - **R7 inserted.** Inserted code is of the closed list: in identity twins none. It writes only what is dead by this crate's
//!   own liveness, which stands at the head of `dead`: before a call by a pointer, status flags alone; and where a function may be of a
//!   convention that keeps more than the ABI, nothing of that over what it calls outside of the module (`liveness/preserved.rs`).
//! - **R8 tables.** A twin of a jump table lies in the new data and overlaps no other one; entry i leads to →(where entry i of
//!   the original's leads); the load reads it with every register holding what it holds in the original; the original's
//!   lies in memory that is never written.
//! - **R9 unwind.** The unwind table is the original's, entry by entry, one for each twin that covers it exactly, but for those of R19 and R20, and one for each relay. For each
//!   byte of an instruction's copy and escape, the rules for the frame and all registers, from both programs run, are those
//!   of the original's instruction (behind it, for an escape; in front of it, for the cold part and the relay of what is inserted there). The index is sorted, lists each description once and no
//!   other. At each instruction's first and last byte, both exception tables give the same action, with the same types, and
//!   landing pads →pad (or pad); a cold part's first and last byte have those of its instruction. From no relay they land anywhere, nor do they from its instruction;
//!   it has a table, which lists nothing, where that instruction is not listed by one.
//! - **R10 relocations.** No relocation writes into a unit with a twin, a jump table with a twin, an exception table with a
//!   twin, a patch, or a new segment. (That they and the dynamic section are unchanged follows from R1 and R3.)
//! - **R11 symbols.** The symbol table is the original's, and behind it functions that are exactly twins, named by a name of
//!   their original and `.twin`.
//! - **R12 mapping.** Note and mapping are of a known version and hang together. Units ascend, lie in code of the original, do
//!   not overlap, and each is the whole range of exactly one frame description, or touches none (R19, R20). None holds an address that a descriptor of
//!   restartable sequences (`__rseq_cs`) names. Twins do the same in the new code, which
//!   holds relays behind them, and traps besides. An instruction stream lists instructions by this crate's decoder, in ascending order, and fills
//!   its twin together with the cold parts, of which an instruction has at most one, and only behind other inserted code; with traps before what follows a gap.
//!   Site yields and spin yields are listed, each as what its code does and for the instruction that it stands before, and
//!   nothing else is.
//! - **R13 yields.** What is inserted into primaries and scavengers consists of instructions of a closed list
//!   (`yields/ops.rs`), each of which something leads to, and of jumps forward among them; the stretches of its cold part count as
//!   standing behind the jumps that lead to them (`yields/run.rs`). It reads and writes nothing
//!   but its area's words for inserted code, the running context and (before a `ret`) the return address; no stack, no red zone.
//!   On every way from its begin to its end, everything that this crate's sparing liveness (`yields/sparing/mod.rs` says
//!   what that is, and what makes it sound) says is live at the instruction that follows holds what it held: where another context ran meanwhile, nothing is known but what the context holds, where
//!   each register was saved to its own slot (vectors as wide as the note says) and nothing else. General registers and the stack
//!   pointer may have been saved before (`yields/held.rs`): on all ways to the piece, with no call since, and unchanged; and the
//!   context's address may stand in a register that likewise got it before, and gets it again where the context goes on. A switch makes the next
//!   context current (or, in primaries, the one that is named for turning round), which is another one, and goes to where that goes on; its own
//!   context goes on in the same piece. Only scavengers that are nobody's hosts may hold the next one in a register while they ask and save, and nobody keeps it in scratch. Budgets, leaves and looks
//!   at returns are the scavengers'; they set the budget to the note's quantum after a switch only, and always where it was
//!   used up. In primaries an instruction that loads 32 bits into a register, or compares `eax` with them, may become a jump by its
//!   opcode byte, those bits being the distance, and become what it was, at any time (a *switch*); so may a `nop` of five bytes by its first one, whose others
//!   lead to a *relay* then, which is a jump that leads on: both is looked at, and the
//!   mapping lists each such byte with where its yield goes on, and nothing else. No
//!   function (all its parts together) has both yields and x87, MMX or tile registers, `std`, `popf` or transactions.
//! - **R14 prefetches.** What a yield fetches is the memory operand of the instruction behind it that its row names, with nothing
//!   but plain instructions between them, none of which changes what the operand hangs on. In primaries every yield fetches, but for those that go to
//!   whom the context names for turning round.
//! - **R15 early.** Primaries do not yield in resolvers of indirect functions, in `.preinit_array`, in libraries'
//!   constructors, in a program's `malloc` and its kin, nor in what these call or jump to directly. Programs whose
//!   threads are each other's guests have no twins of these.
//! - **R16 aboard.** Before an instruction of a scavenger by which control may leave the twins, which acts on the kernel
//!   thread or sets modes, or is relative to GS, on every way its area was found to be no guest's, or a leave was made that
//!   goes on here with everything as it was. So at indirect calls and jumps (but by listed tables all of whose twins' entries lead to
//!   twins), direct ones that do not lead to twins, and escapes, which lose nothing at all; and at a `ret`, unless the return
//!   address was found to lie in the twins.
//! - **R17 thread-local.** An instruction of a scavenger that is relative to FS is either its original's bytes, at home by
//!   R16, or the same instruction relative to a register that holds the context's FS base and what the operand adds.
//! - **R18 bounds.** In scavengers, every cycle of a unit's graph meets a yield, or budget for none, or a leave; so does every way from
//!   where others enter the unit to where it calls or enters another: so every cycle through several units does. What a
//!   bound takes from the budget is at least an eighth of the number of instructions on the longest way to what is met
//!   next, and no such way has more than eight for each cycle of the quantum: no processor retires more in a cycle.
//! - **R19 bare.** A unit that no frame description touches, and that R20 does not speak of, has a twin in identity and poison only, and that has none either. It is
//!   five bytes long at least, in memory that is never written, and a symbol of a function, a header or a relocation names its first byte; if that is
//!   a local symbol alone, a unit with a frame description calls it or jumps there (what nobody knows by its address may be run elsewhere, by a copy). Its instructions
//!   follow each other from the first byte to the last, with nothing between but `nop` and `int3`; control never runs on behind them. It has no jump tables, and
//!   jumps by no address that it computes. Its direct jumps lead to its own instructions, or to where frame descriptions, linkage
//!   stubs, names or *plain leaves* (`bare` says what that is) begin; its direct calls to the same, but for names. It refers to no byte of its
//!   own; if it calls, its operands do not lie below the stack pointer. Of other units, no branch leads to the inside of it, and no operand lies
//!   there, nor at its begin, but where that address is only taken. For R7, no general register is dead in it, nor anything at its calls and where it
//!   is left; and whoever calls it knows nothing of it.
//! - **R20 Go.** In a Go program (anything that says so makes it one) twins are identity or poison. It has fixed addresses, is of a version whose tables are known
//!   (`go/shape.rs`), has one `moduledata`, behind which none follows, and no function that loads plugins. Units within its text are whole functions of its table: not of assembly, not writing the
//!   stack pointer, with pointer maps, and without sequences that are begun anew; no frame description touches them. For R7 they are as those of R19. `next` of the
//!   `moduledata` leads to another one in the new data, and is what R1 excepts. The ranges that words of the linker name for a checksum (`go/checked.rs`) hold what they did. That one is the original's but for: its head (the same, with the number of functions, and where the code begins if that was
//!   told); `pctab`, `pclntable`, `ftab` and `findfunctab`, which lie in the new data; `minpc`, `text`, `maxpc`, `etext`, where the first of these twins begins and the last one ends; no data (all
//!   ranges end where they begin, at 64 zeros of the new data), no types, type links, interface tables, initialization, hashes, names, `main`; and no bits of masks, at those zeros, which are its type map, too (so
//!   that the runtime, which would make both where they are null, leaves them alone). `ftab` lists these twins in order, each with its record; for every byte of code `findfunctab` names no function
//!   behind that which holds it, so the runtime finds that. A record is the original's, but for: the entry; where it goes on after a panic, which is the copy of where the original does; its tables; and its
//!   inlining tree, whose rows (all that an instruction of the original names, and those around them) are the original's with the copy's place for that of the call. Each table (frames, files, lines, and all that
//!   are numbered) is there where the original's is, ends with the twin, holds no value that the original's does not, and has for every byte inserted before an instruction's copy and of the copy the one value that the
//!   original's has for the whole instruction, and for an escape that of what follows the instruction.
//! - **R21 left.** Where a scavenger's yield does not load a live general register behind its switch, it has a note in front of the place where it goes on,
//!   to which no way leads: these registers (none is rax, rsp or r11), from what is inserted before one instruction of the unit up to another instruction, in one
//!   piece of 32 KiB at most, without cold parts and escapes. Everywhere between them the slots of the note's registers hold them, on all ways. Where such a register may
//!   hold anything, control is between these places, the last yield that switched is one with that note, no instruction uses
//!   the register, and control neither leaves the unit's twin nor goes into a cold part, nor is there a leave.
//!
//! What is not proven: that what is called by pointers, or in other modules, uses no return address as R6 forbids; that a
//! program does not use GS itself, that Go's runtime does with code and return addresses what its sources say (it looks them up in its tables), and that nobody puts another module in the place of the twins' one, that no returns but those of calls lead to twins (so that no cycle
//! is made of returns), that a library is not called before the runtime by others' constructors; that code is not read as data, that nobody but the program's own code knows addresses inside of
//! functions; what the next paragraph says of jump tables. For inserted code: what `dead` and `harvest/sparing` say they take
//! for granted of calls that leave the module, and `liveness/preserved.rs` of the conventions that there are.
//!
//! R8 proves what a twin's table holds, not that the jump reads it. Of each listed table three things are the mapping's word.
//! *Base*: whenever its load is reached, the memory operand is the original table's address and a whole number i of entries.
//! *Bound*: 0 ≤ i < count, for what the mapping gives as count. *Sum*: the jump goes where that entry says (to it, or to it and
//! the listed base), and nowhere else. Were one untrue, the twin would read other bytes than the original, and jump anywhere;
//! no rule would see it, and R13, R16 and R18 go by the edges of listed tables too. A count too large does no harm (what is
//! listed lies in the file, and leads where the original's entries do); one too small is the danger. Whoever writes the
//! mapping must therefore hold i below the count on *every* way to the jump: `image::code::tables` lists no table otherwise. Jumps
//! that are not listed are copied as they stand and need none of this.
//!
//! A file's head names its rules. To add a rule: a variant of [`Rule`], a line above, a file, a call in [`check`], and
//! wrong twins in `tests/`.
#![forbid(unsafe_code)]

mod code;
mod container;
mod decode;
mod go;
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
pub use rule::{Place, Rule, Violation};
use std::sync::atomic::AtomicBool;

/// What a proof is by, and the version of this checker: one more wherever it may find otherwise than before.
pub const RULES: &str = "R1 to R21";
pub const VERSION: u32 = 22;

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
    #[error("the second file is not a rewritten one: it has no note of a rewriter")]
    NotRewritten,
    #[error("a rewrite of a kind this checker does not know, number {0}")]
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
    /// Of a Go program.
    pub(crate) go: Option<go::Go<'d>>,
    /// What frame descriptions cover, ascending.
    pub(crate) functions: Vec<(u64, u64)>,
    /// Where functions begin by other words than those of frame descriptions, ascending.
    pub(crate) named: Vec<u64>,
    /// Those of them that others than what has no frame description may know of.
    pub(crate) known: Vec<u64>,
    /// The units without frame description, ascending.
    pub(crate) bare: Vec<(u64, u64)>,
    /// Of each of these: some unit with a frame description calls it, or jumps there.
    pub(crate) met: Vec<AtomicBool>,
    /// What sections say is data, though executable.
    pub(crate) data: Vec<(u64, u64)>,
    pub(crate) findings: Findings,
}

/// Checks that `rewritten` is `original` with twins, by the rules above.
pub fn check(original: &[u8], rewritten: &[u8]) -> Result<Counts, Refusal> {
    let findings = Findings::default();
    let counts = look(original, rewritten, findings)?;
    match counts {
        (counts, findings) if findings.none() => Ok(counts),
        (_, findings) => {
            let (violations, total) = findings.finish();
            Err(Refusal::Wrong { violations, total })
        }
    }
}

fn look(old: &[u8], new: &[u8], findings: Findings) -> Result<(Counts, Findings), Refusal> {
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
    container::padding(&original, &rewritten, &added, &mapping, &findings);
    let relocations = Relocations::of(&original);
    let about_go = (note.mode, &findings);
    let go = go::Go::of(&original, &rewritten, &mapping, &added, &relocations, about_go);
    let mut places = code::patches::places(&original, &mapping, &findings);
    go::Go::checked(&original, &rewritten, &findings);
    places.extend(go.as_ref().and_then(|go| go.link(&original)));
    places.sort_unstable();
    container::unchanged(old, new, &note, &places, &findings);
    let span = (added.data.address, added.text.address.saturating_add(added.text.memory_size));
    let room = code::tables::room(&rewritten, &added.data);
    if !code::tables::apart(&mapping, room, &findings) {
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
    let is_go = |unit: usize| go.as_ref().is_some_and(|go| go.is_of_unit(unit));
    if let Some(unit) = (0..mapping.units.len()).find(|&unit| is_go(unit) && unwind.of_unit(unit).is_some()) {
        findings.at(
            Rule::Go,
            mapping.units[unit].start,
            "a function of Go that the unwind table describes, too",
        );
    }
    let mut described = functions.clone();
    described.extend(go.iter().flat_map(go::Go::ranges));
    described.sort_unstable();
    let known = code::bare::known(&original, &relocations);
    let named = code::bare::named(&original, &known);
    code::references::look(&original, &mapping, &described, &named, &relocations, &patched, &findings);
    let bare = mapping.units.iter().enumerate();
    let bare = bare.filter(|&(index, _)| unwind.of_unit(index).is_none() && !is_go(index));
    let bare: Vec<_> = bare.map(|(_, unit)| (unit.start, unit.start + unit.code.len() as u64)).collect();
    let context = Context {
        position_independent: original.is_position_independent(),
        data: original.data_among_code(),
        named,
        known,
        met: bare.iter().map(|_| AtomicBool::new(false)).collect(),
        functions,
        bare,
        original,
        rewritten,
        note,
        mapping,
        patched,
        relocations,
        unwind,
        go,
        findings,
    };
    context.landing_pads();
    let (counts, claims) = context.units();
    context.known_outside();
    let entries = yields::entries(&context.mapping, &claims);
    code::claims::check(&context.mapping, claims, &context.findings);
    context.return_addresses();
    if context.note.mode != container::mapping::IDENTITY {
        let (original, mapping) = (&context.original, &context.mapping);
        let dead = liveness::Dead::of(original, mapping, &context.unwind, &context.relocations);
        context.decoders_agree_on_others(&dead);
        match context.note.mode {
            container::mapping::POISON => context.poison(&dead),
            _ => context.harvest(&dead, &entries),
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
                    match &self.go {
                        Some(go) if go.is_of_unit(index) => view.go(go, index, &scratch.items),
                        _ if self.unwind.of_unit(index).is_none() => view.bare(&scratch.items),
                        _ => {}
                    }
                    view.jump_tables(&mut scratch);
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
