//! What is live at a yield, when every user that may rely on it is asked. [`crate::liveness`] asks
//! of one function and what it calls; this asks its callers, too, so that a yield need not save
//! what nobody left there and nobody looks for.
//!
//! # What holds
//!
//! Let a program keep to the ABI in the three points below. Then putting anything whatever, at any
//! instruction, into what is not live there changes nothing but what is put: no memory, no result,
//! no way that control takes.
//!
//! - **Calls by the ABI** are those of other modules and by pointers. What is called so reads
//!   arguments (those of its type, where its name is one of `conventions`) and callee-saved
//!   registers, changes the rest as it likes, and leaves results; what is called by a pointer,
//!   whatever its convention, reads all general registers besides, and more vectors and masks than
//!   the ABI passes: [`passed`] says which, and takes for granted that no module only hands on what
//!   others passed it there. What calls so keeps nothing over the call but in callee-saved
//!   registers, in such as it is seen to read behind the call, though nothing is left there, and in
//!   such as it may itself have to leave as it found them (`liveness/preserved.rs`): those are
//!   live, and mean something, as if the call did not touch them. Behind a call by a pointer all
//!   general registers mean something: it may keep what the next such call is passed; and all
//!   others, too, to a function that may be of `regcall`.
//! - **Garbage means nothing.** What else a call by the ABI may change and does not return in, may
//!   have any value at every reading, and the program does the same. So a yield behind such a call
//!   is as good as the call at changing it.
//! - **Who jumps to a pointer** (but by a listed table) calls by the ABI on behalf of its own
//!   caller.
//!
//! Live before an instruction is then what it reads and what is live behind it and not surely
//! overwritten, as in `dead`, of that what *may hold anything of use* ([`meaning`]); and
//!
//! - at a return of f, unless f is *private*: what f writes where the ABI returns nothing and
//!   nobody reads up to there (as in `dead`); what a call by a pointer may have left there, if f
//!   may be of `regcall`, and f hands back; what f may have to leave as it found it for callers of
//!   another convention. And always: callee-saved registers; what is live behind any direct call of
//!   f, and at the returns of whatever jumps to f in place of returning; results, unless f is
//!   *private*. Everything, if f is called or jumped into from bytes that nobody decoded, or called
//!   in its middle.
//! - f is private ([`callers`]) if nothing names its address: no relocation, symbol, header,
//!   personality, operand or constant of code (decoded or, read from its first byte on, not), word
//!   or distance in data.
//! - before a direct call of f: what f may read, by the same rules; what is live behind, and not
//!   surely overwritten.
//!
//! Where code is seen to break the first or third point all the same (right behind a call by a
//! pointer, or of what jumps to one, it reads a register, vectors too, that the ABI leaves nothing
//! in), all functions that are not private keep that register.
//!
//! All is solved for the whole module, from the least up, so that it holds for functions that call
//! each other. To make yields cheaper by a new rule: say here what it takes for granted, and make
//! twins wrong that the rule must reject.

mod callers;
pub(crate) mod conventions;
mod meaning;
mod passed;

use crate::container::relocations::Relocations;
use crate::container::stream::Item;
use crate::liveness::body::{Block, Body, Last, Out};
use crate::liveness::set::{ALL, ARGUMENTS, CALLEE_SAVED, CLOBBERED, RED_ZONE, RESERVED, RESULTS, Set};
use crate::liveness::solve::{Function, Summary, Way};
use crate::liveness::{Buffers, Liveness, effects};
use conventions::Convention;
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpKind};
use rayon::prelude::*;
use units::Svma;

/// Registers and flags in which the ABI leaves nothing.
const ODD: Set = CLOBBERED & !RESULTS & !RED_ZONE;

/// A call by the ABI at a block's end.
#[derive(Clone, Copy)]
struct Call {
    passed: Set,
    left: Set,
    by_pointer: bool,
}

pub(crate) struct Interprocedural<'a, 'c, 'd> {
    dead: &'a Liveness<'c, 'd>,
    found: Found,
}

/// What is found of the original alone, by the units and tables of a mapping.
pub(crate) struct Found {
    /// For each function, for each block, what the call at its end keeps.
    kept: Vec<Vec<Set>>,
    /// For each body, for each block.
    calls: Vec<Vec<Call>>,
    /// For each function, for each block, what may hold something of use at its begin.
    meaning: Vec<Vec<Set>>,
    /// For each body.
    summaries: Vec<Summary>,
    /// For each function, whether it may hand back what calls by pointers leave where the ABI
    /// leaves nothing.
    hands_back: Vec<bool>,
    /// For each function, whether others may call it than those in view.
    taken: Vec<bool>,
    /// For each function, what is live at its returns.
    at_return: Vec<Set>,
}

impl<'a, 'c, 'd> Interprocedural<'a, 'c, 'd> {
    /// With what was found [`earlier`](Self::into_found) from the same original, units and tables.
    pub(crate) fn of(dead: &'a Liveness<'c, 'd>, relocations: &Relocations, earlier: Option<Found>) -> Self {
        if let Some(found) = earlier {
            return Self { dead, found };
        }
        let hoped = |summary: &Summary| Summary { reads: 0, ..*summary };
        let members = dead.functions.members.par_iter().with_min_len(16);
        let kept = members.map(|members| {
            let mut function = Function::new(members, &dead.bodies);
            function.see_what_is_kept(&dead.summaries);
            function.preserve(&dead.preserved);
            function.into_kept()
        });
        let nothing = Found {
            kept: kept.collect(),
            calls: calls(dead),
            meaning: Vec::new(),
            summaries: dead.summaries.iter().map(hoped).collect(),
            hands_back: Vec::new(),
            taken: Vec::new(),
            at_return: Vec::new(),
        };
        let mut found = Self { dead, found: nothing };
        let regcall = |members: &Vec<u32>| found.function(members).taken(&dead.code).may_be_regcall();
        let hands_back = dead.functions.members.par_iter().with_min_len(16).map(regcall).collect();
        found.found.hands_back = hands_back;
        found.look_before_calls(0);
        let passed = found.passed_by_module();
        if passed != 0 {
            found.look_before_calls(passed);
        }
        found.find_needs(&callers::of(dead, relocations), passed);
        found
    }

    pub(crate) fn into_found(self) -> Found {
        self.found
    }

    /// Live before what stands at a block's end, given what is live behind it.
    fn before_last(
        &self,
        function: &Function<'_>,
        (member, index): (usize, usize),
        last: Last,
        after: Set,
        way: &Way,
    ) -> Set {
        let call = &self.found.calls[function.members[member] as usize][index];
        let number = function.base(member) + index;
        match last {
            Last::Foreign | Last::Pointer => call.passed | after & (!CLOBBERED | function.kept(number)),
            Last::DeadEnd => call.passed,
            last => function.before_last(number, last, after, way, &self.found.summaries),
        }
    }

    /// A function, and what its calls are seen to keep.
    fn function(&self, members: &'a [u32]) -> Function<'a> {
        let mut function = Function::new(members, &self.dead.bodies);
        let number = members.first().map_or(0, |&body| self.dead.functions.of_body[body as usize]);
        function.keep_as_found(&self.found.kept[number as usize], &self.dead.preserved);
        function
    }

    /// The same, with all that its callers may want back.
    fn called_function(&self, at: usize) -> Function<'a> {
        let mut function = self.function(&self.dead.functions.members[at]);
        if self.found.taken[at] {
            function.need_what_is_preserved();
        }
        function
    }

    /// Live before each block.
    fn solve(&self, function: &Function<'_>, way: &Way, meaning: &[Set]) -> Vec<Set> {
        let mut live = vec![0; function.count()];
        let mut changed = true;
        while changed {
            changed = false;
            for member in (0..function.members.len()).rev() {
                let base = function.base(member);
                let way = &function.way(member, way);
                for (index, block) in function.body(member).blocks.iter().enumerate().rev() {
                    let after = function.after(member, index, &live, way, &self.found.summaries);
                    let last = self.before_last(function, (member, index), block.last, after, way);
                    let pad = function.at_pad(member, block.pad, &live, way);
                    let before = (block.uses | last & !block.kills | pad) & meaning[base + index];
                    changed |= function.grow(base + index, before, &mut live);
                }
            }
        }
        live
    }

    /// What every function may read that is entered at its start: callees first, until nothing is
    /// added.
    fn find_reads(&mut self) {
        let functions = &self.dead.functions;
        let mut changed = vec![false; functions.members.len()];
        for level in functions.levels() {
            let mut waiting = level.clone();
            while !waiting.is_empty() {
                let reads = |&at: &u32| {
                    let members = &functions.members[at as usize];
                    let function = self.function(members);
                    let live = self.solve(&function, &Way::READING, &self.found.meaning[at as usize]);
                    let of = |member: usize| match function.body(member).block_at(0) {
                        Some(_) => live[function.base(member)] & !RED_ZONE,
                        None => ALL & !RED_ZONE,
                    };
                    (at, (0..members.len()).map(of).collect::<Vec<Set>>())
                };
                let found: Vec<(u32, Vec<Set>)> = waiting.par_iter().with_min_len(16).map(reads).collect();
                for (function, found) in found {
                    for (&body, reads) in functions.members[function as usize].iter().zip(found) {
                        changed[function as usize] |= self.found.summaries[body as usize].reads != reads;
                        self.found.summaries[body as usize].reads = reads;
                    }
                }
                let meets = |function: &u32| {
                    functions.calls[*function as usize].iter().any(|&callee| changed[callee as usize])
                };
                waiting = level.iter().copied().filter(meets).collect();
                for &function in &level {
                    changed[function as usize] = false;
                }
            }
        }
    }

    /// What is live at every function's returns: from callers to callees, until nothing is added.
    fn find_needs(&mut self, callers: &[callers::Callers], passed: Set) {
        let functions = &self.dead.functions;
        let odd = self.odd();
        let returned = self.returned();
        // Nobody calls a part: it is entered in the midst of a frame.
        let is_taken = |&body: &u32| callers[body as usize].taken && !self.dead.code.is_part(body);
        let taken: Vec<bool> = functions.members.iter().map(|members| members.iter().any(is_taken)).collect();
        let first = |((members, &returned), &taken): ((&Vec<u32>, &Set), &bool)| {
            let known = if taken { RESULTS | odd | passed | returned } else { 0 };
            let unseen = members.iter().any(|&body| callers[body as usize].unseen);
            (CALLEE_SAVED | known | if unseen { ALL } else { 0 }) & !RED_ZONE
        };
        self.found.at_return = functions.members.iter().zip(&returned).zip(&taken).map(first).collect();
        self.found.taken = taken;
        let mut waiting: Vec<u32> = (0..functions.members.len() as u32).collect();
        while !waiting.is_empty() {
            let found: Vec<(u32, Set)> = waiting
                .par_iter()
                .with_min_len(16)
                .flat_map_iter(|&function| self.needs_of(function as usize))
                .collect();
            waiting.clear();
            for (body, set) in found {
                let function = functions.of_body[body as usize];
                let known = &mut self.found.at_return[function as usize];
                if set & !*known != 0 {
                    *known |= set;
                    waiting.push(function);
                }
            }
            waiting.sort_unstable();
            waiting.dedup();
        }
    }

    /// What a function has live behind its calls and where it goes to others in place of returning,
    /// by body.
    fn needs_of(&self, at: usize) -> Vec<(u32, Set)> {
        let members = &self.dead.functions.members[at];
        let bodies = members.iter().map(|&body| &self.dead.bodies[body as usize]);
        if bodies.clone().all(|body| {
            body.outs.is_empty() && !body.blocks.iter().any(|block| matches!(block.last, Last::Call(_)))
        }) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let function = self.called_function(at);
        let way = Way::keeping(self.found.at_return[at]);
        for (member, body) in bodies.enumerate() {
            let at_return = function.way(member, &way).at_return;
            let to = |out: &Out| if let Out::Tail(to) = *out { Some((to, at_return)) } else { None };
            found.extend(body.outs.iter().filter_map(to));
        }
        let live = self.solve(&function, &way, &self.found.meaning[at]);
        for member in 0..members.len() {
            for (index, block) in function.body(member).blocks.iter().enumerate() {
                if let Last::Call(callee) = block.last {
                    let way = function.way(member, &way);
                    let after = function.after(member, index, &live, &way, &self.found.summaries) & !RED_ZONE;
                    found.push((callee, after));
                }
            }
        }
        found
    }

    /// What code reads right behind calls by pointers, or of what jumps to pointers, though the ABI
    /// leaves nothing there. Further on it may well: compilers merge ways on which a register holds
    /// something with others, and never look.
    fn odd(&self) -> Set {
        let dead = self.dead;
        let jumps = self.jumps_to_pointers();
        let of_body = |own: usize| {
            let body = &dead.bodies[own];
            let mut factory = InstructionInfoFactory::new();
            let mut odd = 0;
            for (index, block) in body.blocks.iter().enumerate().filter(|(_, block)| block.next) {
                let by_pointer = match block.last {
                    Last::Call(other) => jumps[other as usize],
                    _ => self.found.calls[own][index].by_pointer,
                };
                if !by_pointer {
                    continue;
                }
                let (mut written, behind) = (0, &body.blocks[index + 1]);
                for insn in decoded(dead, own, behind.at, behind.end_at) {
                    let effect = effects::of(&insn, &mut factory);
                    // What is pushed may be anything, to reserve space.
                    let tells_nothing = effect.reads == ALL || insn.mnemonic() == Mnemonic::Push;
                    odd |= if tells_nothing { 0 } else { effect.reads & !written };
                    written |= effect.writes;
                }
            }
            odd & ODD
        };
        (0..dead.bodies.len()).into_par_iter().with_min_len(64).map(of_body).reduce(|| 0, |a, b| a | b)
    }

    /// For each body, whether it, or what it goes to in place of returning, may leave for where
    /// nobody knows.
    fn jumps_to_pointers(&self) -> Vec<bool> {
        let leaves = |own: usize| {
            let body = &self.dead.bodies[own];
            body.blocks.iter().any(|block| {
                body.outs[block.outs.0 as usize..block.outs.1 as usize].contains(&Out::Anywhere)
                    && decoded(self.dead, own, block.last_at, block.end_at).decode().flow_control()
                        == FlowControl::IndirectBranch
            })
        };
        let mut jumps: Vec<bool> = (0..self.dead.bodies.len()).map(leaves).collect();
        loop {
            let more: Vec<usize> = (0..jumps.len())
                .filter(|&body| {
                    let to = |out: &Out| matches!(out, Out::Tail(to) if jumps[*to as usize]);
                    !jumps[body] && self.dead.bodies[body].outs.iter().any(to)
                })
                .collect();
            if more.is_empty() {
                return jumps;
            }
            for body in more {
                jumps[body] = true;
            }
        }
    }

    /// Tells for each unit of a function (by its number) what is live before each instruction.
    pub(crate) fn live(&self, at: usize, buffers: &mut Buffers, mut tell: impl FnMut(u32, &[Item], &[Set])) {
        let members = &self.dead.functions.members[at];
        let function = self.called_function(at);
        let way = Way::keeping(self.found.at_return[at]);
        let meaning = &self.found.meaning[at];
        let live = self.solve(&function, &way, meaning);
        let (mut before, mut useful) = (Vec::new(), Vec::new());
        for (member, &body) in members.iter().enumerate() {
            if body as usize >= self.dead.code.mapping.units.len() {
                continue;
            }
            self.dead.code.read(body, &[], buffers);
            before.clear();
            before.resize(buffers.items.len(), ALL);
            let way = function.way(member, &way);
            for (index, block) in function.body(member).blocks.iter().enumerate() {
                let range = block.first as usize..block.end as usize;
                useful.clear();
                let mut state = meaning[function.base(member) + index];
                for step in &buffers.steps[range.clone()] {
                    useful.push(state);
                    state |= step.effect.writes;
                }
                let pad = function.at_pad(member, block.pad, &live, &way);
                let after = function.after(member, index, &live, &way, &self.found.summaries);
                let mut now = self.before_last(&function, (member, index), block.last, after, &way);
                for (at, useful) in range.zip(&useful).rev() {
                    let step = &buffers.steps[at];
                    now = step.effect.reads | now & !step.effect.kills;
                    before[at] = (now | pad) & useful | RESERVED | step.unwinding;
                }
            }
            tell(body, &buffers.items, &before);
        }
    }
}

/// What stands between two offsets of a body.
fn decoded<'d>(dead: &Liveness<'_, 'd>, own: usize, from: u32, to: u32) -> Decoder<'d> {
    let address = dead.code.start(own as u32) + u64::from(from);
    let code = dead.code.original.bytes_at(Svma(address), (to - from) as usize).unwrap_or(&[]);
    Decoder::with_ip(64, code, address, DecoderOptions::NONE)
}

/// For each block of each body, the call at its end, as far as it is one by the ABI.
fn calls(dead: &Liveness<'_, '_>) -> Vec<Vec<Call>> {
    let one = |(own, body): (usize, &Body)| {
        let call = |block: &Block| {
            if !matches!(block.last, Last::Foreign | Last::Pointer | Last::DeadEnd) {
                return Call { passed: ARGUMENTS, left: RESULTS, by_pointer: false };
            }
            let insn = decoded(dead, own, block.last_at, block.end_at).decode();
            let to = match insn.op0_kind() {
                OpKind::NearBranch64 => Some(insn.near_branch64()),
                OpKind::Memory if insn.is_ip_rel_memory_operand() => Some(insn.ip_rel_memory_address()),
                _ => None,
            };
            let name = to.and_then(|to| dead.code.linkage.name_behind(to));
            let Convention { passed, left } = name.map_or(Convention::ANY, Convention::of);
            Call { passed, left, by_pointer: name.is_none() && block.last != Last::DeadEnd }
        };
        body.blocks.iter().map(call).collect()
    };
    dead.bodies.par_iter().enumerate().with_min_len(64).map(one).collect()
}
