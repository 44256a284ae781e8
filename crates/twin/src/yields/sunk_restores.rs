//! Sunk restores: registers that nothing in a loop uses need not be loaded behind each switch in
//! it, since their slots hold them all the time ([`crate::yields::hoisted_saves`]). They are loaded
//! once, behind the loop.
//!
//! Up to there such a register may hold anything. Only the runtime looks at it, when it captures a
//! guest in the middle of the loop. So each such yield has a note in front of the place where it
//! goes on: which registers these are, from which instruction, up to which (`docs/harvest-abi.md`).
//! It is right if on all ways through these instructions the slots hold the registers: that is
//! checked here.
//!
//! Only scavengers have them: threads of primaries are interrupted anywhere by signals of their
//! own.

use crate::layout::insertions::Piece;
use crate::select::hazards::acts_on_the_thread;
use crate::yields::assembler::assemble;
use crate::yields::bounds::Bound;
use crate::yields::hoisted_saves::{HoistedSaves, loops};
use crate::yields::registers::Register;
use crate::yields::tls::uses_segment;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register as Name};
use image::code::effects::effect;
use image::code::insn::{Flow, Insn};
use image::code::regs::RegSet;
use image::flow::cfg::Cfg;
use image::flow::dominators::Dominators;
use runtime_abi::context;

/// A loop whose yields leave something, its instructions in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SunkLoop {
    pub first: usize,
    /// The instruction behind it, to which all ways out lead, and before which `registers` are
    /// loaded.
    pub behind: usize,
    pub registers: RegSet,
    /// What holds the context all the time.
    pub base: Register,
}

/// None of them within another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SunkRestores {
    loops: Vec<SunkLoop>,
}

/// Most instructions of such a loop: the runtime searches for the yield's note nearby, and must
/// stay within the twin.
const MOST: usize = 32;

impl SunkRestores {
    pub(crate) fn of(
        cfg: &Cfg,
        dominators: &Dominators,
        instructions: &[Instruction],
        insns: &[Insn],
        kept: &HoistedSaves,
        sites: &[bool],
        bounds: &[Bound],
    ) -> Self {
        let mut left = Self::default();
        let mut factory = InstructionInfoFactory::new();
        // The innermost first: theirs are the yields that are met most often.
        for (_, inside) in loops(cfg, dominators).into_iter().rev() {
            let Some((first, behind)) = in_one_piece(cfg, &inside) else { continue };
            let apart = |other: &SunkLoop| other.behind < first || behind < other.first;
            let calm = |index: usize| {
                let follows = insns.get(index + 1).is_some_and(|next| next.at == insns[index].end());
                let stays = matches!(
                    insns[index].flow,
                    Flow::Next | Flow::Jump8 | Flow::Jump32 | Flow::Branch8 | Flow::Branch32
                );
                let stays = stays && instructions[index].mnemonic() != Mnemonic::Xbegin;
                let home =
                    acts_on_the_thread(&instructions[index]) || uses_segment(&instructions[index], Name::FS);
                follows && stays && !home
            };
            if behind - first > MOST
                || !sites[first..behind].contains(&true)
                || !left.loops.iter().all(apart)
                || bounds.iter().any(|bound| (first..behind).contains(&(bound.index as usize)))
                || !(first..behind).all(calm)
            {
                continue;
            }
            let Some(base) = kept.base(behind) else { continue };
            if !(first..behind).all(|index| kept.base(index) == Some(base)) {
                continue;
            }
            let held = (first..=behind).fold(leavable(), |held, index| held & kept.held(index));
            let registers = (first..behind).fold(held, |rest, index| {
                let effect = effect(&instructions[index], &mut factory);
                rest - (effect.reads | effect.writes | effect.kills)
            });
            if registers != RegSet::EMPTY {
                left.loops.push(SunkLoop { first, behind, registers, base });
            }
        }
        left
    }

    /// The loop that an instruction is in.
    pub(crate) fn around(&self, index: usize) -> Option<&SunkLoop> {
        self.loops.iter().find(|found| (found.first..found.behind).contains(&index))
    }

    /// The loop that ends before an instruction.
    pub(crate) fn before(&self, index: usize) -> Option<&SunkLoop> {
        self.loops.iter().find(|found| found.behind == index)
    }
}

/// What may be left: not `rax`, in which the context comes back, nor the stack pointer, nor `r11`,
/// by which the runtime goes on at home once it has loaded all others from their slots.
fn leavable() -> RegSet {
    (0..16)
        .filter(|number| ![0, 4, 11].contains(number))
        .fold(RegSet::EMPTY, |all, number| all | RegSet::general(number))
}

/// The first instruction of a loop whose blocks stand one behind the other, and the one behind it,
/// if it is left to there only, and nobody else gets there.
fn in_one_piece(cfg: &Cfg, inside: &[bool]) -> Option<(usize, usize)> {
    let first = inside.iter().position(|&inside| inside)?;
    let last = inside.iter().rposition(|&inside| inside)?;
    let behind = cfg.blocks.get(last + 1)?;
    let whole = inside[first..=last].iter().all(|&inside| inside)
        && (first..=last).all(|at| {
            let (block, next) = (&cfg.blocks[at], &cfg.blocks[at + 1]);
            block.end == next.first && !block.is_root && !block.leaves
        });
    let leaves = (first..=last)
        .flat_map(|at| cfg.edges_from(at))
        .all(|edge| (first..=last + 1).contains(&(edge.to as usize)));
    let comes = cfg.edges_to(last + 1).all(|edge| (first..=last).contains(&(edge.from as usize)));
    (whole && leaves && comes && !behind.is_root)
        .then(|| (cfg.blocks[first].first as usize, behind.first as usize))
}

/// A sunk restore: loads, behind a loop, the registers that its yields left in their slots.
pub(crate) fn sunk_restore(left: &SunkLoop) -> Piece {
    assemble(|asm| {
        for register in (0..16).filter(|&register| left.registers.contains(RegSet::general(register))) {
            asm.load(register, left.base, context::slot(register as u8));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yields::hoisted_saves::tests::{CHASE, Example};

    /// Of code in which all but rsi is live everywhere.
    fn of_bounded(code: &[u8], sites: &[usize], roots: &[u32], bounds: &[Bound]) -> Vec<SunkLoop> {
        let of = Example::of(code, sites, roots, |_| RegSet::ALL - RegSet::general(6));
        SunkRestores::of(&of.cfg, &of.dominators, &of.instructions, &of.insns, &of.kept, &of.sites, bounds)
            .loops
    }

    /// Its loop uses rdx, and has the context in rsi.
    fn left_by_chase() -> RegSet {
        leavable() - RegSet::general(2) - RegSet::general(6)
    }

    fn of(code: &[u8], sites: &[usize], roots: &[u32]) -> Vec<SunkLoop> {
        of_bounded(code, sites, roots, &[])
    }

    #[test]
    fn a_loop_leaves_what_it_does_not_use() {
        let chase = SunkLoop { first: 1, behind: 4, registers: left_by_chase(), base: 6 };
        assert_eq!(of(CHASE, &[1], &[]), [chase]);
        assert_eq!(of(CHASE, &[], &[]), []);
        // mov edx, 5; loop: mov rax, [rax + rbx]; lea r12, [rax]; sub rdx, 1; jne loop; ret
        let uses =
            [0xba, 5, 0, 0, 0, 0x48, 0x8b, 4, 0x18, 0x4c, 0x8d, 0x20, 0x48, 0x83, 0xea, 1, 0x75, 0xf3, 0xc3];
        let used = RegSet::general(3) | RegSet::general(12);
        assert_eq!(
            of(&uses, &[1], &[]),
            [SunkLoop { behind: 5, registers: left_by_chase() - used, ..chase }]
        );
    }

    #[test]
    fn nothing_is_left_where_others_come_or_go() {
        // Into the loop, behind it; a bound yield in it, or in front of it.
        assert!([5, 8, 12, 14].into_iter().all(|root| of(CHASE, &[1], &[root]).is_empty()));
        assert_eq!(of_bounded(CHASE, &[1], &[], &[Bound { index: 2, cost: 1 }]), []);
        assert_eq!(of_bounded(CHASE, &[1], &[], &[Bound { index: 0, cost: 1 }]).len(), 1);
        // mov edx, 5; jne behind; loop: mov rax, [rax]; sub rdx, 1; jne loop; behind: ret
        let guarded = [0xba, 5, 0, 0, 0, 0x75, 9, 0x48, 0x8b, 0, 0x48, 0x83, 0xea, 1, 0x75, 0xf7, 0xc3];
        assert_eq!(of(&guarded, &[2], &[]), []);
        // mov edx, 5; loop: mov rax, [rax]; jne out; sub rdx, 1; jne loop; ret; out: ret
        let two_ways =
            [0xba, 5, 0, 0, 0, 0x48, 0x8b, 0, 0x75, 7, 0x48, 0x83, 0xea, 1, 0x75, 0xf5, 0xc3, 0xc3];
        assert_eq!(of(&two_ways, &[1], &[]), []);
    }

    #[test]
    fn nothing_is_left_where_a_guest_goes_home() {
        // mov edx, 5; loop: mov rax, [rax]; and so on; sub rdx, 1; jne loop; ret
        let code = |more: &[u8]| {
            let mut code = vec![0xba, 5, 0, 0, 0, 0x48, 0x8b, 0];
            code.extend_from_slice(more);
            code.extend_from_slice(&[0x48, 0x83, 0xea, 1, 0x75, 0xf7 - more.len() as u8, 0xc3]);
            code
        };
        assert_eq!(of(&code(&[0x90]), &[1], &[]).len(), 1);
        // ldmxcsr [rax]; mov rcx, fs:[rax]; syscall
        for home in [&[0x0f, 0xae, 0x10][..], &[0x64, 0x48, 0x8b, 0x08], &[0x0f, 0x05]] {
            assert_eq!(of(&code(home), &[1], &[]), [], "{home:x?}");
        }
        // Longer than a note speaks of.
        assert_eq!(of(&code(&[0x90; 28]), &[1], &[]).len(), 1);
        assert_eq!(of(&code(&[0x90; 30]), &[1], &[]), []);
    }

    #[test]
    fn of_loops_within_each_other_the_innermost_leave() {
        // mov edx, 5; outer: mov ecx, 3; inner: mov rax, [rax]; dec rcx; jne inner; dec rdx; jne
        // outer; ret
        let code = [
            0xba, 5, 0, 0, 0, 0xb9, 3, 0, 0, 0, 0x48, 0x8b, 0, 0x48, 0xff, 0xc9, 0x75, 0xf8, 0x48, 0xff,
            0xca, 0x75, 0xee, 0xc3,
        ];
        let found = of(&code, &[2], &[]);
        assert_eq!(found.iter().map(|of| (of.first, of.behind)).collect::<Vec<_>>(), [(2, 5)]);
    }
}
