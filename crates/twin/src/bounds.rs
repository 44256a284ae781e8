//! Where a scavenger's bound yields go, and what each takes from the budget: the longest way, by static estimate, to the
//! next one. Every cycle of the graph has one, every entry too; so every way through the program meets them.

use crate::sites::{Bounds, Costs};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use image::cfg::Cfg;
use image::dominators::Dominators;

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

/// Chooses the places; `costs` are those of the unit's instructions, `first` is where its entry's yield may go at the
/// earliest (behind an `endbr64`, which a patched entry leaves out).
pub(crate) fn place(
    cfg: &Cfg,
    dominators: &Dominators,
    costs: &[u32],
    first: u32,
    bounds: &Bounds,
) -> Vec<Bound> {
    let limit = u64::from(bounds.quantum) * 16;
    let cycles = |sixteenths: u64| (sixteenths.div_ceil(16)).clamp(1, i32::MAX as u64 / 2) as u32;
    let mut found = Vec::new();
    // For each block, what lies between its start and the next bound yields, at most.
    let mut ahead = vec![0u64; cfg.blocks.len()];
    let order = dominators.reverse_postorder().iter().rev().map(|&block| block as usize);
    let unreached = (0..cfg.blocks.len()).filter(|&block| !dominators.is_reached(block));
    for at in order.chain(unreached) {
        let block = &cfg.blocks[at];
        let mut sum = cfg.edges_from(at).iter().map(|edge| ahead[edge.to as usize]).max().unwrap_or(0);
        let must = block.is_root || dominators.is_led_back_to(at) || !dominators.is_reached(at);
        let entry = if block.first < first && first < block.end { first } else { block.first };
        for index in (block.first..block.end).rev() {
            let more = sum + u64::from(costs[index as usize]);
            if must && index == entry || more > limit {
                found.push(Bound { index, cost: cycles(more) });
                sum = 0;
            } else {
                sum = more;
            }
        }
        ahead[at] = sum;
    }
    found.sort_unstable_by_key(|bound| bound.index);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::insn::{Flow, Insn};
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

    fn bounds_of(size: u32, branches: &[(u32, u32)], quantum: u32) -> Vec<(u32, u32)> {
        let (code, insns) = unit(size, branches);
        let cfg = Cfg::build(Svma(0x1000), &code, &insns, &[], &[]);
        let dominators = Dominators::of(&cfg);
        let costs = vec![16; insns.len()];
        let bounds = Bounds { quantum, costs: Costs::default() };
        place(&cfg, &dominators, &costs, 0, &bounds)
            .iter()
            .map(|b| (insns[b.index as usize].at, b.cost))
            .collect()
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
    fn no_way_is_longer_than_the_quantum() {
        let found = bounds_of(100, &[(50, 97)], 30);
        assert!(found.len() >= 4, "{found:?}");
        assert!(found.iter().all(|&(_, cost)| cost <= 31), "{found:?}");
        assert_eq!(found[0].0, 0);
    }
}
