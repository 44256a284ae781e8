//! Functions as wholes: units that reach into each other's middles (hot and cold parts,
//! hand-written code with several entries, landing pads elsewhere) form one [`Group`], with one
//! graph of blocks.

use crate::code::code_units::Unit;
use crate::code::insn::index_at;
use crate::code::jump_table::JumpTable;
use crate::flow::cfg::{Cfg, EdgeKind};
use crate::module::Module;
use rayon::prelude::*;
use std::borrow::Cow;
use units::Svma;

/// Which units belong together.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The units of each group, ascending.
    pub members: Vec<Vec<u32>>,
    /// The group of each unit.
    pub of_unit: Vec<u32>,
}

impl Groups {
    pub fn of(module: &Module<'_>) -> Self {
        let mut parent: Vec<u32> = (0..module.units.len() as u32).collect();
        for (a, b) in links(module) {
            let (a, b) = (find(&mut parent, a), find(&mut parent, b));
            if a != b {
                parent[b.max(a) as usize] = b.min(a);
            }
        }
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut of_unit = vec![0; parent.len()];
        for unit in 0..parent.len() as u32 {
            let root = find(&mut parent, unit);
            if root == unit {
                of_unit[unit as usize] = members.len() as u32;
                members.push(vec![unit]);
            } else {
                of_unit[unit as usize] = of_unit[root as usize];
                members[of_unit[root as usize] as usize].push(unit);
            }
        }
        Self { members, of_unit }
    }
}

fn find(parent: &mut [u32], mut unit: u32) -> u32 {
    while parent[unit as usize] != unit {
        let above = parent[unit as usize];
        parent[unit as usize] = parent[above as usize];
        unit = above;
    }
    unit
}

/// Pairs of units of which one jumps (or unwinds) into the other, other than to the start of a
/// function.
fn links(module: &Module<'_>) -> Vec<(u32, u32)> {
    (0..module.units.len())
        .into_par_iter()
        .with_min_len(64)
        .flat_map_iter(|unit| {
            let pads = module.exceptions(unit).flatten().map(|lsda| lsda.call_sites).unwrap_or_default();
            let pads = pads.into_iter().filter_map(|site| site.landing_pad);
            let jumps = module.decoded[unit].jumps_out.iter().copied();
            jumps.chain(pads).filter(|&target| !is_stub(module, target)).filter_map(move |target| {
                let into = module.unit_at(target)?;
                let to = &module.units[into];
                let goes_on = into != unit && is_followed(to) && (to.start != target || to.is_part);
                goes_on.then_some((unit as u32, into as u32))
            })
        })
        .collect()
}

/// Whether others' jumps into a unit are followed. Not into one without unwind entry: where it ends
/// is a guess, and so is what lies in it (behind a stripped program's last known function, all that
/// follows), and nobody can check that.
fn is_followed(unit: &Unit) -> bool {
    unit.fde.is_some()
}

/// A jump to a linkage stub leaves the module, though all stubs may share an unwind entry; it makes
/// nobody part of another.
fn is_stub(module: &Module<'_>, target: Svma) -> bool {
    module.imports.stub(target).is_some()
}

/// A block of a group.
#[derive(Clone, Debug)]
pub struct Block {
    /// Which of the group's units it lies in.
    pub member: u32,
    /// Indices of its instructions in that unit.
    pub first: u32,
    pub end: u32,
    /// Where control goes inside the group.
    pub next: Vec<u32>,
    /// How else it may leave.
    pub exits: Vec<Exit>,
    /// May be entered from outside the group, or by unwinding.
    pub is_entry: bool,
}

/// A way out of a group that is no return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// A jump to an address outside (a tail call, most often).
    To(Svma),
    /// An indirect jump that was not resolved.
    Open,
    /// Into bytes of the group that were not decoded.
    Lost,
}

/// What is relied on.
pub struct RelyOn<'r> {
    /// A jump table of a unit.
    pub table: &'r (dyn Fn(usize, &JumpTable) -> bool + Sync),
    /// That all instructions known of a unit are its own; of others, only those that control comes
    /// to from its start by ways that are followed.
    pub all_of: &'r (dyn Fn(usize) -> bool + Sync),
}

impl RelyOn<'static> {
    pub const EVERYTHING: Self = Self { table: &|_, _| true, all_of: &|_| true };
}

fn listed<'t>(unit: usize, tables: &'t [JumpTable], relied_on: &RelyOn<'_>) -> Cow<'t, [JumpTable]> {
    if tables.iter().all(|table| (relied_on.table)(unit, table)) {
        return Cow::Borrowed(tables);
    }
    Cow::Owned(tables.iter().filter(|table| (relied_on.table)(unit, table)).cloned().collect())
}

/// One function, with all its parts.
#[derive(Clone, Debug)]
pub struct Group<'m> {
    /// Indices of its units in the module.
    pub units: &'m [u32],
    pub blocks: Vec<Block>,
    /// The first block of each unit.
    first_block: Vec<u32>,
}

impl<'m> Group<'m> {
    /// `relied_on` says which jump tables are; jumps by others may lead anywhere.
    pub fn build(module: &Module<'_>, units: &'m [u32], relied_on: &RelyOn<'_>) -> Self {
        let mut group = Self { units, blocks: Vec::new(), first_block: Vec::new() };
        let mut graphs = Vec::new();
        for &unit in units {
            let unit = unit as usize;
            let tables = listed(unit, &module.decoded[unit].tables, relied_on);
            let cfg = module.cfg_by(unit, &tables);
            group.first_block.push(group.blocks.len() as u32);
            let member = group.first_block.len() as u32 - 1;
            group.blocks.extend(cfg.blocks.iter().map(|block| Block {
                member,
                first: block.first,
                end: block.end,
                next: Vec::new(),
                exits: Vec::new(),
                is_entry: block.is_root && !(module.units[unit].is_part && block.first == 0),
            }));
            graphs.push(cfg);
        }
        for (member, cfg) in graphs.iter().enumerate() {
            group.connect(module, member, cfg, relied_on);
        }
        group
    }

    fn connect(&mut self, module: &Module<'_>, member: usize, cfg: &Cfg, relied_on: &RelyOn<'_>) {
        let unit = self.units[member] as usize;
        let decoded = &module.decoded[unit];
        let start = module.units[unit].start;
        let code = module.code(unit);
        let base = self.first_block[member];
        for (index, local) in cfg.blocks.iter().enumerate() {
            let mut next: Vec<u32> = cfg.edges_from(index).iter().map(|edge| base + edge.to).collect();
            let mut exits = Vec::new();
            let last = &decoded.insns[local.end as usize - 1];
            if local.leaves {
                let falls = last.flow.falls_through() && !last.never_returns;
                let fell = cfg.edges_from(index).iter().any(|edge| edge.kind == EdgeKind::Falls);
                let mut out: Vec<Svma> = Vec::new();
                if falls && !fell {
                    // What stands there is another function, or not known; what that returns to,
                    // nobody says.
                    exits.push(Exit::Open);
                }
                if !last.flow.is_call() {
                    out.extend(last.target(start, code));
                }
                let table = decoded.tables.binary_search_by_key(&last.at, |table| table.jump_at);
                let table = table.ok().map(|found| &decoded.tables[found]);
                match table.filter(|table| (relied_on.table)(unit, table)) {
                    Some(table) => out.extend(&table.targets),
                    None if last.flow == crate::code::insn::Flow::JumpIndirect => exits.push(Exit::Open),
                    None => {}
                }
                for target in out {
                    let other = self.member_of(module, target).filter(|&other| other != member);
                    if other.is_some_and(|other| !is_followed(&module.units[self.units[other] as usize])) {
                        exits.push(Exit::To(target));
                        continue;
                    }
                    match self.block_at(module, target) {
                        Some(block) if self.blocks[block as usize].member as usize == member => {}
                        Some(block) => next.push(block),
                        None if self.holds(module, target) => exits.push(Exit::Lost),
                        None => exits.push(Exit::To(target)),
                    }
                }
            }
            next.sort_unstable();
            next.dedup();
            exits.dedup();
            let block = &mut self.blocks[(base as usize) + index];
            block.next = next;
            block.exits = exits;
        }
    }

    fn member_of(&self, module: &Module<'_>, target: Svma) -> Option<usize> {
        let unit = module.unit_at(target)? as u32;
        self.units.binary_search(&unit).ok()
    }
    fn holds(&self, module: &Module<'_>, target: Svma) -> bool {
        self.member_of(module, target).is_some()
    }
    /// The block that starts at an address.
    pub fn block_at(&self, module: &Module<'_>, target: Svma) -> Option<u32> {
        let member = self.member_of(module, target)?;
        let unit = self.units[member] as usize;
        let at = (target.0 - module.units[unit].start.0) as u32;
        let insn = index_at(&module.decoded[unit].insns, at)? as u32;
        let first = self.first_block[member] as usize;
        let last = self.first_block.get(member + 1).map_or(self.blocks.len(), |&next| next as usize);
        let blocks = &self.blocks[first..last];
        let block = blocks.partition_point(|block| block.first < insn);
        (blocks.get(block)?.first == insn).then_some((first + block) as u32)
    }
}
