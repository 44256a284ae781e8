//! Harvest twins: for each unit, what goes before which instruction. The code itself comes from
//! [`crate::yields`], [`crate::yields::leaves`] and [`crate::yields::tls`], the places of bounds
//! from [`crate::yields::bounds`].
//!
//! A unit in which state that yields do not switch may hold something (x87, MMX, the direction
//! flag) has no yields; in a scavenger it sends guests home where its bound yields would be.

use crate::layout::emit::is_movable;
use crate::layout::insertions::{Insertions, Piece};
use crate::layout::is_enterable;
use crate::layout::thrown;
use crate::report::{Harvested, SiteRefusal};
use crate::select::UnitChoice;
use crate::select::before_runtime::early;
use crate::select::hazards::{acts_on_the_thread, uses_unswitched_state};
use crate::select::sites::{Bounds, LoadReach, SiteChoice, Sites};
use crate::yields::bounds::{self, Bound};
use crate::yields::hoisted_saves::HoistedSaves;
use crate::yields::label_jumps::to_label;
use crate::yields::leaves::{leave, return_check};
use crate::yields::operands::{self, Operand};
use crate::yields::registers::dead_register;
use crate::yields::sunk_restores::{SunkRestores, sunk_restore};
use crate::yields::tls;
use crate::yields::{Fetch, Purpose, YieldRequest, assemble_yield, hoisted_save};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use image::Module;
use image::code::effects::effect;
use image::code::groups::{Groups, RelyOn};
use image::code::insn::{Flow, index_at};
use image::code::jump_table::JumpTable;
use image::code::regs::RegSet;
use image::flow::cfg::Cfg;
use image::flow::dominators::Dominators;
use image::liveness::{Knowledge, Liveness};
use rayon::prelude::*;
use std::borrow::Cow;
use std::cell::LazyCell;
use units::Svma;

/// What harvesting needs to know about the whole module.
pub(crate) struct HarvestTwins<'a, 'd> {
    module: &'a Module<'d>,
    choices: &'a [UnitChoice],
    facts: &'a ModuleFacts,
    sites: &'a Sites,
    /// Those of a scavenger. Its threads host no guests: so yields may leave to sunk restores what
    /// their loop does not use, and load the next context once.
    bounds: Option<Bounds>,
}

/// What is true of a module wherever its sites are.
pub(crate) struct ModuleFacts {
    liveness: Liveness,
    /// For each unit, whether it may run before its thread has an area.
    early: Vec<bool>,
    /// For each unit, whether unswitched state may hold something in it.
    unswitched: Vec<bool>,
}

/// A unit while it is worked on.
struct UnitWork<'u> {
    unit: usize,
    instructions: Vec<Instruction>,
    live: Cow<'u, [RegSet]>,
    tables: &'u [JumpTable],
    /// For each instruction, what its yield fetches, if it is a site.
    sites: Vec<Option<Fetch>>,
    bounds: Vec<Bound>,
    hoisted: HoistedSaves,
    sunk: SunkRestores,
    done: Harvested,
}

impl ModuleFacts {
    /// `guest` tells whether it is to run in the waits of others.
    pub(crate) fn of(module: &Module<'_>, choices: &[UnitChoice], knowledge: Knowledge, guest: bool) -> Self {
        // What the file does not list, nobody can check.
        let all_of = |unit: usize| matches!(choices[unit], UnitChoice::Twin(_));
        let table = |unit: usize, table: &JumpTable| all_of(unit) && is_movable(module, unit, table);
        let listed = RelyOn { table: &table, all_of: &all_of };
        Self {
            liveness: Liveness::with(module, knowledge, &listed),
            early: if guest { vec![false; module.units.len()] } else { early(module) },
            unswitched: unswitched(module),
        }
    }

    pub(crate) fn liveness(&self) -> &Liveness {
        &self.liveness
    }
}

impl<'a, 'd> HarvestTwins<'a, 'd> {
    pub(crate) fn new(
        module: &'a Module<'d>,
        choices: &'a [UnitChoice],
        facts: &'a ModuleFacts,
        sites: &'a Sites,
        bounds: Option<Bounds>,
    ) -> Self {
        Self { module, choices, facts, sites, bounds }
    }

    /// Everything that is put into one unit.
    pub(crate) fn unit(&self, unit: usize, tables: &[JumpTable]) -> (Insertions, Harvested) {
        if self.has_nothing(unit) {
            return <_>::default();
        }
        let mut work = UnitWork {
            unit,
            instructions: self.module.instructions(unit).collect(),
            live: self.live(unit),
            tables,
            sites: Vec::new(),
            bounds: Vec::new(),
            hoisted: HoistedSaves::default(),
            sunk: SunkRestores::default(),
            done: Harvested::default(),
        };
        let decoded = &self.module.decoded[unit];
        // No twin is entered by tables that the file does not list, and the checker sees only
        // those.
        let cfg = self.module.cfg_by(unit, tables);
        self.choose_sites(&mut work, &cfg);
        let dominators = LazyCell::new(|| Dominators::of(&cfg));
        let yields: Vec<bool> = work.sites.iter().map(Option::is_some).collect();
        if self.sites.optimisations.live_registers
            && self.sites.optimisations.hoisted_saves
            && yields.contains(&true)
        {
            work.hoisted = HoistedSaves::of(&cfg, &dominators, &work.instructions, &work.live, &yields);
        }
        if let Some(bounds) = &self.bounds {
            let costs: Vec<u32> = work
                .instructions
                .iter()
                .zip(&work.sites)
                .map(|(insn, site)| {
                    let site = if site.is_some() { bounds.costs.site } else { 0 };
                    bounds::cost(insn, &bounds.costs) + site
                })
                .collect();
            let first =
                u32::from(work.instructions.first().is_some_and(|insn| insn.mnemonic() == Mnemonic::Endbr64));
            work.bounds = bounds::place(&cfg, &dominators, &costs, &yields, first, bounds);
            if self.sites.optimisations.sunk_restores && !self.facts.unswitched[unit] {
                let insns = &decoded.insns;
                work.sunk = SunkRestores::of(
                    &cfg,
                    &dominators,
                    &work.instructions,
                    insns,
                    &work.hoisted,
                    &yields,
                    &work.bounds,
                );
            }
        }
        self.insert(work)
    }

    /// Whether nothing is put into a unit: a primary's without a site, as most are.
    fn has_nothing(&self, unit: usize) -> bool {
        let SiteChoice::Listed(listed) = &self.sites.which else { return false };
        let unit = &self.module.units[unit];
        let all = unit.start.0..unit.end().0;
        self.bounds.is_none() && listed.range(all).next().is_none()
    }

    fn insert(&self, mut work: UnitWork<'_>) -> (Insertions, Harvested) {
        let mut insertions = Insertions::default();
        let mut next_bound = 0;
        let mut piece = Piece::default();
        // Yields of scavengers are never switched, so it is not asked there.
        let exceptions = if self.bounds.is_some() { None } else { self.module.exceptions(work.unit) };
        for index in 0..work.instructions.len() {
            piece.clear();
            let live = work.live.get(index).copied().unwrap_or(RegSet::ALL);
            let base = work.hoisted.base(index);
            let yields = |purpose, fetch: &Fetch| {
                assemble_yield(&YieldRequest {
                    purpose,
                    live: if self.sites.optimisations.live_registers { live } else { RegSet::ALL },
                    held: work.hoisted.held(index),
                    base,
                    sunk: work.sunk.around(index).copied().filter(|_| purpose == Purpose::Site),
                    hosts: self.bounds.is_none(),
                    balances: self.sites.optimisations.load_store_balance,
                    fetch,
                    width: self.sites.width,
                    thrown: thrown::thrown(exceptions.as_ref(), Svma(work.instructions[index].ip())),
                    quantum: self.bounds.map(|bounds| bounds.quantum),
                })
            };
            if let Some(left) = work.sunk.before(index) {
                piece.append(&sunk_restore(left));
            }
            if let Some(bound) = work.bounds.get(next_bound).filter(|b| b.index as usize == index) {
                next_bound += 1;
                if self.facts.unswitched[work.unit] {
                    piece.append(&leave(live));
                    work.done.leaves += 1;
                } else {
                    piece.append(&yields(Purpose::Bound(bound.cost), &Fetch::default()));
                    work.done.bounds += 1;
                }
            }
            if let Some(fetch) = &work.sites[index] {
                piece.append(&yields(Purpose::Site, fetch));
                work.done.sites += 1;
            }
            let (ahead, begins) = (work.hoisted.hoisted(index), work.hoisted.begins(index));
            if ahead != RegSet::EMPTY || begins.is_some() {
                if let Some(to) = begins.or(base).or_else(|| dead_register(live, RegSet::EMPTY)) {
                    piece.append(&hoisted_save(to, base == Some(to), ahead));
                }
            }
            if self.computed_jump_at(&work, index) {
                let unit = &self.module.units[work.unit];
                if let Some(jump) = to_label(&work.instructions[index], (unit.start.0, unit.size)) {
                    piece.append(&jump);
                }
            }
            if self.bounds.is_some() {
                let taken = begins.or(base).map_or(RegSet::EMPTY, RegSet::general);
                self.keep_aboard(&mut work, index, (live, taken), &mut piece, &mut insertions);
            }
            insertions.push_piece(&piece);
        }
        (insertions, work.done)
    }

    /// Why no yield can be in a unit.
    fn refusal(&self, unit: usize) -> Option<SiteRefusal> {
        if self.facts.early[unit] {
            Some(SiteRefusal::Early)
        } else if self.facts.unswitched[unit] {
            Some(SiteRefusal::UnswitchedState)
        } else {
            None
        }
    }

    /// Whether an instruction is a jump that may lead to a label of its unit.
    fn computed_jump_at(&self, work: &UnitWork<'_>, index: usize) -> bool {
        let insn = &self.module.decoded[work.unit].insns[index];
        insn.flow == Flow::JumpIndirect
            && insn.rip_displacement == 0
            && !self.facts.early[work.unit]
            && !work.tables.iter().any(|table| table.jump_at == insn.at)
            && self.module.labels(work.unit).next().is_some()
    }

    /// What is live before each instruction of a unit, as far as it is relied on here.
    fn live(&self, unit: usize) -> Cow<'_, [RegSet]> {
        let live = &self.facts.liveness.before[unit];
        if self.sites.save_all_at.is_empty() {
            return Cow::Borrowed(live);
        }
        let start = self.module.units[unit].start.0;
        let save_all_at = |index: usize| {
            self.module.decoded[unit]
                .insns
                .get(index)
                .is_some_and(|insn| self.sites.save_all_at.contains(&(start + u64::from(insn.at))))
        };
        live.iter()
            .enumerate()
            .map(|(index, &live)| if save_all_at(index) { RegSet::ALL } else { live })
            .collect()
    }

    /// What a scavenger's instruction needs besides yields.
    fn keep_aboard(
        &self,
        work: &mut UnitWork<'_>,
        index: usize,
        (live, taken): (RegSet, RegSet),
        piece: &mut Piece,
        insertions: &mut Insertions,
    ) {
        let (live_here, live) = (live, live | taken);
        let instruction = &work.instructions[index];
        if self.module.decoded[work.unit].insns[index].flow == Flow::Return
            && instruction.mnemonic() == Mnemonic::Ret
        {
            piece.append(&return_check(live));
            work.done.return_checks += 1;
        } else if self.goes_out(work, index) || acts_on_the_thread(instruction) {
            piece.append(&leave(live));
            work.done.leaves += 1;
        } else if tls::uses_segment(instruction, Register::FS) {
            if let Some((before, bytes)) =
                tls::rewritten(instruction, live_here, taken, work.hoisted.held(index))
            {
                piece.append(&before);
                insertions.replace(index, bytes);
                work.done.thread_local += 1;
            } else {
                piece.append(&leave(live));
                work.done.leaves += 1;
                work.done.thread_local_left += 1;
            }
        }
    }

    /// Whether control may get out of the module's twins by this instruction.
    fn goes_out(&self, work: &UnitWork<'_>, index: usize) -> bool {
        let unit = work.unit;
        let insn = &self.module.decoded[unit].insns[index];
        match insn.flow {
            Flow::Next | Flow::Stop => false,
            Flow::CallIndirect | Flow::Return => true,
            Flow::JumpIndirect => match work.tables.iter().find(|table| table.jump_at == insn.at) {
                Some(table) => !table.targets.iter().all(|&target| self.stays(unit, target)),
                None => true,
            },
            _ => insn
                .target(self.module.units[unit].start, self.module.code(unit))
                .is_none_or(|target| !self.stays(unit, target)),
        }
    }

    /// Whether a branch of a unit's twin to this address leads to a twin.
    fn stays(&self, unit: usize, target: Svma) -> bool {
        let Some(to) = self.module.unit_at(target) else { return false };
        let at = (target.0 - self.module.units[to].start.0) as u32;
        if to == unit {
            return index_at(&self.module.decoded[to].insns, at).is_some();
        }
        matches!(self.choices[to], UnitChoice::Twin(_)) && is_enterable(self.module, to, at)
    }

    /// Which instructions of the unit are sites, and what is fetched there.
    fn choose_sites(&self, work: &mut UnitWork<'_>, cfg: &Cfg) {
        let count = work.instructions.len();
        work.sites = vec![None; count];
        let insns = &self.module.decoded[work.unit].insns;
        let start = self.module.units[work.unit].start.0;
        let refusal = self.refusal(work.unit);
        let end = start + u64::from(self.module.units[work.unit].size);
        let mut factory = InstructionInfoFactory::new();
        match &self.sites.which {
            SiteChoice::EveryLoad(reach) => {
                let framed = operands::has_frame_pointer(&work.instructions);
                for index in 0..count {
                    let instruction = &work.instructions[index];
                    let Ok(operand) = Operand::of(instruction, &mut factory) else { continue };
                    let usual = !operands::is_near(instruction, framed);
                    if !operand.is_read || (*reach == LoadReach::Usual && !usual) {
                        continue;
                    }
                    let fetch = match refusal {
                        Some(why) => Err(why),
                        None => operands::fetch(instruction, &operand, None),
                    };
                    match fetch {
                        Err(why) => *work.done.left_out.entry(why).or_default() += 1,
                        Ok(fetch) => work.sites[index] = Some(fetch),
                    }
                }
            }
            SiteChoice::Listed(listed) => {
                let mut covered = vec![false; count];
                for (&address, site) in listed.range(start..end) {
                    let index = index_at(insns, (address - start) as u32);
                    let fetch = match (refusal, index) {
                        (Some(why), _) => Err(why),
                        (None, None) => Err(SiteRefusal::NoTwin),
                        (None, Some(index)) => {
                            let instruction = &work.instructions[index];
                            Operand::of(instruction, &mut factory)
                                .and_then(|operand| operands::fetch(instruction, &operand, site.prefetch))
                        }
                    };
                    let (index, mut fetch) = match (index, fetch) {
                        (Some(index), Ok(fetch)) => (index, fetch),
                        (_, Err(why)) => {
                            work.done.leave_out(address, why);
                            continue;
                        }
                        (None, Ok(_)) => continue,
                    };
                    if covered[index] {
                        continue;
                    }
                    for &other in &site.with {
                        let next = index_at(insns, other.wrapping_sub(start) as u32)
                            .filter(|_| (start..end).contains(&other));
                        let Some(next) = next else {
                            work.done.leave_out(other, SiteRefusal::NoTwin);
                            continue;
                        };
                        let instruction = &work.instructions[next];
                        let of_next = Operand::of(instruction, &mut factory)
                            .and_then(|operand| Ok((operand, operands::fetch(instruction, &operand, None)?)));
                        match of_next {
                            Err(why) => work.done.leave_out(other, why),
                            Ok((operand, of_next)) => {
                                if cfg.block_of(index) == cfg.block_of(next)
                                    && known_before(work, index, next, &operand, &mut factory)
                                {
                                    fetch.extend(&of_next);
                                    covered[next] = true;
                                    work.sites[next] = None;
                                    work.done.coalesced += 1;
                                } else if !covered[next] && work.sites[next].is_none() {
                                    work.sites[next] = Some(of_next);
                                }
                            }
                        }
                    }
                    work.sites[index] = Some(fetch);
                }
            }
        }
    }
}

/// Whether the address of a later operand can be told at an earlier instruction of the block.
fn known_before(
    work: &UnitWork<'_>,
    from: usize,
    to: usize,
    operand: &Operand,
    factory: &mut InstructionInfoFactory,
) -> bool {
    from < to
        && work.instructions[from..to].iter().all(|instruction| {
            let calls = instruction.is_call_near() || instruction.is_call_near_indirect();
            !calls && !effect(instruction, factory).writes.meets(operand.registers)
        })
}

/// For each unit, whether it or another part of its function uses state that is not switched.
fn unswitched(module: &Module<'_>) -> Vec<bool> {
    let alone: Vec<bool> = (0..module.units.len())
        .into_par_iter()
        .with_min_len(64)
        .map(|unit| module.instructions(unit).any(|instruction| uses_unswitched_state(&instruction)))
        .collect();
    let groups = Groups::of(module);
    let of_group: Vec<bool> =
        groups.members.iter().map(|members| members.iter().any(|&unit| alone[unit as usize])).collect();
    groups.of_unit.iter().map(|&group| of_group[group as usize]).collect()
}
