//! Harvest twins (rules R13 to R18): what is inserted into primaries and scavengers, and that
//! guests stay aboard only in code that is fit for it. `docs/harvest-abi.md` is what this goes by;
//! offsets come from `runtime-abi`.
//!
//! [`ops`] is the closed list of inserted instructions, [`run`] runs a piece of them on all ways,
//! over [`state`]; [`aboard`] judges the program's own instructions, [`bounds`] the graph,
//! [`early`] says what may not yield at all. To add a form of inserted code: nothing, if its
//! instructions are on the list and do as the rules say.

mod aboard;
mod accesses;
mod bounds;
mod early;
mod hoisted;
pub(crate) mod interprocedural;
mod label_jumps;
mod ops;
mod rows;
mod run;
mod state;
mod sunk;

use crate::Context;
use crate::code::claims::Claim;
use crate::code::copy;
use crate::container::mapping::{Mapping, Table, Unit};
use crate::container::read::Reader;
use crate::container::stream::Item;
use crate::decode::is_relative_to;
use crate::decode::skipped_lock::to_the_prefix;
use crate::liveness::set::{ALL, Set};
use crate::liveness::{self, Liveness};
use crate::rule::Rule;
use bounds::{Graph, Node};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use interprocedural::Interprocedural;
use label_jumps::ComputedJump;
use ops::General;
use rayon::prelude::*;
use run::{Code, Done};
use state::{EarlierSaves, State, Terms};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where each unit's twin is entered by others, as (unit, offset in the original), ascending; its
/// start aside. Labels are such places: a runtime goes on there.
pub(crate) fn entries(mapping: &Mapping<'_>, claims: &[Claim]) -> Vec<(u32, u32)> {
    let entry = |of: u64| {
        let unit = mapping.index_at(of)?;
        Some((unit as u32, (of - mapping.units[unit].start) as u32))
    };
    let claimed = claims.par_iter().map(|claim| claim.of);
    let mut entries: Vec<(u32, u32)> =
        claimed.chain(mapping.labels.par_iter().copied()).filter_map(entry).collect();
    entries.par_sort_unstable();
    entries.dedup();
    entries
}

/// Buffers for one function at a time.
#[derive(Default)]
struct Buffers {
    instructions: Vec<Instruction>,
    pieces: run::Buffers,
    graph: Graph,
    /// What is known before each instruction's piece; empty until it is asked for.
    known: Vec<EarlierSaves>,
    /// Of the function so far: where its first yield is, and where state is used that no yield
    /// switches.
    yields: Option<u64>,
    unswitched: Option<u64>,
    /// Whether a yield of the unit has a note.
    notes: bool,
}

/// A unit while it is looked at.
struct Work<'w, 'd> {
    context: &'w Context<'d>,
    terms: &'w Terms,
    unit: &'w Unit<'d>,
    tables: &'w [Table],
    items: &'w [Item],
    dead: &'w Liveness<'w, 'd>,
    is_early: bool,
    found: &'w YieldTotals,
}

/// What is counted over all units.
#[derive(Default)]
struct YieldTotals {
    /// Yields that are listed.
    yields: AtomicUsize,
    /// Pieces that could not be run to their end, so that nobody knows what yields they have. Each
    /// of them is told of.
    cut_short: AtomicUsize,
}

impl Context<'_> {
    /// R13 to R18.
    pub(crate) fn harvest(
        &self,
        dead: &Liveness<'_, '_>,
        entries: &[(u32, u32)],
        earlier: Option<interprocedural::Found>,
    ) -> interprocedural::Found {
        let scavenger = self.note.goes_aboard();
        let text = self.rewritten.loads().iter().rfind(|load| load.is_executable());
        let terms = Terms {
            scavenger,
            quantum: self.note.quantum,
            vector_bytes: self.note.vector_bytes,
            text: text.map_or((0, 0), |text| (text.address, text.memory_size)),
        };
        // A scavenger's thread has an area before its first instruction.
        let early = if scavenger {
            vec![false; self.mapping.units.len()]
        } else {
            early::units(&self.original, &self.mapping, &self.relocations)
        };
        let interprocedural = Interprocedural::of(dead, &self.relocations, earlier);
        let found = YieldTotals::default();
        (0..dead.functions().len()).into_par_iter().with_min_len(16).for_each_init(
            || (liveness::Buffers::default(), Buffers::default()),
            |(living, buffers), function| {
                (buffers.yields, buffers.unswitched) = (None, None);
                interprocedural.live(function, living, |index, items, live| {
                    let unit = &self.mapping.units[index as usize];
                    let tables = &self.mapping.tables[unit.tables.0 as usize..unit.tables.1 as usize];
                    let is_early = early[index as usize];
                    let work = Work {
                        context: self,
                        terms: &terms,
                        unit,
                        tables,
                        items,
                        dead,
                        is_early,
                        found: &found,
                    };
                    let first = entries.partition_point(|entry| entry.0 < index);
                    let end = entries.partition_point(|entry| entry.0 <= index);
                    work.look(live, &entries[first..end], buffers);
                });
                if let (Some(yields), Some(at)) = (buffers.yields, buffers.unswitched) {
                    let what =
                        format!("a yield in a function with state that a yield does not save, at {at:#x}");
                    self.findings.at(Rule::Yields, yields, what);
                }
            },
        );
        let all_ran = found.cut_short.into_inner() == 0;
        if all_ran && found.yields.into_inner() != self.mapping.yields.len() {
            let first = self.mapping.yields.rows().first().map_or(0, |row| row.place);
            self.findings.at(Rule::Mapping, first, "a yield is listed where there is none, or twice");
        }
        interprocedural.into_found()
    }
}

impl Work<'_, '_> {
    fn look(&self, live: &[Set], entries: &[(u32, u32)], buffers: &mut Buffers) {
        self.decode(buffers);
        buffers.graph.clear();
        buffers.known.clear();
        buffers.notes = false;
        let mut done = Done::default();
        for (index, item) in self.items.iter().enumerate() {
            done.again();
            let insn = buffers.instructions[index];
            if aboard::uses_unswitched_state(&insn) {
                buffers.unswitched.get_or_insert(insn.ip());
            }
            if item.inserted > 0 {
                let live = live.get(index).copied().unwrap_or(ALL);
                self.piece(item, live, index, entries, buffers, &mut done);
            }
            if self.terms.scavenger {
                self.aboard(item, &insn, done.state.as_ref(), buffers);
                self.node(index, &insn, &done, buffers);
            }
        }
        if buffers.notes {
            self.left(live, entries, buffers);
        }
        self.labels(buffers);
        if self.terms.scavenger {
            buffers.graph.entries.extend(self.entered(entries));
            buffers.graph.check(self.terms.quantum, |node, what| {
                let item = &self.items[node as usize];
                self.wrong(Rule::Bounds, item, what);
            });
        }
    }

    /// An indirect jump leads from label to label, maybe in a circle that no graph shows: so each
    /// of them has a yield of its own.
    fn labels(&self, buffers: &Buffers) {
        for label in self.context.mapping.labels_of(self.unit) {
            let Some(index) = self.index(*label) else {
                self.context.findings.at(Rule::Mapping, *label, "a label that is no instruction of a twin");
                continue;
            };
            if self.terms.scavenger && !buffers.graph.nodes[index as usize].met {
                self.wrong(Rule::Bounds, &self.items[index as usize], "a label without a yield");
            }
        }
    }

    /// Where the unit is entered.
    fn entered(&self, entries: &[(u32, u32)]) -> impl Iterator<Item = u32> {
        let all = [0].into_iter().chain(entries.iter().map(|entry| entry.1));
        all.filter_map(|at| self.index(self.unit.start + u64::from(at)))
    }

    /// What is known before the piece of an instruction.
    fn known(&self, index: usize, entries: &[(u32, u32)], buffers: &mut Buffers) -> EarlierSaves {
        if buffers.known.is_empty() {
            let kept = std::mem::take(&mut buffers.graph);
            let mut factory = InstructionInfoFactory::new();
            let mut done = Done::default();
            for at in 0..self.items.len() {
                let insn = buffers.instructions[at];
                self.node(at, &insn, &done, buffers);
            }
            let ways = std::mem::replace(&mut buffers.graph, kept);
            buffers.known = hoisted::before(&ways, self.entered(entries), |node, known| {
                let item = &self.items[node as usize];
                let kept = hoisted::kept_by(&buffers.instructions[node as usize], &mut factory);
                if item.inserted == 0 {
                    return known.of(kept);
                }
                // Nothing comes behind a jump: what is live there does not count here.
                let code = self.code(item, &buffers.instructions[node as usize], ALL);
                let run = self.run(&code, &mut buffers.pieces, &mut done, known);
                let state = done.state.as_ref().filter(|_| run.is_ok());
                state.map_or(EarlierSaves::NOTHING, |state| known.behind(state, &done).of(kept))
            });
        }
        buffers.known[index]
    }

    /// Runs a piece with what is known before it, or the first part of that with which it can be
    /// run.
    fn run(
        &self,
        code: &Code<'_>,
        pieces: &mut run::Buffers,
        done: &mut Done,
        known: EarlierSaves,
    ) -> Result<(), (u64, &'static str)> {
        let mut first = Ok(());
        for part in known.parts() {
            done.again();
            match run::run(code, self.terms, pieces, done, part) {
                Ok(()) => return Ok(()),
                Err(wrong) => first = first.and(Err(wrong)),
            }
        }
        first
    }

    /// What is inserted before an instruction, where so much may be live.
    fn code(&self, item: &Item, insn: &Instruction, live: Set) -> Code<'_> {
        let part = |(begin, size): (u32, u32)| {
            let bytes = &self.unit.copy[begin as usize..(begin + size) as usize];
            (bytes, self.unit.twin + u64::from(begin))
        };
        let parts = [part((item.place, item.inserted)), part(item.cold)];
        let (bytes, begin) = parts[0];
        let relays = self.context.mapping.relays_of(begin, begin + bytes.len() as u64);
        Code { parts, relays, jump: self.computed_jump(insn, live) }
    }

    /// An instruction, if it is a jump that may lead to a label by the unit's table.
    fn computed_jump(&self, insn: &Instruction, live: Set) -> Option<ComputedJump> {
        let computed = insn.code() == iced_x86::Code::Jmp_rm64
            && !insn.is_ip_rel_memory_operand()
            && !self.tables.iter().any(|table| table.jump == insn.ip());
        let table = self.context.mapping.label_table(self.unit).filter(|_| computed)?;
        let is_label = self.context.mapping.labels_of(self.unit).binary_search(&insn.ip()).is_ok();
        let unit = (self.unit.start, self.unit.code.len() as u64);
        Some(ComputedJump { insn: *insn, unit, table, live, is_label })
    }

    fn wrong(&self, rule: Rule, item: &Item, what: impl Into<String>) {
        self.wrong_at(rule, item, self.unit.twin + u64::from(item.place), what);
    }
    fn wrong_at(&self, rule: Rule, item: &Item, address: u64, what: impl Into<String>) {
        self.context.findings.instead_of(rule, self.unit.start + u64::from(item.at), address, what);
    }

    /// The item of an address in the original.
    fn index(&self, address: u64) -> Option<u32> {
        let at = address.checked_sub(self.unit.start)?;
        self.items.binary_search_by_key(&at, |item| u64::from(item.at)).ok().map(|index| index as u32)
    }

    fn decode(&self, buffers: &mut Buffers) {
        let unit = self.unit;
        buffers.instructions.clear();
        let mut decoder = Decoder::with_ip(64, unit.code, unit.start, DecoderOptions::NONE);
        for item in self.items {
            if decoder.position() != item.at as usize {
                let _ = decoder.set_position(item.at as usize);
                decoder.set_ip(unit.start + u64::from(item.at));
            }
            let mut insn = decoder.decode();
            to_the_prefix(&mut insn, &unit.code[item.end() as usize..]);
            buffers.instructions.push(insn);
        }
    }

    /// R13 for the code before an instruction, R14 and R15 for what yields in it.
    fn piece(
        &self,
        item: &Item,
        live: Set,
        index: usize,
        entries: &[(u32, u32)],
        buffers: &mut Buffers,
        done: &mut Done,
    ) {
        let code = self.code(item, &buffers.instructions[index], live);
        let lost = |done: &Done| {
            done.state.as_ref().map_or(0, |state| state.lost(live, self.context.note.vector_bytes))
        };
        let first = run::run(&code, self.terms, &mut buffers.pieces, done, EarlierSaves::NOTHING);
        if first.is_err() || lost(done) != 0 {
            // It may be stored already, or found already.
            let known = self.known(index, entries, buffers);
            if let Err((at, what)) = self.run(&code, &mut buffers.pieces, done, known) {
                self.found.cut_short.fetch_add(1, Ordering::Relaxed);
                return self.wrong_at(Rule::Yields, item, at, what);
            }
        }
        buffers.notes |= done.note.is_some();
        // What is left in its slot is R21's.
        let left = done.note.map_or(0, |note| Set::from(note.registers));
        let lost = lost(done) & !left & !self.borrowed(item, done);
        let Some(state) = &done.state else {
            self.found.cut_short.fetch_add(1, Ordering::Relaxed);
            return self.wrong(Rule::Yields, item, "inserted code that never reaches its end");
        };
        if lost != 0 {
            self.wrong(Rule::Yields, item, State::told(lost));
        }
        if self.terms.scavenger && !state.facts.budget {
            self.wrong(Rule::Yields, item, "continues without setting the budget");
        }
        let most = if self.terms.scavenger { 2 } else { 1 };
        if done.yields > most {
            self.wrong(Rule::Yields, item, "more yields than one place may have");
        }
        if done.yields > 0 {
            buffers.yields.get_or_insert(self.unit.twin + u64::from(item.place));
            if self.is_early {
                self.wrong(Rule::Early, item, "a yield where there may be no area yet");
            }
        }
        if done.jumps_to_labels && self.is_early {
            self.wrong(Rule::Early, item, "a scratch word where there may be no area yet");
        }
        self.rows(item, index, buffers, done);
        let fetches = !done.prefetches.is_empty();
        if fetches != (done.yields > 0) && (fetches || !self.terms.scavenger) {
            self.wrong(Rule::Prefetches, item, "a prefetch without a yield, or a yield without a prefetch");
        }
    }

    /// A register that holds an address in thread-local storage for one instruction, and is loaded
    /// again by the end of its copy. That this is right, R17 says ([`aboard::is_local`]).
    fn borrowed(&self, item: &Item, done: &Done) -> Set {
        if !self.terms.scavenger {
            return 0;
        }
        let copy = &self.unit.copy[item.copy() as usize..item.copy_end() as usize];
        let again = aboard::loaded_again(copy, self.unit.twin + u64::from(item.copy()));
        let kept = |&(register, _): &(General, usize)| {
            done.state.is_some_and(|state| state.scratch[1] == state::Value::Program(register))
        };
        again.filter(kept).map_or(0, |(register, _)| 1 << register)
    }

    /// R16 and R17: what a guest may run, and what sends it home first.
    fn aboard(&self, item: &Item, insn: &Instruction, state: Option<&State>, buffers: &mut Buffers) {
        let home = state.is_some_and(|state| state.facts.home);
        let aboard = |what: &str| self.wrong(Rule::Aboard, item, what);
        if item.escape {
            self.escape(item, buffers);
        }
        let original = &self.unit.code[item.at as usize..item.end() as usize];
        let copy = &self.unit.copy[item.copy() as usize..item.copy_end() as usize];
        if is_relative_to(insn, Register::FS) {
            let address = self.unit.twin + u64::from(item.copy());
            let local = || state.is_some_and(|state| aboard::is_local(insn, copy, address, state));
            let untouched = home && original == copy;
            if !untouched && !local() {
                self.wrong(
                    Rule::ThreadLocal,
                    item,
                    "accesses thread-local storage unlike its original, or through another thread's FS base",
                );
            }
        }
        if home {
            return;
        }
        if aboard::acts_on_the_thread(insn) {
            return aboard("acts on the kernel thread, and may run aboard");
        }
        match insn.flow_control() {
            FlowControl::Return
                if insn.mnemonic() == Mnemonic::Ret && state.is_some_and(|state| state.facts.returns) => {}
            FlowControl::Return => aboard("returns to an unchecked address while aboard"),
            FlowControl::IndirectCall => aboard("calls an unchecked address while aboard"),
            FlowControl::IndirectBranch if self.leads_to_twins(insn) => {}
            FlowControl::IndirectBranch => aboard("jumps to an unchecked address while aboard"),
            _ if insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64 => {
                let end = self.unit.twin + u64::from(item.copy_end());
                let to = copy::branch_target(original, copy, end);
                if to.is_none_or(|to| self.context.mapping.at_twin(to).is_none()) {
                    aboard("leaves the twins while aboard");
                }
            }
            FlowControl::Call => aboard("acts on the kernel thread, and may run aboard"),
            _ => {}
        }
    }

    /// R16 for escapes: home first, and nothing changes.
    fn escape(&self, item: &Item, buffers: &mut Buffers) {
        let (from, to) = (item.copy_end() as usize, item.copy_end() as usize + usize::from(self.unit.lead));
        let mut done = Done::default();
        let lead = (&self.unit.copy[from..to], self.unit.twin + from as u64);
        let code = Code { parts: [lead, (&[], lead.1)], relays: &[], jump: None };
        let nothing = EarlierSaves::NOTHING;
        if let Err((at, what)) = run::run(&code, self.terms, &mut buffers.pieces, &mut done, nothing) {
            return self.wrong_at(Rule::Aboard, item, at, what);
        }
        let lost = done.state.map_or(ALL, |state| state.lost(ALL, self.context.note.vector_bytes));
        if lost != 0 {
            self.wrong(Rule::Aboard, item, State::told(lost));
        }
        if !done.state.is_some_and(|state| state.facts.home) || done.yields > 0 {
            self.wrong(Rule::Aboard, item, "escapes aboard");
        }
    }

    /// The tables of an indirect jump.
    fn tables_of(&self, insn: &Instruction) -> impl Iterator<Item = &Table> {
        let at = insn.ip();
        self.tables.iter().filter(move |table| table.jump == at)
    }

    /// Whether every entry of an indirect jump's table leads into a twin.
    fn leads_to_twins(&self, insn: &Instruction) -> bool {
        let mut tables = self.tables_of(insn).peekable();
        tables.peek().is_some()
            && tables.all(|table| {
                let bytes = self.context.rewritten.bytes_at(units::Svma(table.twin), table.size() as usize);
                bytes.is_some_and(|bytes| {
                    targets(bytes, table).all(|to| self.context.mapping.at_twin(to).is_some())
                })
            })
    }

    /// R18: the instruction in the graph.
    fn node(&self, index: usize, insn: &Instruction, done: &Done, buffers: &mut Buffers) {
        let graph = &mut buffers.graph;
        let begin = graph.targets.len() as u32;
        let follows = self.items.get(index + 1).is_some_and(|next| next.at == self.items[index].end());
        let flow = insn.flow_control();
        let ends = matches!(
            flow,
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        );
        let direct = insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64;
        let comes_back = flow != FlowControl::Call || !direct || self.dead.comes_back(insn.near_branch64());
        let mut node = Node {
            met: done.state.is_some_and(|state| state.facts.met),
            charge: done.charge,
            out: false,
            next: follows && !ends && comes_back,
            targets: (begin, begin),
        };
        let mut to = |address: u64, call: bool| match self.index(address) {
            Some(to) if call => {
                graph.entries.push(to);
                node.out = true;
            }
            Some(to) => graph.targets.push(to),
            None => node.out |= self.context.mapping.at(address).is_some(),
        };
        if direct {
            to(insn.near_branch64(), flow == FlowControl::Call);
        } else if flow == FlowControl::IndirectBranch {
            for table in self.tables_of(insn) {
                let bytes =
                    self.context.original.bytes_at(units::Svma(table.original), table.size() as usize);
                targets(bytes.unwrap_or(&[]), table).for_each(|address| to(address, false));
            }
        }
        node.targets.1 = graph.targets.len() as u32;
        graph.nodes.push(node);
    }
}

/// Where the entries of a table lead.
fn targets<'t>(bytes: &'t [u8], table: &'t Table) -> impl Iterator<Item = u64> + 't {
    bytes.chunks_exact((table.entry as usize).max(1)).map(|entry| {
        let value = Reader::new(entry, 0).signed(entry.len()).unwrap_or(0);
        table.base.wrapping_add_signed(value)
    })
}
