//! What a context's slots hold where a piece begins (for rule R13): a yield need not store what they hold already. A slot
//! holds its register from where a piece has stored it on all ways until an instruction writes it, or control goes where
//! this unit's graph does not show it.

use super::bounds::Graph;
use super::state::{State, Value};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess};

/// What one piece and its instruction do to slots, which are bits as registers are numbered; RSP's is for its own word.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// What the piece stores, on all ways through it.
    pub(crate) gains: u16,
    /// What is kept through piece and instruction.
    pub(crate) keeps: u16,
}

impl Step {
    /// Of an instruction without a piece.
    pub(crate) fn of(insn: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let shown = matches!(
            insn.flow_control(),
            FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
        );
        if !shown {
            return Self { gains: 0, keeps: 0 };
        }
        let mut keeps = u16::MAX;
        for used in factory.info(insn).used_registers() {
            let reads = matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
            );
            let register = used.register().full_register();
            if !reads && register.is_gpr() {
                keeps &= !(1 << register.number());
            }
        }
        Self { gains: 0, keeps }
    }

    /// With a piece before it: what is known behind that if the slots held nothing before, and if they held everything.
    pub(crate) fn behind(mut self, nothing: Option<&State>, everything: Option<&State>) -> Self {
        self.gains = nothing.map_or(0, |state| state.kept.general);
        let values = everything.map_or([Value::Anything; 16], |state| state.general);
        for (number, value) in values.into_iter().enumerate() {
            if value != Value::Program(number as u8) {
                self.keeps &= !(1 << number);
            }
        }
        self
    }
}

/// For each instruction of the graph what the slots hold before its piece.
pub(crate) fn before(graph: &Graph, steps: &[Step], entries: impl Iterator<Item = u32>) -> Vec<u16> {
    let mut led_to = vec![false; steps.len()];
    for node in 0..steps.len() as u32 {
        for to in graph.successors(node) {
            if let Some(led_to) = led_to.get_mut(to as usize) {
                *led_to = true;
            }
        }
    }
    let mut held: Vec<u16> = led_to.iter().map(|&led_to| if led_to { u16::MAX } else { 0 }).collect();
    for entry in entries.chain(graph.entries.iter().copied()) {
        if let Some(held) = held.get_mut(entry as usize) {
            *held = 0;
        }
    }
    let mut open: Vec<u32> = (0..steps.len() as u32).rev().collect();
    while let Some(node) = open.pop() {
        let step = &steps[node as usize];
        let behind = (held[node as usize] | step.gains) & step.keeps;
        for to in graph.successors(node) {
            let Some(before) = held.get_mut(to as usize) else { continue };
            if *before & behind != *before {
                *before &= behind;
                open.push(to);
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::super::bounds::Node;
    use super::*;

    const RBX: u16 = 1 << 3;
    const RDX: u16 = 1 << 2;

    fn graph(ways: &[(u32, u32)], count: u32) -> Graph {
        let mut graph = Graph::default();
        for node in 0..count {
            let begin = graph.targets.len() as u32;
            graph.targets.extend(ways.iter().filter(|way| way.0 == node).map(|way| way.1));
            graph.nodes.push(Node { targets: (begin, graph.targets.len() as u32), ..Node::default() });
        }
        graph
    }

    #[test]
    fn slots_hold_what_was_stored_on_all_ways_until_it_is_written() {
        // 0 -> 1 -> 2 -> 1, 2 -> 3: stored at 0, rdx written at 2.
        let graph = graph(&[(0, 1), (1, 2), (2, 1), (2, 3)], 4);
        let plain = Step { gains: 0, keeps: u16::MAX };
        let mut steps = [plain; 4];
        steps[0].gains = RBX | RDX;
        steps[2].keeps = !RDX;
        assert_eq!(before(&graph, &steps, [0].into_iter()), [0, RBX, RBX, RBX]);
        // Somebody else enters at 2.
        assert_eq!(before(&graph, &steps, [0, 2].into_iter()), [0, 0, 0, 0]);
    }

    #[test]
    fn calls_and_writes_lose_them() {
        let mut factory = InstructionInfoFactory::new();
        let mut keeps = |bytes: &[u8]| {
            let insn = iced_x86::Decoder::with_ip(64, bytes, 0x1000, iced_x86::DecoderOptions::NONE).decode();
            Step::of(&insn, &mut factory).keeps
        };
        assert_eq!(keeps(&[0x90]), u16::MAX);
        assert_eq!(keeps(&[0xe8, 0, 0, 0, 0]), 0); // call
        assert_eq!(keeps(&[0x0f, 0x05]), 0); // syscall
        assert_eq!(keeps(&[0xb3, 1]), !RBX); // mov bl, 1
        assert_eq!(keeps(&[0x0f, 0x44, 0xd8]), !RBX); // cmove ebx, eax
        assert_eq!(keeps(&[0x53]), !(1 << 4)); // push rbx
        assert_eq!(keeps(&[0x48, 0x89, 0x18]), u16::MAX); // mov [rax], rbx
    }
}
