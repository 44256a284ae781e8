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
    /// A line that an interpreter was at, by its number in `scripts`: it called the frame of the
    /// interpreter that ran it.
    Script(u32),
}

/// A line of a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScriptLine {
    /// As `Python`.
    pub language: &'static str,
    pub function: String,
    pub file: String,
    pub line: u32,
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
    pub scripts: Vec<ScriptLine>,
    script_ids: HashMap<ScriptLine, u32>,
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
            scripts: Vec::new(),
            script_ids: HashMap::new(),
            ids: HashMap::new(),
            leaves: HashMap::new(),
            samples: 0,
            cut_off: BTreeMap::new(),
            lost: 0,
        }
    }
}

impl Stacks {
    /// The number of a line of a script, given now or before.
    pub fn script(&mut self, line: ScriptLine) -> u32 {
        let next = self.scripts.len() as u32;
        let scripts = &mut self.scripts;
        *self.script_ids.entry(line).or_insert_with_key(|line| {
            scripts.push(line.clone());
            next
        })
    }

    /// Counts a sample of a process of this name.
    pub fn count(&mut self, program: &[u8], sampled: Place, in_kernel: bool, calls: &Calls) {
        self.add(program, sampled, in_kernel, calls, &[], 1);
    }

    /// Counts as many samples that are alike.
    pub fn count_times(
        &mut self,
        program: &[u8],
        sampled: Place,
        in_kernel: bool,
        calls: &Calls,
        samples: u64,
    ) {
        self.add(program, sampled, in_kernel, calls, &[], samples);
    }

    /// Counts a sample some of whose frames run these lines of scripts: by the number of the frame,
    /// 0 for the one that was sampled, and the number of the line.
    pub fn count_scripts(
        &mut self,
        program: &[u8],
        sampled: Place,
        in_kernel: bool,
        calls: &Calls,
        scripts: &[(usize, u32)],
    ) {
        self.add(program, sampled, in_kernel, calls, scripts, 1);
    }

    fn add(
        &mut self,
        program: &[u8],
        sampled: Place,
        in_kernel: bool,
        calls: &Calls,
        scripts: &[(usize, u32)],
        samples: u64,
    ) {
        self.samples += samples;
        let mut cut_off = calls.cut_off;
        let program = Frame::Program(self.program(program));
        let script = |frame: usize| {
            let line = scripts.iter().find(|(number, _)| *number == frame);
            line.map(|&(_, line)| Frame::Script(line))
        };
        let callers = calls.callers.iter().enumerate().rev();
        let frames = callers
            .flat_map(|(number, &place)| [script(number + 1), Some(Frame::Call(place))])
            .chain([script(0)])
            .flatten();
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
            *self.cut_off.entry(why).or_default() += samples;
        }
        *self.leaves.entry(Leaf { caller, place: sampled, in_kernel }).or_default() += samples;
    }

    /// Counts the samples of these places at others.
    pub(crate) fn move_leaves(&mut self, moves: &HashMap<Place, Place>) {
        let leaves = std::mem::take(&mut self.leaves);
        for (leaf, samples) in leaves {
            let place = moves.get(&leaf.place).copied().unwrap_or(leaf.place);
            *self.leaves.entry(Leaf { place, ..leaf }).or_default() += samples;
        }
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
            Frame::Program(_) | Frame::Script(_) => None,
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
        Calls { callers: offsets.iter().copied().map(place).collect(), cut_off, registers: Vec::new() }
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

    #[test]
    fn lines_of_scripts_call_the_interpreters_frames() {
        let mut stacks = Stacks::default();
        let line = |line| ScriptLine { language: "Python", function: "f".into(), file: "a.py".into(), line };
        let [inner, outer] = [12, 30].map(|number| stacks.script(line(number)));
        assert_eq!((stacks.script(line(12)), stacks.scripts.len()), (inner, 2));
        // Sampled in the interpreter, which a function called that the interpreter called.
        let found = calls(&[10, 20, 30], true);
        stacks.count_scripts(b"python3", place(1), false, &found, &[(0, inner), (2, outer)]);
        let frames: Vec<Frame> = stacks.nodes().map(|(_, node)| node.frame).collect();
        let call = |offset: u64| Frame::Call(place(offset));
        assert_eq!(
            frames,
            [Frame::Program(0), call(30), Frame::Script(outer), call(20), call(10), Frame::Script(inner)]
        );
    }
}
