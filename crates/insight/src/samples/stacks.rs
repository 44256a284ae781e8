//! Who called what was sampled, as one tree: stacks that begin alike share their outer frames, so
//! the memory does not grow with the time of the run.

use crate::samples::address_space::Place;
use crate::samples::unwind::{Calls, CutOff};
use std::collections::{BTreeMap, HashMap};

/// A node of the tree; the root is the thread itself, in no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

pub(crate) const ROOT: NodeId = NodeId(0);

/// A frame as called by the frame of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub caller: NodeId,
    pub frame: Frame,
}

/// What a node of the tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A program, by its number in `programs`: each stack begins with one.
    Program(u32),
    /// A call, by its instruction.
    Call(Place),
}

/// Samples with one stack and one sampled instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    pub caller: NodeId,
    pub place: Place,
    pub in_kernel: bool,
}

/// All stacks that were sampled.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// The first one is the root, whose frame means nothing.
    nodes: Vec<Node>,
    /// Names of processes.
    pub programs: Vec<Vec<u8>>,
    ids: HashMap<Node, NodeId>,
    pub leaves: HashMap<Leaf, u64>,
    /// Samples with a stack.
    pub samples: u64,
    /// Of those, without their outermost frames.
    pub cut_off: BTreeMap<CutOff, u64>,
    /// Samples with a stack that the kernel had no space for.
    pub lost: u64,
}

/// Frames that are kept apart: 20 MiB.
const MOST_NODES: usize = 256 << 10;

impl Default for Stacks {
    fn default() -> Self {
        let root = Node { caller: ROOT, frame: Frame::Program(0) };
        Self {
            nodes: vec![root],
            programs: Vec::new(),
            ids: HashMap::new(),
            leaves: HashMap::new(),
            samples: 0,
            cut_off: BTreeMap::new(),
            lost: 0,
        }
    }
}

impl Stacks {
    /// Counts a sample of a process of this name.
    pub fn count(&mut self, program: &[u8], sampled: Place, in_kernel: bool, calls: &Calls) {
        self.samples += 1;
        let mut cut_off = calls.cut_off;
        let program = Frame::Program(self.program(program));
        let frames = calls.callers.iter().rev().map(|&place| Frame::Call(place));
        let mut caller = ROOT;
        for frame in [program].into_iter().chain(frames) {
            let Some(called) = self.called(caller, frame) else {
                // Its innermost frames are left out: it counts where the tree ends.
                cut_off = Some(CutOff::TooMany);
                break;
            };
            caller = called;
        }
        if let Some(why) = cut_off {
            *self.cut_off.entry(why).or_default() += 1;
        }
        *self.leaves.entry(Leaf { caller, place: sampled, in_kernel }).or_default() += 1;
    }

    fn program(&mut self, name: &[u8]) -> u32 {
        let known = self.programs.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.programs.push(name.to_vec());
            self.programs.len() - 1
        });
        number as u32
    }

    /// The node of a frame with this caller, if the tree has space for it.
    fn called(&mut self, caller: NodeId, frame: Frame) -> Option<NodeId> {
        let node = Node { caller, frame };
        if let Some(&known) = self.ids.get(&node) {
            return Some(known);
        }
        if self.nodes.len() == MOST_NODES {
            return None;
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.ids.insert(node, id);
        Some(id)
    }

    /// All places that were sampled or called what was sampled, some of them several times.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let calls = self.nodes().filter_map(|(_, node)| match node.frame {
            Frame::Call(place) => Some(place),
            Frame::Program(_) => None,
        });
        self.leaves.keys().map(|leaf| leaf.place).chain(calls)
    }

    /// All nodes but the root. Callers come before what they call.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, Node)> + '_ {
        self.nodes.iter().enumerate().skip(1).map(|(index, node)| (NodeId(index as u32), *node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::MappedId;
    use units::FileOffset;

    fn place(offset: u64) -> Place {
        Place { what: MappedId(0), offset: FileOffset(offset) }
    }

    fn calls(offsets: &[u64], whole: bool) -> Calls {
        let cut_off = (!whole).then_some(CutOff::NotCopied);
        Calls { callers: offsets.iter().copied().map(place).collect(), cut_off }
    }

    #[test]
    fn stacks_share_their_outer_frames() {
        let mut stacks = Stacks::default();
        stacks.count(b"one", place(1), false, &calls(&[10, 20, 30], true));
        stacks.count(b"one", place(1), false, &calls(&[10, 20, 30], true));
        stacks.count(b"one", place(2), false, &calls(&[11, 20, 30], true));
        stacks.count(b"two", place(2), true, &calls(&[11], false));
        assert_eq!((stacks.samples, &stacks.cut_off), (4, &BTreeMap::from([(CutOff::NotCopied, 1)])));
        let nodes: Vec<Node> = stacks.nodes().map(|(_, node)| node).collect();
        let node = |caller: u32, frame: Frame| Node { caller: NodeId(caller), frame };
        let call = |offset: u64| Frame::Call(place(offset));
        assert_eq!(
            nodes,
            [
                node(0, Frame::Program(0)),
                node(1, call(30)),
                node(2, call(20)),
                node(3, call(10)),
                node(3, call(11)),
                node(0, Frame::Program(1)),
                node(6, call(11))
            ]
        );
        let twice = Leaf { caller: NodeId(4), place: place(1), in_kernel: false };
        assert_eq!(stacks.leaves[&twice], 2);
    }
}
