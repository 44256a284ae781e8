//! What is known where a piece begins (for rule R13), because of pieces before it: which slots of
//! the context hold their registers, so that a yield need not store them, and which registers hold
//! the context, so that it need not ask the area for it.
//!
//! Either is so from where a piece has made it so on all ways until an instruction writes the
//! register, or control goes where this unit's graph does not show it. The context that runs is the
//! same all that time: it is the thread's own, and where it is not (in handlers), functions begin
//! and end.
//!
//! Formally: with `K(n)` for what is known before node `n`, and `f(n, K)` for what is behind it if
//! `K` is known before it, `K(n)` is nothing at entries and wherever no edge leads to, and `K(m)`
//! is a part of `f(n, K(n))` for each edge from `n` to `m`. Any such `K` is true on all ways, by
//! induction over their lengths.
//!
//! What yields of a loop leave in the slots ([`super::sunk`]) goes along: registers that may hold
//! anything where control comes from such a yield. Of these there are more where ways meet, not
//! less, and they are looked for at entries, too.
//!
//! What is true where more is known is true where less is. So for `f(n, K)` a piece may be run with
//! less than `K` ([`EarlierSaves::parts`]): a register that happens to hold the context is then one
//! like others, which the piece may store and get back. Without that, one that only seems to hold
//! it while `K` is looked for would make an error of such a store, and what follows would be known
//! by nobody.

use super::bounds::Graph;
use super::run::Done;
use super::state::{EarlierSaves, State, SunkNote, Value};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess};

impl EarlierSaves {
    pub(crate) const NOTHING: Self =
        Self { slots: 0, bases: 0, away: 0, note: SunkNote { registers: 0, from: 0, to: 0 } };

    /// Behind a piece, before which so much was known.
    pub(crate) fn behind(self, state: &State, done: &Done) -> Self {
        let before = (self.away != 0).then_some(self.note);
        let note = match (before, done.note) {
            (Some(before), Some(note)) if before != note => SunkNote::default(),
            (before, note) => note.or(before).unwrap_or_default(),
        };
        let mut known = Self { note, ..Self::NOTHING };
        for (number, &value) in state.general.iter().enumerate() {
            match value {
                Value::Program(of) if usize::from(of) == number => known.slots |= 1 << number,
                Value::Context => known.bases |= 1 << number,
                Value::Anything if (known.note.registers | self.away) >> number & 1 == 1 => {
                    known.slots |= 1 << number;
                    known.away |= 1 << number;
                }
                _ => {}
            }
        }
        known.slots &= state.kept.general;
        known
    }

    /// Of those registers only; what is away stays so.
    pub(crate) fn of(self, registers: u16) -> Self {
        Self { slots: self.slots & registers, bases: self.bases & registers, ..self }
    }

    /// All of it; of the registers that hold the context each alone, and none.
    pub(crate) fn parts(self) -> impl Iterator<Item = Self> {
        let several = self.bases.count_ones() > 1;
        let alone = (0..16).map(|number| 1 << number).filter(move |bit| several && self.bases & bit != 0);
        let less = alone.chain((self.bases != 0).then_some(0));
        std::iter::once(self).chain(less.map(move |bases| Self { bases, ..self }))
    }

    fn and(self, other: Self) -> Self {
        let note = match (self.away, other.away) {
            (_, 0) => self.note,
            (0, _) => other.note,
            _ if self.note == other.note => self.note,
            _ => SunkNote::default(),
        };
        Self {
            slots: self.slots & other.slots,
            bases: self.bases & other.bases,
            away: self.away | other.away,
            note,
        }
    }
}

/// Registers of which an instruction leaves alone what is known; none where control goes where the
/// graph does not show it.
pub(crate) fn kept_by(insn: &Instruction, factory: &mut InstructionInfoFactory) -> u16 {
    let shown = matches!(
        insn.flow_control(),
        FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
    );
    if !shown {
        return 0;
    }
    let mut kept = u16::MAX;
    for used in factory.info(insn).used_registers() {
        let reads = matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
        );
        let register = used.register().full_register();
        if !reads && register.is_gpr() {
            kept &= !(1 << register.number());
        }
    }
    kept
}

/// For each node of the graph what is known before its piece; `behind` says what is behind piece
/// and instruction, if so much is known before them.
pub(crate) fn before(
    graph: &Graph,
    entries: impl Iterator<Item = u32>,
    mut behind: impl FnMut(u32, EarlierSaves) -> EarlierSaves,
) -> Vec<EarlierSaves> {
    let count = graph.nodes.len() as u32;
    let mut begins = vec![true; count as usize];
    for to in (0..count).flat_map(|node| graph.successors(node)) {
        if let Some(begins) = begins.get_mut(to as usize) {
            *begins = false;
        }
    }
    for entry in entries.chain(graph.entries.iter().copied()) {
        if let Some(begins) = begins.get_mut(entry as usize) {
            *begins = true;
        }
    }
    let mut known: Vec<Option<EarlierSaves>> = vec![None; count as usize];
    let mut open = Vec::new();
    // What none of these leads to begins somewhere, too.
    let all = (0..count).filter(|&node| begins[node as usize]).chain(0..count);
    for first in all {
        if known[first as usize].is_none() || begins[first as usize] {
            known[first as usize] = Some(EarlierSaves::NOTHING);
            open.push(first);
        }
        while let Some(node) = open.pop() {
            let behind = behind(node, known[node as usize].unwrap_or(EarlierSaves::NOTHING));
            for to in graph.successors(node) {
                let Some(before) = known.get_mut(to as usize) else { continue };
                let now = before.map_or(behind, |before| before.and(behind));
                let now = if begins[to as usize] { now.of(0) } else { now };
                if *before != Some(now) {
                    *before = Some(now);
                    open.push(to);
                }
            }
        }
    }
    known.into_iter().map(|known| known.unwrap_or(EarlierSaves::NOTHING)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bounds::Node;
    use super::*;

    const RBX: u16 = 1 << 3;
    const RDX: u16 = 1 << 2;

    fn of(slots: u16, bases: u16) -> EarlierSaves {
        EarlierSaves { slots, bases, ..EarlierSaves::NOTHING }
    }

    fn graph(ways: &[(u32, u32)], count: u32) -> Graph {
        let mut graph = Graph::default();
        for node in 0..count {
            let begin = graph.targets.len() as u32;
            graph.targets.extend(ways.iter().filter(|way| way.0 == node).map(|way| way.1));
            graph.nodes.push(Node { targets: (begin, graph.targets.len() as u32), ..Node::default() });
        }
        graph
    }

    /// 0 -> 1 -> 2 -> 1, 2 -> 3: at 0 both are made known of rbx and rdx, 2 writes rdx.
    fn of_loop(ways: &[(u32, u32)], entries: &[u32]) -> Vec<EarlierSaves> {
        let count = ways.iter().map(|way| way.0.max(way.1)).max().map_or(0, |most| most + 1);
        before(&graph(ways, count), entries.iter().copied(), |node, known| match node {
            0 => of(RBX | RDX, RBX | RDX),
            2 => known.of(!RDX),
            _ => known,
        })
    }

    #[test]
    fn it_is_known_on_all_ways_until_it_is_written() {
        let ways = [(0, 1), (1, 2), (2, 1), (2, 3)];
        let (nothing, rbx) = (EarlierSaves::NOTHING, of(RBX, RBX));
        assert_eq!(of_loop(&ways, &[0]), [nothing, rbx, rbx, rbx]);
        // Other code enters at 2.
        assert_eq!(of_loop(&ways, &[0, 2]), [nothing; 4]);
        // Nobody enters where 4 is, which leads into the loop.
        let and_more = [(0, 1), (1, 2), (2, 1), (2, 3), (4, 1), (4, 4)];
        assert_eq!(of_loop(&and_more, &[0]), [nothing; 5]);
    }

    #[test]
    fn less_is_known_too() {
        let parts = |slots, bases| of(slots, bases).parts().map(|part| part.bases).collect::<Vec<_>>();
        assert_eq!(parts(RBX, RBX | RDX), [RBX | RDX, RDX, RBX, 0]);
        assert_eq!(parts(RBX, RBX), [RBX, 0]);
        assert_eq!(parts(RBX, 0), [0]);
        assert!(of(RBX, RDX).parts().all(|part| part.slots == RBX));
    }

    #[test]
    fn calls_and_writes_lose_it() {
        let mut factory = InstructionInfoFactory::new();
        let mut kept = |bytes: &[u8]| {
            let insn = iced_x86::Decoder::with_ip(64, bytes, 0x1000, iced_x86::DecoderOptions::NONE).decode();
            kept_by(&insn, &mut factory)
        };
        assert_eq!(kept(&[0x90]), u16::MAX);
        assert_eq!(kept(&[0xe8, 0, 0, 0, 0]), 0); // call
        assert_eq!(kept(&[0x0f, 0x05]), 0); // syscall
        assert_eq!(kept(&[0xb3, 1]), !RBX); // mov bl, 1
        assert_eq!(kept(&[0x0f, 0x44, 0xd8]), !RBX); // cmove ebx, eax
        assert_eq!(kept(&[0x53]), !(1 << 4)); // push rbx
        assert_eq!(kept(&[0x48, 0x89, 0x18]), u16::MAX); // mov [rax], rbx
    }
}
