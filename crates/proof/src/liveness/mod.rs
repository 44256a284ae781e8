//! What is dead where: this crate's own liveness, for rule R7. It looks at the original alone; in a
//! twin the same is dead, for the same instructions follow each other there.
//!
//! Live before an instruction is what it reads, and what is live behind it and not surely
//! overwritten by it. What follows is known by direct branches and listed jump tables; anything may
//! follow where a jump's target is not known, where control runs into bytes that have no twin or
//! into another function, and at a `ret` where the return address is not on top of the stack by the
//! unwind table: there everything is live. Besides, everywhere:
//!
//! - what an unwinder reads by the unwind table (the frame's register, callee-saved registers that
//!   are saved nowhere),
//! - what the landing pad needs, where an exception table names one; but for rax and rdx, which the
//!   unwinder sets,
//! - the stack pointer, the direction flag, x87 state. MXCSR and segments have no names here:
//!   nothing of the closed list writes them.
//!
//! Of code that no frame description covers nobody knows anything: calling or jumping to it is
//! going anywhere. Where it leads itself is seen by its direct branches, from each of its names on.
//!
//! Between functions:
//!
//! - *A direct call of a function whose code is known* needs what that may read, by its own
//!   instructions and what it calls. What it overwrites on every way to every return is dead
//!   before; what it may leave alone is not, so values that `-fipa-ra` keeps over calls live on.
//! - *At a return* live are callee-saved registers, those of results, every register that no
//!   instruction of the function writes (of what makes one function with it, only what leads to it
//!   *and* that it leads to may have written for its callers) or that it may give back as it found
//!   it (it puts it on the stack and gets it from there), and whatever the code behind some direct
//!   call of it is seen to read, flags and all; also by way of functions that go to it in place of
//!   returning.
//! - *A call by a pointer* may be of a function of any convention (clang's `regcall` and
//!   `preserve_none`, Haskell's, OCaml's): it needs everything but status flags. So it is with
//!   functions of other modules that have no name, or one that is made of `regcall`. What it leaves
//!   where the ABI returns nothing, and what reaches a `ret` from there with no call between and
//!   not surely overwritten, is live at the function's returns; and so is what an instruction
//!   writes that writes only this one register, where nothing that is known to read it may follow,
//!   and which reaches a `ret` likewise: compilers write nothing for nobody, so some convention
//!   returns it ([`unread`]).
//! - *Calls of functions of other modules, by name*, follow the System V ABI: they read what
//!   arguments are passed in, and nothing is kept over them but in callee-saved registers, and in
//!   what is seen to be read behind them though they leave nothing there (other conventions keep
//!   more), or what the function that calls may have to leave as it found it ([`preserved`]).
//!   Callers by a function's address or from other modules read behind the call what the ABI says
//!   is there, or what that function may have to keep. The calls that find thread-local variables
//!   by descriptors are none of these; they keep everything.
//! - *Any other call* may read and leave alone everything.
//! - Some calls never return: of functions whose own code never does, of some that standards say
//!   never do, by name (of the module's own functions, by names that are reserved), and such as
//!   stand last in their function ([`last_calls`]).
//!
//! [`preserved`] says which functions may be of a convention that keeps more than the ABI.
//! [`effects`] says what an instruction does, [`steps`] reads a unit's, [`body`] puts them together
//! as blocks, [`solve`] has the equations, [`order`] says in which order they are solved,
//! [`linkage`] knows what leaves the module, [`descent`] reads functions that have no twins.

pub(crate) mod body;
pub(crate) mod descent;
pub(crate) mod effects;
mod last_calls;
pub(crate) mod linkage;
pub(crate) mod order;
pub(crate) mod preserved;
pub(crate) mod set;
pub(crate) mod solve;
pub(crate) mod steps;
pub(crate) mod unread;

use crate::container::elf::Elf;
use crate::container::mapping::{Mapping, Table};
use crate::container::relocations::Relocations;
use crate::container::stream::{self, Item};
use crate::unwind::Tables;
use crate::unwind::lsda::Site;
use body::{Body, BodyPlace};
use linkage::Linkage;
use order::Functions;
use rayon::prelude::*;
use set::{ALL, CALLEE_SAVED, CLOBBERED, RED_ZONE, RESERVED, RESULTS, STATUS_FLAGS, Set};
use solve::{Function, Summary, Way};
use steps::{LivenessStep, Source};

/// Code that liveness looks at: units first, then functions that have none.
pub(crate) struct Code<'c, 'd> {
    pub(crate) original: &'c Elf<'d>,
    pub(crate) mapping: &'c Mapping<'d>,
    pub(crate) unwind: &'c Tables<'d>,
    pub(crate) linkage: Linkage<'c, 'd>,
    /// Start, size and frame description of those without twins.
    others: Vec<(u64, u64, u32)>,
    /// Start, end and number of all, by start.
    places: Vec<(u64, u64, u32)>,
    parts: Vec<bool>,
}

/// Buffers for one body at a time.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) items: Vec<Item>,
    pub(crate) steps: Vec<LivenessStep>,
    sites: Vec<Site>,
}

impl<'c, 'd> Code<'c, 'd> {
    fn of(
        original: &'c Elf<'d>,
        mapping: &'c Mapping<'d>,
        unwind: &'c Tables<'d>,
        relocations: &'c Relocations,
    ) -> Self {
        let mut others: Vec<(u64, u64, u32)> = unwind.covering();
        others.retain(|&(start, size, _)| {
            mapping.at(start).is_none() && size < 1 << 31 && {
                let end = start.saturating_add(size);
                mapping.units[mapping.units.partition_point(|unit| unit.start < start)..]
                    .first()
                    .is_none_or(|unit| unit.start >= end)
                    && original.bytes_at(units::Svma(start), size as usize).is_some()
            }
        });
        let mut reach = 0;
        others.retain(|&(start, size, _)| {
            let apart = start >= reach;
            reach = reach.max(start + size);
            apart
        });
        let units = mapping.units.iter().map(|unit| (unit.start, unit.start + unit.code.len() as u64));
        let more = others.iter().map(|&(start, size, _)| (start, start + size));
        let mut places: Vec<(u64, u64, u32)> =
            units.chain(more).zip(0..).map(|((start, end), body)| (start, end, body)).collect();
        places.sort_unstable();
        let linkage = Linkage::of(original, relocations);
        let mut code = Self { original, mapping, unwind, linkage, others, places, parts: Vec::new() };
        let named = crate::container::names::parts(original);
        code.parts = (0..code.count() as u32)
            .into_par_iter()
            .with_min_len(256)
            .map(|body| {
                let bare = unwind.rows(code.fde(body)).is_some_and(|rows| rows.is_bare());
                !bare || named.binary_search(&code.start(body)).is_ok()
            })
            .collect();
        code
    }

    fn count(&self) -> usize {
        self.mapping.units.len() + self.others.len()
    }
    fn other(&self, body: u32) -> Option<&(u64, u64, u32)> {
        self.others.get((body as usize).checked_sub(self.mapping.units.len())?)
    }
    /// Its frame description.
    fn fde(&self, body: u32) -> u32 {
        self.other(body).map_or_else(|| self.unwind.of_unit(body as usize), |other| other.2)
    }
    pub(crate) fn start(&self, body: u32) -> u64 {
        self.other(body).map_or_else(|| self.mapping.units[body as usize].start, |other| other.0)
    }
    pub(crate) fn tables(&self, body: u32) -> &'c [Table] {
        let Some(unit) = self.mapping.units.get(body as usize) else { return &[] };
        &self.mapping.tables[unit.tables.0 as usize..unit.tables.1 as usize]
    }
    /// Whether it is a part of some function, entered by jumps into its frame.
    pub(crate) fn is_part(&self, body: u32) -> bool {
        self.parts[body as usize]
    }
    pub(crate) fn place(&self, address: u64) -> Option<BodyPlace> {
        let after = self.places.partition_point(|&(start, _, _)| start <= address);
        let &(start, end, body) = self.places[..after].last()?;
        (address < end).then_some(BodyPlace { body, at: (address - start) as u32 })
    }

    /// Reads a body's instructions into the buffers.
    pub(crate) fn read(&self, body: u32, entered: &[(u32, bool)], buffers: &mut Buffers) {
        let (start, fde) = (self.start(body), self.fde(body));
        buffers.sites = self.unwind.sites(self.original, fde).unwrap_or_default();
        let code = match (self.mapping.units.get(body as usize), self.other(body)) {
            (Some(unit), _) => {
                if stream::read(unit, &mut buffers.items).is_err() {
                    buffers.items.clear();
                }
                unit.code
            }
            (_, Some(&(_, size, _))) => {
                let code = self.original.bytes_at(units::Svma(start), size as usize).unwrap_or(&[]);
                let pads =
                    buffers.sites.iter().filter_map(|site| u32::try_from(site.pad.checked_sub(start)?).ok());
                let entries: Vec<u32> = entered.iter().map(|&(at, _)| at).chain(pads).collect();
                descent::follow(start, code, &entries, &mut buffers.items);
                code
            }
            _ => &[],
        };
        let rows = self.unwind.rows(fde);
        let source = Source { start, code, tables: self.tables(body), rows };
        steps::read(source, &buffers.items, &self.linkage, &mut buffers.steps);
        buffers.items.truncate(buffers.steps.len());
    }
}

/// All of [`Liveness`] that takes time to find.
pub(crate) struct Found {
    bodies: Vec<Body>,
    functions: Functions,
    summaries: Vec<Summary>,
    wanted: Vec<Set>,
    preserved: Vec<Set>,
}

/// What is known about all functions together.
pub(crate) struct Liveness<'c, 'd> {
    pub(crate) code: Code<'c, 'd>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) functions: Functions,
    pub(crate) summaries: Vec<Summary>,
    /// For each body, what is seen to be read behind calls of it.
    pub(crate) wanted: Vec<Set>,
    /// For each body, what callers that are not in view may want back.
    pub(crate) preserved: Vec<Set>,
}

impl<'c, 'd> Liveness<'c, 'd> {
    /// With what was found [`earlier`](Self::into_found) from the same original, units and tables.
    /// `named` functions begin there, described or not.
    pub(crate) fn of(
        original: &'c Elf<'d>,
        mapping: &'c Mapping<'d>,
        unwind: &'c Tables<'d>,
        relocations: &'c Relocations,
        named: &[u64],
        earlier: Option<Found>,
    ) -> Self {
        let code = Code::of(original, mapping, unwind, relocations);
        if let Some(Found { bodies, functions, summaries, wanted, preserved }) = earlier {
            return Self { code, bodies, functions, summaries, wanted, preserved };
        }
        let known: Vec<(u64, u64)> =
            code.others.iter().map(|&(start, size, _)| (start, start + size)).collect();
        let mut entered = crate::code::references::targets(original, mapping, &known, named);
        entered.extend(&mapping.labels);
        let bodies = bodies(&code, &entered);
        let functions = Functions::of(&bodies);
        let summaries = summaries(&code, &bodies, &functions);
        let wanted = wanted(&bodies, &functions, &summaries);
        let preserved = preserved::of(&code, &bodies, &functions, &summaries);
        Self { code, bodies, functions, summaries, wanted, preserved }
    }

    pub(crate) fn into_found(self) -> Found {
        let Self { bodies, functions, summaries, wanted, preserved, .. } = self;
        Found { bodies, functions, summaries, wanted, preserved }
    }

    /// For each function, the bodies it is made of: units where the number is one of a unit.
    pub(crate) fn functions(&self) -> &[Vec<u32>] {
        &self.functions.members
    }

    /// Whether a call of this address may come back.
    pub(crate) fn comes_back(&self, to: u64) -> bool {
        let outside = self.code.linkage.stub(to);
        if outside == Some(linkage::Outside::NeverReturns) || self.code.linkage.is_dead_end(to) {
            return false;
        }
        match self.code.place(to) {
            Some(BodyPlace { body, at: 0 }) => self.summaries[body as usize].returns,
            _ => true,
        }
    }

    /// Tells for each unit of a function what is live before each instruction.
    pub(crate) fn live(
        &self,
        members: &[u32],
        buffers: &mut Buffers,
        mut tell: impl FnMut(u32, &[Item], &[Set]),
    ) {
        let mut function = Function::new(members, &self.bodies);
        function.see_what_is_kept(&self.summaries);
        function.preserve(&self.preserved);
        function.need_what_is_unwritten(STATUS_FLAGS | RED_ZONE);
        let wanted = members.iter().fold(0, |all, &body| all | self.wanted[body as usize]);
        let given_back = function.forwards(&self.summaries).given_back;
        let returned = function.returned_unread(&Way::READING, &self.summaries) | function.handed_back();
        let way = Way::keeping((CALLEE_SAVED | RESULTS | given_back | wanted | returned) & !RED_ZONE);
        let live = function.solve(&way, &self.summaries);
        let mut before = Vec::new();
        for (member, &body) in members.iter().enumerate() {
            if body as usize >= self.code.mapping.units.len() {
                continue;
            }
            self.code.read(body, &[], buffers);
            before.clear();
            before.resize(buffers.items.len(), ALL);
            let way = function.way(member, &way);
            for (index, block) in function.body(member).blocks.iter().enumerate() {
                let pad = function.at_pad(member, block.pad, &live, &way) | RESERVED;
                let after = function.after(member, index, &live, &way, &self.summaries);
                let number = function.base(member) + index;
                let mut now = function.before_last(number, block.last, after, &way, &self.summaries);
                for at in (block.first as usize..block.end as usize).rev() {
                    let step = &buffers.steps[at];
                    now = step.effect.reads | now & !step.effect.kills;
                    before[at] = now | pad | step.unwinding;
                }
                debug_assert_eq!(now | pad, live[number] | pad);
            }
            tell(body, &buffers.items, &before);
        }
    }
}

/// Puts all bodies together; those that others enter in the middle once more, when it is known
/// where. What is read of one that has no twin from there on may lead into others in turn.
fn bodies(code: &Code<'_, '_>, entered: &[u64]) -> Vec<Body> {
    let build = |buffers: &mut Buffers, body: u32, entered: &[(u32, bool)]| {
        code.read(body, entered, buffers);
        Body::build(body, code, entered, buffers)
    };
    let mut bodies: Vec<Body> = (0..code.count() as u32)
        .into_par_iter()
        .with_min_len(32)
        .map_init(Buffers::default, |buffers, body| build(buffers, body, &[]))
        .collect();
    let mut fresh: Vec<(BodyPlace, bool)> = entered
        .iter()
        .filter_map(|&address| code.place(address))
        .filter(|place| place.at != 0 || code.is_part(place.body))
        .map(|place| (place, false))
        .collect();
    fresh.extend(bodies.iter().flat_map(|body| body.enters.iter().copied()));
    let mut entries: Vec<(BodyPlace, bool)> = Vec::new();
    loop {
        fresh.sort_unstable();
        fresh.dedup();
        fresh.retain(|entry| entries.binary_search(entry).is_err());
        let mut changed: Vec<u32> = fresh.iter().map(|(place, _)| place.body).collect();
        changed.dedup();
        if changed.is_empty() {
            return bodies;
        }
        entries.append(&mut fresh);
        entries.sort_unstable();
        let its = |body: u32| -> Vec<(u32, bool)> {
            let first = entries.partition_point(|(place, _)| place.body < body);
            let its = entries[first..].iter().take_while(|(place, _)| place.body == body);
            its.map(|&(place, followed)| (place.at, followed)).collect()
        };
        let again: Vec<(u32, Body)> = changed
            .into_par_iter()
            .map_init(Buffers::default, |buffers, body| (body, build(buffers, body, &its(body))))
            .collect();
        for (body, built) in again {
            fresh.extend(built.enters.iter().copied());
            bodies[body as usize] = built;
        }
    }
}

/// Summaries of all bodies, callees first; of functions that call each other until nothing changes.
fn summaries(code: &Code<'_, '_>, bodies: &[Body], functions: &Functions) -> Vec<Summary> {
    let mut summaries = vec![Summary::HOPED; bodies.len()];
    let mut changed = vec![false; functions.members.len()];
    for mut waiting in functions.levels() {
        let level = waiting.clone();
        while !waiting.is_empty() {
            let found: Vec<(u32, Vec<Summary>)> = waiting
                .par_iter()
                .with_min_len(16)
                .map(|&function| {
                    let members = &functions.members[function as usize];
                    let mut found = Function::new(members, bodies);
                    (function, found.summaries(&summaries, |body| code.is_part(body)))
                })
                .collect();
            for (function, found) in found {
                for (&body, summary) in functions.members[function as usize].iter().zip(found) {
                    changed[function as usize] |= summaries[body as usize] != summary;
                    summaries[body as usize] = summary;
                }
            }
            let calls = |function: u32| functions.calls[function as usize].iter();
            waiting = level
                .iter()
                .copied()
                .filter(|&function| calls(function).any(|&callee| changed[callee as usize]))
                .collect();
            for &function in &level {
                changed[function as usize] = false;
            }
        }
    }
    summaries
}

/// What is seen to be read behind direct calls although the ABI leaves nothing there; handed on to
/// functions that are gone to in place of returning.
fn wanted(bodies: &[Body], functions: &Functions, summaries: &[Summary]) -> Vec<Set> {
    let mut waiting: Vec<(u32, Set)> = functions
        .members
        .par_iter()
        .with_min_len(32)
        .flat_map_iter(|members| {
            let mut found = Vec::new();
            Function::new(members, bodies).read_behind_calls(summaries, &mut |callee, set| {
                let unusual = set & CLOBBERED & !RESULTS;
                if unusual != 0 {
                    found.push((callee, unusual));
                }
            });
            found
        })
        .collect();
    let mut wanted = vec![0; bodies.len()];
    while let Some((body, set)) = waiting.pop() {
        if set & !wanted[body as usize] == 0 {
            continue;
        }
        wanted[body as usize] |= set;
        for &part in &functions.members[functions.of_body[body as usize] as usize] {
            waiting.extend(bodies[part as usize].outs.iter().filter_map(|out| match out {
                body::Out::Tail(to) => Some((*to, set)),
                _ => None,
            }));
        }
    }
    wanted
}
