//! The places of a scavenger's bound yields, and what each subtracts from the budget: the longest
//! way, by static estimate, to the next yield. Every cycle of the control flow graph and every
//! entry has a bound yield or a site yield, so that every way through the program meets them. The
//! way from a site yield to the next yield is not counted, so it is kept short.

use crate::select::sites::{Bounds, Costs};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use image::flow::cfg::{Block, Cfg};
use image::flow::dominators::Dominators;

/// A bound yield: before which instruction, and what it takes from the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub index: u32,
    pub cost: u32,
}

/// The estimate for one instruction, in sixteenths of a cycle.
pub(crate) fn cost(instruction: &Instruction, costs: &Costs) -> u32 {
    use Mnemonic::{
        Div, Divpd, Divps, Divsd, Divss, Idiv, Sqrtpd, Sqrtps, Sqrtsd, Sqrtss, Vdivpd, Vdivps, Vdivsd,
        Vdivss, Vsqrtpd, Vsqrtps, Vsqrtsd, Vsqrtss,
    };
    let memory = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory)
        && instruction.mnemonic() != Mnemonic::Lea;
    if instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
    {
        return costs.repeated;
    }
    if instruction.has_lock_prefix()
        || instruction.mnemonic() == Mnemonic::Xchg && memory
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Cpuid | Mnemonic::Pause
        )
    {
        return costs.locked;
    }
    if matches!(
        instruction.mnemonic(),
        Div | Divpd
            | Divps
            | Divsd
            | Divss
            | Idiv
            | Sqrtpd
            | Sqrtps
            | Sqrtsd
            | Sqrtss
            | Vdivpd
            | Vdivps
            | Vdivsd
            | Vdivss
            | Vsqrtpd
            | Vsqrtps
            | Vsqrtsd
            | Vsqrtss
    ) {
        return costs.divide;
    }
    match instruction.flow_control() {
        FlowControl::Next if memory => costs.memory,
        FlowControl::Next => costs.plain,
        FlowControl::Call | FlowControl::IndirectCall => costs.call,
        _ => costs.branch,
    }
}

/// Chooses the places, ascending; `costs` are those of the unit's instructions, `sites` tells which
/// of them have site yields, `first` is where its entry's yield may go at the earliest (behind an
/// `endbr64`, which a patched entry leaves out).
pub(crate) fn place(
    cfg: &Cfg,
    dominators: &Dominators,
    costs: &[u32],
    sites: &[bool],
    first: u32,
    bounds: &Bounds,
) -> Vec<Bound> {
    let headers = cycles_without(cfg, sites);
    let must: Vec<bool> = (0..cfg.blocks.len())
        .map(|at| cfg.blocks[at].is_root || headers[at] || !dominators.is_reached(at))
        .collect();
    let mut order: Vec<usize> = dominators.reverse_postorder().iter().rev().map(|&at| at as usize).collect();
    order.extend((0..cfg.blocks.len()).filter(|&block| !dominators.is_reached(block)));
    // For each block, what lies between its start and the next yields, at most. What leads back
    // into a loop that only sites cut is known a round later; if it takes too many, all loops are
    // cut by bounds.
    let mut ahead = vec![0u64; cfg.blocks.len()];
    let round = |ahead: &mut Vec<u64>, must: &[bool]| {
        let before = ahead.clone();
        let mut found = Vec::new();
        for &at in &order {
            let sum = cfg.edges_from(at).iter().map(|edge| ahead[edge.to as usize]).max().unwrap_or(0);
            ahead[at] =
                through(&cfg.blocks[at], sum, costs, sites, must[at].then_some(first), bounds, &mut found);
        }
        found.sort_unstable_by_key(|bound: &Bound| bound.index);
        (*ahead == before, found)
    };
    for _ in 0..ROUNDS {
        let (settled, found) = round(&mut ahead, &must);
        if settled {
            return found;
        }
    }
    let must: Vec<bool> =
        must.iter().enumerate().map(|(at, &must)| must || dominators.is_led_back_to(at)).collect();
    ahead.fill(0);
    round(&mut ahead, &must).1
}

const ROUNDS: usize = 16;

/// Backwards through a block, behind which the next yield is `sum` away: what it is before it.
/// Where it `must` have a bound yield, that is at its beginning or at an instruction, whichever
/// comes later.
fn through(
    block: &Block,
    mut sum: u64,
    costs: &[u32],
    sites: &[bool],
    must: Option<u32>,
    bounds: &Bounds,
    found: &mut Vec<Bound>,
) -> u64 {
    let limit = u64::from(bounds.quantum) * 16;
    let cycles = |sixteenths: u64| (sixteenths.div_ceil(16)).clamp(1, i32::MAX as u64 / 2) as u32;
    let entry = must.map(|first| if block.first < first && first < block.end { first } else { block.first });
    for index in (block.first..block.end).rev() {
        let behind = sum;
        sum += u64::from(costs[index as usize]);
        if sites[index as usize] {
            if sum > bounds.uncounted() && behind > 0 && index + 1 < block.end {
                found.push(Bound { index: index + 1, cost: cycles(behind) });
            }
            sum = 0;
        } else if entry == Some(index) || sum > limit {
            found.push(Bound { index, cost: cycles(sum) });
            sum = 0;
        }
    }
    sum
}

/// Blocks such that every cycle has one of them or a block with a site.
fn cycles_without(cfg: &Cfg, sites: &[bool]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let has_site = |at: usize| {
        let block = &cfg.blocks[at];
        sites[block.first as usize..block.end as usize].contains(&true)
    };
    let mut led_back_to = vec![false; cfg.blocks.len()];
    let mut seen: Vec<Seen> =
        (0..cfg.blocks.len()).map(|at| if has_site(at) { Seen::Done } else { Seen::No }).collect();
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in 0..cfg.blocks.len() {
        if seen[start] != Seen::No {
            continue;
        }
        seen[start] = Seen::Open;
        path.push((start, 0));
        while let Some((at, next)) = path.last_mut() {
            let Some(edge) = cfg.edges_from(*at).get(*next) else {
                seen[*at] = Seen::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = edge.to as usize;
            match seen[to] {
                Seen::No => {
                    seen[to] = Seen::Open;
                    path.push((to, 0));
                }
                Seen::Open => led_back_to[to] = true,
                Seen::Done => {}
            }
        }
    }
    led_back_to
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::code::insn::{Flow, Insn};
    use units::Svma;

    /// One-byte instructions, all of which fall through but for short branches (`(at, to)`).
    fn unit(size: u32, branches: &[(u32, u32)]) -> (Vec<u8>, Vec<Insn>) {
        let mut code = vec![0x90u8; size as usize];
        let mut insns = Vec::new();
        let mut at = 0;
        while at < size {
            let branch = branches.iter().find(|branch| branch.0 == at);
            if let Some(&(_, to)) = branch {
                code[at as usize] = 0x75;
                code[at as usize + 1] = to.wrapping_sub(at + 2) as u8;
            }
            let (len, flow) = if branch.is_some() { (2, Flow::Branch8) } else { (1, Flow::Next) };
            insns.push(Insn { at, len, flow, rip_displacement: 0, never_returns: false });
            at += u32::from(len);
        }
        (code, insns)
    }

    fn bounds_with(size: u32, branches: &[(u32, u32)], site: Option<u32>, quantum: u32) -> Vec<(u32, u32)> {
        let (code, insns) = unit(size, branches);
        let cfg = Cfg::build(Svma(0x1000), &code, &insns, &[], &[]);
        let dominators = Dominators::of(&cfg);
        let costs = vec![16; insns.len()];
        let bounds = Bounds { quantum, costs: Costs::default() };
        let sites: Vec<bool> = insns.iter().map(|insn| Some(insn.at) == site).collect();
        let found = place(&cfg, &dominators, &costs, &sites, 0, &bounds);
        found.iter().map(|bound| (insns[bound.index as usize].at, bound.cost)).collect()
    }

    fn bounds_of(size: u32, branches: &[(u32, u32)], quantum: u32) -> Vec<(u32, u32)> {
        bounds_with(size, branches, None, quantum)
    }

    #[test]
    fn the_entry_takes_the_longest_way() {
        // 0..4, branch at 2 over 4..8 to 8
        assert_eq!(bounds_of(10, &[(2, 8)], 1000), [(0, 9)]);
    }

    #[test]
    fn loops_have_one_at_their_header() {
        // 0, 1, loop 2..6 (branch at 4 to 2), 6, 7
        assert_eq!(bounds_of(8, &[(4, 2)], 1000), [(0, 2), (2, 5)]);
    }

    #[test]
    fn a_site_cuts_its_loop() {
        // As above, with a site at 3: the way to it is counted from the entry, that from it to
        // itself is not.
        assert_eq!(bounds_with(8, &[(4, 2)], Some(3), 1000), [(0, 3)]);
        // What follows it is long: a bound right behind it.
        assert_eq!(bounds_with(60, &[(50, 2)], Some(3), 80), [(0, 3), (4, 55)]);
        // Too long for a quantum.
        let long = bounds_with(60, &[(50, 2)], Some(3), 30);
        assert!(long.len() > 2 && long.iter().all(|&(_, cost)| cost <= 31), "{long:?}");
    }

    #[test]
    fn a_site_at_the_entry_does_not_make_what_follows_it_free() {
        assert_eq!(bounds_with(10, &[], Some(0), 1000), []);
        // It is short, or has a bound of its own.
        assert_eq!(bounds_with(60, &[], Some(0), 80), [(1, 59)]);
    }

    #[test]
    fn a_loop_around_one_with_a_site_still_has_one() {
        // 1..9 (branch at 7 to 1) around 2..6 (branch at 4 to 2) with a site at 8: what goes round
        // inside meets none.
        let found = bounds_with(12, &[(4, 2), (9, 1)], Some(7), 1000);
        assert!(found.iter().any(|&(at, _)| at == 2) && !found.iter().any(|&(at, _)| at == 1), "{found:?}");
    }

    #[test]
    fn no_way_is_longer_than_the_quantum() {
        let found = bounds_of(100, &[(50, 97)], 30);
        assert!(found.len() >= 4, "{found:?}");
        assert!(found.iter().all(|&(_, cost)| cost <= 31), "{found:?}");
        assert_eq!(found[0].0, 0);
    }
}
