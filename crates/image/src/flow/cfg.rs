//! Basic blocks and the edges between them.

use crate::code::insn::{Flow, Insn, index_at, index_behind};
use crate::code::jump_table::JumpTable;
use std::collections::HashMap;
use units::Svma;

/// How control gets from one block to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Into the next instruction: a branch not taken, a call that returned, or no branch at all.
    Falls,
    Taken,
    Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: EdgeKind,
}

/// Instructions `first..end` (indices), entered only at the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub first: u32,
    pub end: u32,
    /// May be entered from outside the unit.
    pub is_root: bool,
    /// May leave the unit other than by returning.
    pub leaves: bool,
}

/// The control-flow graph of a unit. Complete for a twin: nothing jumps into a twin but what is
/// known here. For the original it holds only as far as its indirect jumps are known.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    /// By ascending address.
    pub blocks: Vec<Block>,
    edges: Vec<Edge>,
    first_edge: Vec<u32>,
    /// Indices into `edges`, grouped by target.
    incoming: Vec<u32>,
    first_incoming: Vec<u32>,
}

impl Cfg {
    /// `roots` are the offsets at which the unit may be entered besides its first byte.
    pub fn build(start: Svma, code: &[u8], insns: &[Insn], tables: &[JumpTable], roots: &[u32]) -> Self {
        let size = code.len() as u64;
        let inside = |target: Svma| {
            let at = target.0.wrapping_sub(start.0);
            if at < size { index_at(insns, at as u32) } else { None }
        };
        let mut leader = vec![false; insns.len() + 1];
        let mut root = vec![false; insns.len()];
        for &at in roots.iter().chain(&[0]) {
            if let Some(index) = index_at(insns, at) {
                leader[index] = true;
                root[index] = true;
            }
        }
        let by_jump: HashMap<u32, &JumpTable> = tables.iter().map(|table| (table.jump_at, table)).collect();
        let table_at = |at: u32| by_jump.get(&at).copied();
        for (index, insn) in insns.iter().enumerate() {
            if insn.flow == Flow::Next {
                continue;
            }
            if !insn.flow.is_call() || insn.never_returns {
                leader[index + 1] = true;
            }
            match insn.flow {
                Flow::Call32 => {}
                Flow::JumpIndirect => {
                    let targets = table_at(insn.at).map_or(&[][..], |table| &table.targets);
                    targets.iter().filter_map(|&target| inside(target)).for_each(|to| leader[to] = true);
                }
                _ => {
                    if let Some(to) = insn.target(start, code).and_then(inside) {
                        leader[to] = true;
                    }
                }
            }
        }
        for (index, pair) in insns.windows(2).enumerate() {
            if pair[0].end() != pair[1].at {
                leader[index + 1] = true;
            }
        }
        let mut cfg = Self::default();
        let mut block_of = vec![0u32; insns.len()];
        for index in 0..insns.len() {
            if leader[index] || index == 0 {
                cfg.blocks.push(Block {
                    first: index as u32,
                    end: index as u32,
                    is_root: root[index],
                    leaves: false,
                });
            }
            let current = cfg.blocks.len() - 1;
            cfg.blocks[current].end = index as u32 + 1;
            block_of[index] = current as u32;
        }
        for from in 0..cfg.blocks.len() {
            cfg.first_edge.push(cfg.edges.len() as u32);
            let last = &insns[cfg.blocks[from].end as usize - 1];
            let mut leaves = false;
            let mut edge = |to: Option<usize>, kind, edges: &mut Vec<Edge>| match to {
                Some(to) => edges.push(Edge { from: from as u32, to: block_of[to], kind }),
                None => leaves = true,
            };
            if last.flow.falls_through() && !last.never_returns {
                let behind = index_behind(insns, cfg.blocks[from].end as usize - 1);
                edge(behind, EdgeKind::Falls, &mut cfg.edges);
            }
            match last.flow {
                Flow::Call32 => {}
                Flow::JumpIndirect => match table_at(last.at) {
                    Some(table) => {
                        let mut targets = table.targets.clone();
                        targets.sort_unstable();
                        targets.dedup();
                        for target in targets {
                            edge(inside(target), EdgeKind::Table, &mut cfg.edges);
                        }
                    }
                    None => leaves = true,
                },
                _ => {
                    if let Some(target) = last.target(start, code) {
                        edge(inside(target), EdgeKind::Taken, &mut cfg.edges);
                    }
                }
            }
            cfg.blocks[from].leaves = leaves;
        }
        cfg.first_edge.push(cfg.edges.len() as u32);
        cfg.group_incoming();
        cfg
    }

    fn group_incoming(&mut self) {
        let mut count = vec![0u32; self.blocks.len() + 1];
        for edge in &self.edges {
            count[edge.to as usize + 1] += 1;
        }
        for index in 1..count.len() {
            count[index] += count[index - 1];
        }
        self.first_incoming.clone_from(&count);
        self.incoming = vec![0; self.edges.len()];
        for (index, edge) in self.edges.iter().enumerate() {
            let slot = &mut count[edge.to as usize];
            self.incoming[*slot as usize] = index as u32;
            *slot += 1;
        }
    }

    pub fn edges_from(&self, block: usize) -> &[Edge] {
        &self.edges[self.first_edge[block] as usize..self.first_edge[block + 1] as usize]
    }
    pub fn edges_to(&self, block: usize) -> impl ExactSizeIterator<Item = Edge> + '_ {
        let range = self.first_incoming[block] as usize..self.first_incoming[block + 1] as usize;
        self.incoming[range].iter().map(|&edge| self.edges[edge as usize])
    }
    /// The block that holds an instruction, by its index.
    pub fn block_of(&self, insn: usize) -> usize {
        self.blocks.partition_point(|block| block.first as usize <= insn) - 1
    }
}

/// A graph for tests: the number of blocks, those entered from outside, and edges.
#[cfg(test)]
pub(crate) fn graph(count: u32, roots: &[u32], edges: &[(u32, u32)]) -> Cfg {
    let block =
        |index: u32| Block { first: index, end: index + 1, is_root: roots.contains(&index), leaves: false };
    let mut cfg = Cfg { blocks: (0..count).map(block).collect(), ..Cfg::default() };
    for from in 0..count {
        cfg.first_edge.push(cfg.edges.len() as u32);
        let out = edges.iter().filter(|edge| edge.0 == from);
        cfg.edges.extend(out.map(|&(from, to)| Edge { from, to, kind: EdgeKind::Taken }));
    }
    cfg.first_edge.push(cfg.edges.len() as u32);
    cfg.group_incoming();
    cfg
}
