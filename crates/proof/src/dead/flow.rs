//! Liveness of one unit: backwards from what leaves it, with what other units need.

use super::Module;
use super::effects::{self, Effect};
use super::set::{ALL, ARGUMENTS, CALLEE_SAVED, RED_ZONE, RESULTS, STATUS_FLAGS, Set};
use crate::mapping::{Mapping, Unit};
use crate::stream::Item;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind, Register};
use image::Image;

/// What callers need to know of a unit that is entered at its start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Live at its start.
    pub(crate) reads: Set,
    /// Written on every way to every return.
    pub(crate) writes: Set,
}

impl Summary {
    /// What the rounds begin with.
    pub(crate) const HOPED: Self = Self { reads: 0, writes: ALL };

    pub(crate) fn and(self, other: Self) -> Self {
        Self { reads: self.reads | other.reads, writes: self.writes & other.writes }
    }
}

impl Default for Summary {
    fn default() -> Self {
        Self { reads: ALL, writes: 0 }
    }
}

/// What a unit is looked at with.
pub(crate) struct Around<'c, 'd> {
    pub(crate) original: &'c Image<'d>,
    pub(crate) mapping: &'c Mapping<'d>,
    pub(crate) module: &'c Module,
}

/// Where control goes behind an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exit {
    None,
    Return,
    /// To where everything may be needed.
    Anywhere,
    /// To the start of another unit.
    Unit(u32),
}

struct Step {
    effect: Effect,
    next: bool,
    target: Option<u32>,
    /// Of jump tables.
    targets: Vec<u32>,
    exit: Exit,
    call: bool,
    /// The unit that is called or gone to.
    other: Option<u32>,
    /// All units that control may go to but by calls.
    leaves: Vec<u32>,
}

/// Room for one unit at a time.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) items: Vec<Item>,
    steps: Vec<Step>,
    /// Before each item.
    pub(crate) live: Vec<Set>,
    written: Vec<Set>,
    pub(crate) reads_flags_behind_call: bool,
    /// What this unit needs of others when those return.
    pub(crate) keeps: Vec<(u32, Set)>,
    /// The units whose summaries were asked for.
    pub(crate) needs: Vec<u32>,
}

impl Room {
    /// Computes what is live before each of `items`, and the unit's summary.
    pub(crate) fn follow(&mut self, at: usize, around: &Around<'_, '_>) -> Summary {
        let unit = &around.mapping.units[at];
        self.read(unit, around);
        let writes = self.forwards(around.module);
        self.backwards(around.module, at);
        self.keep(around, at);
        let reads = if unit.begins_with_item() { self.live.first().copied().unwrap_or(ALL) } else { ALL };
        Summary { reads, writes }
    }

    fn read(&mut self, unit: &Unit<'_>, around: &Around<'_, '_>) {
        self.steps.clear();
        self.needs.clear();
        let mut factory = InstructionInfoFactory::new();
        let mut insn = Instruction::default();
        let mut red_zone = false;
        let mut copies_stack = false;
        let mut calls = false;
        let mut behind_call = false;
        self.reads_flags_behind_call = false;
        for (index, item) in self.items.iter().enumerate() {
            let bytes = &unit.code[item.at as usize..item.end() as usize];
            Decoder::with_ip(64, bytes, unit.start + u64::from(item.at), DecoderOptions::NONE)
                .decode_out(&mut insn);
            let adjacent = self.items.get(index + 1).is_some_and(|next| next.at == item.end());
            let step = around.step(unit, &insn, adjacent, &self.items, &mut factory);
            red_zone |= insn.memory_base() == Register::RSP
                && ((insn.memory_displacement64() as i64) < 0 || insn.memory_index() != Register::None);
            copies_stack |= insn.op_count() > 1
                && insn.op1_kind() == OpKind::Register
                && insn.op1_register() == Register::RSP
                || insn.mnemonic() == iced_x86::Mnemonic::Lea && insn.memory_base() == Register::RSP;
            calls |= step.call;
            self.reads_flags_behind_call |=
                behind_call && step.effect.reads & STATUS_FLAGS != 0 && !step.call;
            let kept = behind_call && step.effect.kills & STATUS_FLAGS == 0;
            behind_call = step.next && (step.call || kept);
            self.needs.extend(step.other);
            self.steps.push(step);
        }
        // A function that calls nothing may reach below the stack pointer by any copy of it.
        if red_zone || copies_stack && !calls {
            for step in &mut self.steps {
                step.effect.reads |= RED_ZONE;
            }
        }
    }

    /// What is written on every way from the start to the returns.
    fn forwards(&mut self, module: &Module) -> Set {
        let count = self.steps.len();
        self.written.clear();
        self.written.resize(count, ALL);
        // Whatever may be entered by ways not seen has had nothing written: the start, and all behind a gap.
        let mut entered = vec![false; count];
        let mut waiting: Vec<u32> = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let next = step.next.then_some(index as u32 + 1);
            for &to in next.iter().chain(&step.target).chain(&step.targets) {
                entered[to as usize] = true;
            }
        }
        for index in (0..count).rev().filter(|&index| index == 0 || !entered[index]) {
            self.written[index] = 0;
            waiting.push(index as u32);
        }
        let mut result = ALL;
        while let Some(index) = waiting.pop() {
            let step = &self.steps[index as usize];
            let after = self.written[index as usize] | step.effect.writes & !RED_ZONE;
            let next = step.next.then_some(index + 1);
            for &to in next.iter().chain(&step.target).chain(&step.targets) {
                if self.written[to as usize] & !after != 0 {
                    self.written[to as usize] &= after;
                    waiting.push(to);
                }
            }
        }
        let mut returns = false;
        for (step, written) in self.steps.iter().zip(&self.written) {
            match step.exit {
                Exit::None => {}
                Exit::Return => {
                    returns = true;
                    result &= written;
                }
                Exit::Unit(unit) => {
                    returns = true;
                    result &= written | module.summaries[unit as usize].writes;
                }
                Exit::Anywhere => result = 0,
            }
        }
        // One that never returns leaves nothing to be said about what it leaves.
        if returns { result } else { ALL & !RED_ZONE }
    }

    /// What other units must leave alone for this one's sake: those that it calls, what it needs behind the call; those
    /// that it leaves for, what its own callers need.
    fn keep(&mut self, around: &Around<'_, '_>, at: usize) {
        let own = around.module.kept[at];
        self.keeps.clear();
        for (index, step) in self.steps.iter().enumerate() {
            let after = if step.next { self.live.get(index + 1).copied().unwrap_or(ALL) } else { ALL };
            if let (true, Some(unit)) = (step.call, step.other) {
                self.keeps.push((unit, after));
            }
            self.keeps.extend(step.leaves.iter().map(|&unit| (unit, own)));
        }
        self.keeps.extend(around.module.lands[at].iter().map(|&unit| (unit, own)));
        self.keeps.retain(|&(unit, kept)| kept & !around.module.kept[unit as usize] != 0);
        self.keeps.sort_unstable();
        self.keeps.dedup();
    }

    fn backwards(&mut self, module: &Module, at: usize) {
        let catches = module.catches[at];
        let count = self.steps.len();
        self.live.clear();
        self.live.resize(count, 0);
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..count).rev() {
                let step = &self.steps[index];
                let mut after = match step.exit {
                    Exit::None => 0,
                    Exit::Anywhere => ALL,
                    Exit::Unit(unit) => module.summaries[unit as usize].reads | CALLEE_SAVED,
                    Exit::Return => {
                        let flags = if module.flags_return { 0 } else { STATUS_FLAGS };
                        let kept = module.kept[at] & !self.written[index] & !flags;
                        let carried = if module.flags_return { STATUS_FLAGS } else { 0 };
                        (CALLEE_SAVED | RESULTS | kept | carried) & !RED_ZONE
                    }
                };
                let next = step.next.then_some(index as u32 + 1);
                for &to in next.iter().chain(&step.target).chain(&step.targets) {
                    after |= self.live[to as usize];
                }
                if step.call && catches {
                    after |= CALLEE_SAVED;
                }
                let before = step.effect.reads | after & !step.effect.kills;
                if before != self.live[index] {
                    self.live[index] = before;
                    changed = true;
                }
            }
        }
    }
}

impl Around<'_, '_> {
    /// The unit that begins at this address.
    fn unit(&self, address: u64) -> Option<u32> {
        let found = self.mapping.index_at(address)?;
        let unit = &self.mapping.units[found];
        (unit.start == address && unit.begins_with_item()).then_some(found as u32)
    }
    /// Items that the jump table of a jump leads to; `None` without one, or if it leads elsewhere too.
    fn table(&self, unit: &Unit<'_>, jump: u64, items: &[Item]) -> Option<Vec<u32>> {
        let tables = &self.mapping.tables[unit.tables.0 as usize..unit.tables.1 as usize];
        let table = tables.iter().find(|table| table.jump == jump)?;
        let bytes = self.original.bytes_at(units::Svma(table.original), table.size() as usize)?;
        let entries = bytes.chunks_exact(table.entry as usize);
        let target = |entry: &[u8]| {
            let distance = crate::read::Reader::new(entry, 0).signed(entry.len())?;
            index(unit, items, table.base.wrapping_add_signed(distance))
        };
        let mut targets = entries.map(target).collect::<Option<Vec<u32>>>()?;
        targets.sort_unstable();
        targets.dedup();
        Some(targets)
    }

    /// The other units that the jump table of a jump leads to.
    fn far_entries(&self, unit: &Unit<'_>, jump: u64) -> Vec<u32> {
        let tables = &self.mapping.tables[unit.tables.0 as usize..unit.tables.1 as usize];
        let Some(table) = tables.iter().find(|table| table.jump == jump) else { return Vec::new() };
        let bytes = self.original.bytes_at(units::Svma(table.original), table.size() as usize).unwrap_or(&[]);
        let target = |entry: &[u8]| {
            let distance = crate::read::Reader::new(entry, 0).signed(entry.len())?;
            let to = table.base.wrapping_add_signed(distance);
            self.mapping.index_at(to).filter(|_| !unit.holds(to)).map(|index| index as u32)
        };
        let mut found: Vec<u32> = bytes.chunks_exact(table.entry as usize).filter_map(target).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn step(
        &self,
        unit: &Unit<'_>,
        insn: &Instruction,
        adjacent: bool,
        items: &[Item],
        factory: &mut InstructionInfoFactory,
    ) -> Step {
        let flow = insn.flow_control();
        let mut step = Step {
            effect: effects::of(insn, factory),
            next: adjacent,
            target: None,
            targets: Vec::new(),
            exit: if adjacent { Exit::None } else { Exit::Anywhere },
            call: false,
            other: None,
            leaves: Vec::new(),
        };
        match flow {
            FlowControl::Return => (step.next, step.exit) = (false, Exit::Return),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let to = insn.near_branch64();
                step.target = index(unit, items, to);
                let leaves = self.unit(to).map_or(Exit::Anywhere, Exit::Unit);
                if flow == FlowControl::UnconditionalBranch {
                    step.next = false;
                    step.exit = if step.target.is_some() { Exit::None } else { leaves };
                } else if step.target.is_none() && step.exit == Exit::None {
                    step.exit = leaves;
                }
            }
            FlowControl::IndirectBranch => {
                step.next = false;
                match self.table(unit, insn.ip(), items) {
                    Some(targets) => (step.targets, step.exit) = (targets, Exit::None),
                    None => step.exit = Exit::Anywhere,
                }
            }
            FlowControl::Call if insn.op0_kind() == OpKind::NearBranch64 => {
                step.call = true;
                let to = insn.near_branch64();
                if self.module.stubs.iter().any(|&(start, end)| (start..end).contains(&to)) {
                    step.effect = convention(0);
                } else {
                    step.other = self.unit(to);
                    let summary =
                        step.other.map_or(Summary::default(), |at| self.module.summaries[at as usize]);
                    step.effect = Effect {
                        reads: summary.reads,
                        kills: summary.writes & !(CALLEE_SAVED | summary.reads) | RED_ZONE,
                        writes: summary.writes,
                    };
                }
            }
            FlowControl::IndirectCall => {
                step.call = true;
                step.effect = convention(step.effect.reads);
            }
            FlowControl::Exception => (step.next, step.exit) = (false, Exit::None),
            _ => {}
        }
        if let Exit::Unit(unit) = step.exit {
            step.other = Some(unit);
        }
        let within = |address: u64| self.mapping.index_at(address).map(|index| index as u32);
        if matches!(flow, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch)
            && step.target.is_none()
        {
            step.leaves.extend(within(insn.near_branch64()));
        }
        if !adjacent {
            step.leaves.extend(within(insn.next_ip()).filter(|_| !unit.holds(insn.next_ip())));
        }
        if flow == FlowControl::IndirectBranch && step.exit == Exit::Anywhere {
            step.leaves.extend(self.far_entries(unit, insn.ip()));
        }
        step
    }
}

fn index(unit: &Unit<'_>, items: &[Item], address: u64) -> Option<u32> {
    let at = address.checked_sub(unit.start)?;
    items.binary_search_by_key(&at, |item| u64::from(item.at)).ok().map(|index| index as u32)
}

/// A call by the ABI, of something that reads `more` besides.
fn convention(more: Set) -> Effect {
    let reads = ARGUMENTS | more;
    Effect { reads, kills: ALL & !(CALLEE_SAVED | reads), writes: 0 }
}
