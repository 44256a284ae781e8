//! Hoisted saves: a register that a loop does not change is saved to its slot once, before the
//! loop, and the yields in the loop only load it.
//!
//! Two steps. [`HoistedSaves::of`] chooses where registers are saved ahead of a loop: at the ends
//! of the blocks that lead into a loop which has sites and no calls. Then a forward analysis over
//! all ways tells what each slot holds for certain: a slot holds its register from a hoisted save
//! on, and no longer where the register is written or dead, and at everything after which the
//! context may have been another function's (calls, system calls, entries). A yield itself gains
//! nothing: alone, it stores nothing. What is left out rests on the second step alone; the first
//! only decides how much there is to leave out.
//!
//! With that goes the *base*: where a register is dead throughout such a loop, it is made to hold
//! the context before the loop, and its yields do not ask the area for it. Otherwise each yield
//! would wait for what the one before wrote there.

use crate::yields::registers::{Register, base_candidates, dead_register};
use iced_x86::{Instruction, InstructionInfoFactory};
use image::code::effects::effect;
use image::code::regs::{RSP, RegSet};
use image::flow::cfg::Cfg;
use image::flow::dominators::Dominators;

/// For each instruction, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct HoistedSaves {
    held: Vec<RegSet>,
    hoisted: Vec<RegSet>,
    base: Vec<Option<Register>>,
    begins: Vec<Option<Register>>,
}

/// Loops looked at in one unit: the largest ones, should there be more.
const MOST_LOOPS: usize = 256;

/// What one instruction does to slots.
struct SlotEffect {
    /// Slots of these do not hold the register behind it.
    loses: RegSet,
    is_barrier: bool,
}

impl HoistedSaves {
    /// `live` is before each instruction; `sites` says which have a site yield.
    pub(crate) fn of(
        cfg: &Cfg,
        dominators: &Dominators,
        instructions: &[Instruction],
        live: &[RegSet],
        sites: &[bool],
    ) -> Self {
        let count = instructions.len();
        let mut kept = Self {
            held: vec![RegSet::EMPTY; count],
            hoisted: vec![RegSet::EMPTY; count],
            base: vec![None; count],
            begins: vec![None; count],
        };
        if live.len() != count || !sites.contains(&true) {
            return kept;
        }
        let mut factory = InstructionInfoFactory::new();
        let effects: Vec<SlotEffect> =
            instructions.iter().map(|insn| slot_effect(insn, &mut factory)).collect();
        if kept.choose(cfg, dominators, &effects, live, sites) {
            kept.spread(cfg, dominators, &effects, live);
            kept.spread_base(cfg, dominators, &effects, live);
        }
        kept
    }

    /// What the slots hold before an instruction; RSP stands for the context's stack pointer.
    pub(crate) fn held(&self, index: usize) -> RegSet {
        self.held.get(index).copied().unwrap_or_default()
    }

    /// The registers of a hoisted save right before an instruction.
    pub(crate) fn hoisted(&self, index: usize) -> RegSet {
        self.hoisted.get(index).copied().unwrap_or_default()
    }

    /// The register that holds the context before an instruction, and is to hold it behind all that
    /// is inserted there.
    pub(crate) fn base(&self, index: usize) -> Option<Register> {
        self.base.get(index).copied().flatten()
    }

    /// The register that begins to hold the context right before an instruction.
    pub(crate) fn begins(&self, index: usize) -> Option<Register> {
        self.begins.get(index).copied().flatten()
    }

    /// Chooses where registers are saved; whether there is any such place.
    fn choose(
        &mut self,
        cfg: &Cfg,
        dominators: &Dominators,
        effects: &[SlotEffect],
        live: &[RegSet],
        sites: &[bool],
    ) -> bool {
        let mut done: Vec<(Vec<bool>, RegSet, Option<Register>)> = Vec::new();
        for (header, inside) in loops(cfg, dominators) {
            let of_loop = || {
                let blocks = cfg.blocks.iter().zip(&inside).filter(|(_, inside)| **inside);
                blocks.flat_map(|(block, _)| block.first as usize..block.end as usize)
            };
            if !of_loop().any(|index| sites[index]) || of_loop().any(|index| effects[index].is_barrier) {
                continue;
            }
            let unchanged = of_loop().fold(slots(), |rest, index| rest - effects[index].loses);
            let outer = || done.iter().filter(|(outer, _, _)| outer[header]);
            let by_outer = outer().fold(RegSet::EMPTY, |all, (_, registers, _)| all | *registers);
            let has_base = outer().any(|(_, _, base)| base.is_some());
            let into = || cfg.edges_to(header).filter(|edge| !inside[edge.from as usize]);
            let last = |block: u32| cfg.blocks[block as usize].end as usize - 1;
            let has_scratch =
                |at: usize| !effects[at].is_barrier && dead_register(live[at], RegSet::EMPTY).is_some();
            if cfg.blocks[header].is_root || !into().all(|edge| has_scratch(last(edge.from))) {
                continue;
            }
            let at_header = with_stack(live[cfg.blocks[header].first as usize]);
            // What is live in the loop alone may be where it is stored in, or hold nothing of
            // worth: where a place of the loop is looked at warily, everything is.
            let wanted = into().fold((unchanged & at_header) - by_outer, |wanted, edge| {
                (wanted & with_stack(live[last(edge.from)])) - effects[last(edge.from)].loses
            });
            let used = of_loop().fold(RegSet::EMPTY, |used, index| used | live[index] | effects[index].loses);
            let used =
                into().fold(used, |used, edge| used | live[last(edge.from)] | effects[last(edge.from)].loses);
            let base = base_candidates().find(|&base| !has_base && !used.contains(RegSet::general(base)));
            if wanted == RegSet::EMPTY && base.is_none() {
                continue;
            }
            for edge in into() {
                self.hoisted[last(edge.from)] |= wanted;
                self.begins[last(edge.from)] = base.or(self.begins[last(edge.from)]);
            }
            done.push((inside, wanted, base));
        }
        !done.is_empty()
    }

    /// The forward analysis of the base: it is what holds on all ways, and no instruction's.
    fn spread_base(&mut self, cfg: &Cfg, dominators: &Dominators, effects: &[SlotEffect], live: &[RegSet]) {
        // Not known yet; known to be none; or one.
        let mut before: Vec<Option<Option<Register>>> = (0..cfg.blocks.len())
            .map(|block| (cfg.blocks[block].is_root || !dominators.is_reached(block)).then_some(None))
            .collect();
        let mut open: Vec<usize> = (0..cfg.blocks.len()).filter(|&block| before[block].is_some()).collect();
        while let Some(at) = open.pop() {
            let mut base = before[at].flatten();
            let block = &cfg.blocks[at];
            for index in block.first as usize..block.end as usize {
                base = base.filter(|&base| !live[index].contains(RegSet::general(base)));
                self.base[index] = base;
                base = self.begins[index].or(base);
                let stays = |&base: &Register| !effects[index].loses.contains(RegSet::general(base));
                base = base.filter(stays).filter(|_| !effects[index].is_barrier);
            }
            for edge in cfg.edges_from(at) {
                let to = &mut before[edge.to as usize];
                let now = to.map_or(base, |to| to.filter(|_| to == base));
                if *to != Some(now) {
                    *to = Some(now);
                    open.push(edge.to as usize);
                }
            }
        }
    }

    /// The forward analysis.
    fn spread(&mut self, cfg: &Cfg, dominators: &Dominators, effects: &[SlotEffect], live: &[RegSet]) {
        // At the beginnings of blocks: everything until something is known, nothing where anybody
        // may come from.
        let mut before: Vec<RegSet> = (0..cfg.blocks.len())
            .map(|block| {
                if cfg.blocks[block].is_root || !dominators.is_reached(block) {
                    RegSet::EMPTY
                } else {
                    slots()
                }
            })
            .collect();
        let mut open: Vec<usize> = (0..cfg.blocks.len()).collect();
        while let Some(at) = open.pop() {
            let mut held = before[at];
            let block = &cfg.blocks[at];
            for index in block.first as usize..block.end as usize {
                held = held & with_stack(live[index]);
                self.held[index] = held;
                held = (held | self.hoisted[index]) & with_stack(live[index]);
                held = if effects[index].is_barrier { RegSet::EMPTY } else { held - effects[index].loses };
            }
            for edge in cfg.edges_from(at) {
                let to = edge.to as usize;
                let less = before[to] & held;
                if less != before[to] {
                    before[to] = less;
                    open.push(to);
                }
            }
        }
    }
}

/// Registers that a hoisted save may have.
fn slots() -> RegSet {
    RegSet::GENERAL
}

/// The stack pointer always counts.
fn with_stack(live: RegSet) -> RegSet {
    (live & RegSet::GENERAL) | RegSet::general(RSP)
}

fn slot_effect(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> SlotEffect {
    let effect = effect(instruction, factory);
    let calls = instruction.is_call_near()
        || instruction.is_call_near_indirect()
        || instruction.is_call_far()
        || instruction.is_call_far_indirect();
    SlotEffect {
        loses: (effect.writes | effect.kills) & slots(),
        is_barrier: calls || instruction.is_invalid() || effect.reads == RegSet::ALL,
    }
}

/// Natural loops with their blocks, larger ones first.
pub(crate) fn loops(cfg: &Cfg, dominators: &Dominators) -> Vec<(usize, Vec<bool>)> {
    let mut found = Vec::new();
    for header in (0..cfg.blocks.len()).filter(|&block| dominators.is_reached(block)) {
        let back = |edge: &image::flow::cfg::Edge| {
            let from = edge.from as usize;
            dominators.is_reached(from) && dominators.dominates(header, from)
        };
        let mut open: Vec<usize> = cfg.edges_to(header).filter(back).map(|edge| edge.from as usize).collect();
        if open.is_empty() {
            continue;
        }
        let mut inside = vec![false; cfg.blocks.len()];
        inside[header] = true;
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut inside[block], true) {
                open.extend(cfg.edges_to(block).map(|edge| edge.from as usize));
            }
        }
        found.push((header, inside));
    }
    found.sort_by_key(|(header, inside)| {
        (std::cmp::Reverse(inside.iter().filter(|inside| **inside).count()), *header)
    });
    found.truncate(MOST_LOOPS);
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use image::code::insn::{Flow, Insn};
    use units::Svma;

    const RBX: RegSet = RegSet::general(3);

    /// A unit, and what its slots hold.
    pub(crate) struct Example {
        pub(crate) instructions: Vec<Instruction>,
        pub(crate) insns: Vec<Insn>,
        pub(crate) cfg: Cfg,
        pub(crate) dominators: Dominators,
        pub(crate) sites: Vec<bool>,
        pub(crate) kept: HoistedSaves,
    }

    impl Example {
        /// Of code with sites at these instructions.
        pub(crate) fn of(
            code: &[u8],
            sites: &[usize],
            roots: &[u32],
            live: impl Fn(usize) -> RegSet,
        ) -> Self {
            let mut decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
            let mut instructions = Vec::new();
            let mut insns = Vec::new();
            while decoder.can_decode() {
                let at = decoder.position() as u32;
                let instruction = decoder.decode();
                let flow = match code[at as usize] {
                    0x75 => Flow::Branch8,
                    0xeb => Flow::Jump8,
                    0xe8 => Flow::Call32,
                    0xc3 => Flow::Return,
                    _ => Flow::Next,
                };
                let len = instruction.len() as u8;
                insns.push(Insn { at, len, flow, rip_displacement: 0, never_returns: false });
                instructions.push(instruction);
            }
            let cfg = Cfg::build(Svma(0x1000), code, &insns, &[], roots);
            let dominators = Dominators::of(&cfg);
            let live: Vec<RegSet> = (0..instructions.len()).map(live).collect();
            let sites: Vec<bool> = (0..instructions.len()).map(|index| sites.contains(&index)).collect();
            let kept = HoistedSaves::of(&cfg, &dominators, &instructions, &live, &sites);
            Self { instructions, insns, cfg, dominators, sites, kept }
        }
    }

    /// Of code in which all but rsi is live everywhere.
    fn of(code: &[u8], sites: &[usize], roots: &[u32]) -> HoistedSaves {
        of_live(code, sites, roots, |_| RegSet::ALL - RegSet::general(6))
    }

    fn of_live(code: &[u8], sites: &[usize], roots: &[u32], live: impl Fn(usize) -> RegSet) -> HoistedSaves {
        Example::of(code, sites, roots, live).kept
    }

    // mov edx, 5; loop: mov rax, [rax]; sub rdx, 1; jne loop; ret
    pub(crate) const CHASE: &[u8] = &[0xba, 5, 0, 0, 0, 0x48, 0x8b, 0, 0x48, 0x83, 0xea, 1, 0x75, 0xf7, 0xc3];

    #[test]
    fn what_a_loop_leaves_alone_is_stored_before_it() {
        let kept = of(CHASE, &[1], &[]);
        let (rax, rdx, rsi) = (RegSet::general(0), RegSet::general(2), RegSet::general(6));
        let rest = RegSet::GENERAL - rax - rdx - rsi;
        assert!(kept.hoisted(0) == rest && (1..5).all(|index| kept.hoisted(index) == RegSet::EMPTY));
        assert!(kept.held(0) == RegSet::EMPTY && (1..4).all(|index| kept.held(index) == rest));
    }

    #[test]
    fn what_is_dead_throughout_holds_the_context() {
        let kept = of(CHASE, &[1], &[]);
        assert_eq!((kept.begins(0), kept.base(0)), (Some(6), None));
        assert!((1..4).all(|index| (kept.begins(index), kept.base(index)) == (None, Some(6))));
        // An entry in the middle of the loop; the register is written.
        assert!((1..4).all(|index| of(CHASE, &[1], &[8]).base(index).is_none()));
        // nop; loop: mov rax, [rax]; mov esi, 5; sub rdx, 1; jne loop; ret
        let written = [0x90, 0x48, 0x8b, 0, 0xbe, 5, 0, 0, 0, 0x48, 0x83, 0xea, 1, 0x75, 0xf2, 0xc3];
        let kept = of(&written, &[1], &[]);
        assert!((0..6).all(|index| (kept.begins(index), kept.base(index)) == (None, None)));
    }

    #[test]
    fn what_is_live_in_the_loop_alone_is_not_stored_before_it() {
        // As at places that are looked at warily: rbx may be where the context is found before the
        // loop, and be stored as that.
        let kept =
            of_live(CHASE, &[1], &[], |index| if index == 0 { RegSet::ALL - RBX } else { RegSet::ALL });
        assert!(!kept.hoisted(0).contains(RBX) && kept.hoisted(0).contains(RegSet::general(12)));
        assert!((0..5).all(|index| !kept.held(index).contains(RBX)));
    }

    #[test]
    fn without_sites_nothing_is() {
        assert_eq!(of(CHASE, &[], &[]).hoisted(0), RegSet::EMPTY);
        assert_eq!(of(CHASE, &[], &[]).begins(0), None);
    }

    #[test]
    fn an_entry_past_the_save_finds_nothing_stored() {
        let kept = of(CHASE, &[1], &[5]);
        assert!(
            (0..5).all(|index| kept.held(index) == RegSet::EMPTY && kept.hoisted(index) == RegSet::EMPTY)
        );
        // An entry within the loop: a save before it does not help on all ways.
        let kept = of(CHASE, &[1], &[8]);
        assert!((1..4).all(|index| kept.held(index) == RegSet::EMPTY));
    }

    #[test]
    fn calls_make_an_end_of_it() {
        // nop; loop: mov rax, [rax]; call; sub rdx, 1; jne loop; ret
        let code = [0x90, 0x48, 0x8b, 0, 0xe8, 0, 1, 0, 0, 0x48, 0x83, 0xea, 1, 0x75, 0xf2, 0xc3];
        let kept = of(&code, &[1], &[]);
        assert!((0..6).all(|index| kept.hoisted(index) == RegSet::EMPTY));
    }

    #[test]
    fn outer_loops_store_for_inner_ones_what_they_leave_alone() {
        // nop; outer: mov ecx, 3; inner: mov rax, [rax]; dec rcx; jne inner; mov ebx, [rax]; dec
        // rdx; jne outer; ret
        let code = [
            0x90, 0xb9, 3, 0, 0, 0, 0x48, 0x8b, 0, 0x48, 0xff, 0xc9, 0x75, 0xf8, 0x8b, 0x18, 0x48, 0xff,
            0xca, 0x75, 0xec, 0xc3,
        ];
        let kept = of(&code, &[2], &[]);
        let rdx = RegSet::general(2);
        assert!(kept.hoisted(0).contains(RegSet::general(12)) && !kept.hoisted(0).meets(RBX | rdx));
        // What only the inner one leaves alone is stored between them.
        assert!(kept.hoisted(1) == RBX | rdx);
        assert!(kept.held(2).contains(RegSet::general(12) | RBX | rdx));
        assert!(!kept.held(2).meets(RegSet::general(0) | RegSet::general(1)));
        // Behind the inner loop rbx and rdx are changed.
        assert!(!kept.held(7).meets(RBX | rdx) && kept.held(7).contains(RegSet::general(12)));
    }
}
