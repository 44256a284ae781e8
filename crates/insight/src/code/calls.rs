//! The tree of calls with names, as the record has it: nodes of one caller that stand for the same
//! line are one node, whichever instruction of the line was sampled.
//!
//! Only some samples have a stack. So what a function takes itself is counted by all samples, and
//! shared out among the callers that its stacks have ([`shared_out`]).

mod shared_out;

use self::shared_out::{Counted, SharedOut};
use crate::code::cause::Cause;
use crate::code::made_code::MadeCode;
use crate::code::source::{Frames, NamedFrame, Source, is_start};
use crate::samples::address_space::{MappedId, Place};
use crate::samples::stacks::{Frame, NodeId, ROOT, ScriptLine, Stacks};
use crate::samples::tally::{PlaceTally, Tally};
use crate::samples::unwind::CutOff;
use records::profile::{CallFrame, CallNode, CallTree, CutOffStacks};
use std::collections::{BTreeMap, HashMap, HashSet};
use units::Svma;

/// The tree, and who calls each load most often.
pub(crate) struct Calls {
    /// Its nodes have no samples yet.
    tree: CallTree,
    counted: SharedOut,
    callers: HashMap<(MappedId, Svma), Callers>,
    /// What ran for the lines of scripts.
    pub in_scripts: Vec<InScript>,
}

/// Samples with one stack whose innermost line of a script is known.
pub(crate) struct InScript {
    /// Its number in the tally.
    pub line: u32,
    pub samples: u64,
    /// The load that the core waited for, by its file and address.
    pub load: Option<(u32, Svma)>,
    /// The function that ran: the interpreter itself, or what it called.
    pub runs: Option<String>,
    /// The innermost function with a name: that one, or what called it for this line.
    pub named: Option<String>,
}

/// The most frequent callers of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callers {
    /// The innermost first.
    pub names: Vec<String>,
    pub samples: u64,
    /// Samples with any stack.
    pub of_samples: u64,
}

/// More callers of a load than this are for the tree to show.
const MOST_CALLERS: usize = 16;

impl Calls {
    pub(crate) fn of(tally: &Tally, sources: &HashMap<u32, Source<'_>>, made: &MadeCode) -> Self {
        let stacks = &tally.stacks;
        let mut tree = Building::new(tally, sources, made);
        let mut scripts: HashMap<usize, u32> = HashMap::new();
        let mut built: HashMap<NodeId, Option<usize>> = HashMap::from([(ROOT, None)]);
        for (id, node) in stacks.nodes() {
            let caller = built[&node.caller];
            let at = match node.frame {
                Frame::Program(program) => {
                    tree.program(&String::from_utf8_lossy(&stacks.programs[program as usize]))
                }
                Frame::Call(place) => tree.place(caller, place),
                Frame::Script(line) => tree.script(caller, &stacks.scripts[line as usize]),
            };
            if let Frame::Script(line) = node.frame {
                scripts.insert(at, line);
            }
            built.insert(id, Some(at));
        }
        let mut in_scripts = Vec::new();
        let mut by_load: HashMap<(MappedId, Svma), HashMap<Vec<String>, u64>> = HashMap::new();
        let mut leaves: Vec<_> = stacks.leaves.iter().collect();
        leaves.sort_unstable_by_key(|(leaf, _)| (leaf.caller, leaf.place, leaf.in_kernel));
        let mut counted = SharedOut::default();
        for (leaf, &samples) in leaves {
            let caller = built[&leaf.caller];
            let load = tree.load(leaf.place).filter(|_| !leaf.in_kernel);
            let node = tree.leaf(caller, leaf.place, leaf.in_kernel);
            let function = tree.function_of(leaf.place, leaf.in_kernel);
            let callers: Vec<usize> =
                std::iter::successors(caller, |&node| tree.nodes[node].caller).collect();
            let script = callers.iter().position(|node| scripts.contains_key(node));
            if let Some(script) = script {
                let line = scripts[&callers[script]];
                let runs = tree.named(leaf.place).pop().and_then(|own| own.function);
                let own = runs.clone().filter(|name| !tree.is_start(leaf.place, name));
                let named = own.or_else(|| callers[..script].iter().find_map(|&node| tree.name_of(node)));
                in_scripts.push(InScript { line, samples, load, runs, named });
            }
            counted.stacks.push(Counted { function, load, samples, node: Some(node) });
            if let Some((_, load)) = load {
                let names = tree.names_outwards(caller);
                *by_load.entry((leaf.place.what, load)).or_default().entry(names).or_default() += samples;
            }
        }
        if stacks.samples > 0 {
            tree.count_all(&mut counted);
        }
        let callers = by_load.into_iter().map(|(load, chains)| (load, most_frequent(chains))).collect();
        let tree = CallTree {
            samples: stacks.samples,
            cut_off: stacks.cut_off.values().sum(),
            cut_off_because: because(stacks),
            lost: stacks.lost,
            frames: tree.frames,
            nodes: tree.nodes,
        };
        Self { tree, counted, callers, in_scripts }
    }

    /// The tree with all samples; the core did not wait for the memory of these loads, by their
    /// file and address.
    pub(crate) fn into_tree(mut self, computed: &HashSet<(u32, Svma)>) -> CallTree {
        self.counted.count(&mut self.tree.nodes, computed);
        self.tree
    }

    /// Who calls the function of this load.
    pub(crate) fn callers(&self, what: u32, load: Svma) -> Option<&Callers> {
        self.callers.get(&(MappedId(what), load))
    }
}

/// Why stacks are known without their outermost frames, most frequent first.
fn because(stacks: &Stacks) -> Vec<CutOffStacks> {
    let told =
        |(why, samples): (&CutOff, &u64)| CutOffStacks { why: why.word().to_owned(), samples: *samples };
    let mut because: Vec<CutOffStacks> = stacks.cut_off.iter().map(told).collect();
    because.sort_by_key(|told| std::cmp::Reverse(told.samples));
    because
}

fn most_frequent(chains: HashMap<Vec<String>, u64>) -> Callers {
    let of_samples = chains.values().sum();
    let most = chains.into_iter().max_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b.cmp(a)));
    let (names, samples) = most.unwrap_or_default();
    Callers { names, samples, of_samples }
}

/// The tree so far.
struct Building<'t, 'd> {
    tally: &'t Tally,
    sources: &'t HashMap<u32, Source<'d>>,
    made: &'t MadeCode,
    frames: Vec<CallFrame>,
    frame_ids: HashMap<CallFrame, usize>,
    nodes: Vec<CallNode>,
    node_ids: HashMap<(Option<usize>, usize), usize>,
    /// What stands at a place: found once.
    places: HashMap<Place, Frames>,
    /// Numbers of functions, by file, name, and whether in the kernel.
    functions: HashMap<(MappedId, Option<String>, bool), u32>,
}

impl<'t, 'd> Building<'t, 'd> {
    fn new(tally: &'t Tally, sources: &'t HashMap<u32, Source<'d>>, made: &'t MadeCode) -> Self {
        Self {
            tally,
            sources,
            made,
            frames: Vec::new(),
            frame_ids: HashMap::new(),
            nodes: Vec::new(),
            node_ids: HashMap::new(),
            places: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    /// A place that was sampled, below its caller.
    fn leaf(&mut self, caller: Option<usize>, place: Place, in_kernel: bool) -> usize {
        let at = self.place(caller, place);
        if !in_kernel {
            return at;
        }
        self.node(Some(at), CallFrame { function: Some("[kernel]".to_owned()), ..Self::unnamed() })
    }

    /// The number of the function that a place is in.
    fn function_of(&mut self, place: Place, in_kernel: bool) -> u32 {
        let name = self.named(place).pop().and_then(|own| own.function);
        let next = self.functions.len() as u32;
        *self.functions.entry((place.what, name, in_kernel)).or_insert(next)
    }

    /// All samples: with a node of its own, below the program, where no stack leads to a function.
    fn count_all(&mut self, counted: &mut SharedOut) {
        let with_stack: HashSet<u32> = counted.stacks.iter().map(|stack| stack.function).collect();
        let mut places: Vec<_> = self.tally.places.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        for (&place, counts) in places {
            for (in_kernel, samples) in [(false, counts.user), (true, counts.kernel)] {
                if samples == 0 {
                    continue;
                }
                let load = self.load(place).filter(|_| !in_kernel);
                let function = self.function_of(place, in_kernel);
                if with_stack.contains(&function) {
                    counted.all.push(Counted { function, load, samples, node: None });
                    continue;
                }
                for (program, samples) in self.by_program(counts, samples) {
                    let program = self.program(&program);
                    let node = Some(self.leaf(Some(program), place, in_kernel));
                    counted.all.push(Counted { function, load, samples, node });
                }
            }
        }
    }

    /// The samples of a place by the program that ran, as those that were kept have it.
    fn by_program(&self, counts: &PlaceTally, samples: u64) -> Vec<(String, u64)> {
        let mut kept: BTreeMap<&[u8], u64> = BTreeMap::new();
        for one in counts.kept.iter().chain(&counts.kept_in_kernel) {
            let process = self.tally.processes.get(&one.sample.process);
            *kept.entry(process.map_or(b"?", |process| &process.name)).or_default() += 1;
        }
        if kept.is_empty() {
            return vec![("?".to_owned(), samples)];
        }
        let all: u64 = kept.values().sum();
        let mut before = 0;
        let part = |(name, count): (&[u8], u64)| {
            // So that all parts together are the whole.
            let part = samples * (before + count) / all - samples * before / all;
            before += count;
            (String::from_utf8_lossy(name).into_owned(), part)
        };
        kept.into_iter().map(part).filter(|(_, part)| *part > 0).collect()
    }

    fn unnamed() -> CallFrame {
        CallFrame { function: None, module: None, address: None, file: None, line: None, is_inlined: false }
    }

    /// A line of a script, which an interpreter runs.
    fn script(&mut self, caller: Option<usize>, script: &ScriptLine) -> usize {
        let frame = CallFrame {
            function: Some(script.function.clone()),
            module: Some(script.file.clone()),
            file: Some(script.file.clone()),
            line: Some(script.line),
            ..Self::unnamed()
        };
        self.node(caller, frame)
    }

    fn program(&mut self, name: &str) -> usize {
        self.node(None, CallFrame { function: Some(name.to_owned()), ..Self::unnamed() })
    }

    /// The node of a place below its caller's, with nodes between them for functions that were
    /// inlined there.
    fn place(&mut self, caller: Option<usize>, place: Place) -> usize {
        let named = self.named(place);
        let made = self.made.at(self.tally, place);
        let source = self.sources.get(&place.what.0);
        let module = source.map_or_else(
            || match made {
                Some(made) => made.module.clone(),
                None => String::from_utf8_lossy(&self.tally.mapped(place.what).name).into_owned(),
            },
            |source| source.file.path.clone(),
        );
        let address = source.and_then(|source| source.code.module.image.address_of(place.offset));
        let last = named.len() - 1;
        let mut at = caller;
        for (index, frame) in named.into_iter().enumerate().rev() {
            let frame = CallFrame {
                function: frame.function,
                module: Some(module.clone()),
                address: Some(address.map_or(place.offset.0, |address| address.0)),
                file: frame.line.as_ref().map(|line| line.file.clone()),
                line: frame.line.map(|line| line.line),
                is_inlined: index != last,
            };
            at = Some(self.node(at, frame));
        }
        at.expect("a place has a frame")
    }

    fn named(&mut self, place: Place) -> Frames {
        let (sources, made) = (self.sources, self.made.at(self.tally, place));
        let find = || {
            let source = sources.get(&place.what.0)?;
            let address = source.code.module.image.address_of(place.offset)?;
            let mut frames = source.frames(address);
            if let Some(own) = frames.last_mut() {
                own.function.get_or_insert_with(|| source.start(address));
            }
            Some(frames)
        };
        let unknown = || vec![NamedFrame { function: made.map(|made| made.name.clone()), line: None }];
        self.places.entry(place).or_insert_with(|| find().unwrap_or_else(unknown)).clone()
    }

    /// The node of a frame below its caller's. Frames that differ in their address alone are one.
    fn node(&mut self, caller: Option<usize>, frame: CallFrame) -> usize {
        let key = CallFrame { address: frame.address.filter(|_| frame.function.is_none()), ..frame.clone() };
        let frames = &mut self.frames;
        let id = *self.frame_ids.entry(key).or_insert_with(|| {
            frames.push(frame);
            frames.len() - 1
        });
        let nodes = &mut self.nodes;
        *self.node_ids.entry((caller, id)).or_insert_with(|| {
            nodes.push(CallNode { caller, frame: id, samples: 0, stall: 0 });
            nodes.len() - 1
        })
    }

    /// The load that a sample at a place says the core waited for, by its file and address.
    fn load(&self, place: Place) -> Option<(u32, Svma)> {
        let code = &self.sources.get(&place.what.0)?.code;
        match code.cause(code.module.image.address_of(place.offset)?) {
            Cause::Load(load) => Some((place.what.0, load)),
            _ => None,
        }
    }

    /// Whether a function at a place has no name but where it begins.
    fn is_start(&self, place: Place, name: &str) -> bool {
        self.sources.get(&place.what.0).is_some_and(|source| is_start(name, &source.file.path))
    }

    /// The name of a node's function, if that has one.
    fn name_of(&self, node: usize) -> Option<String> {
        let frame = &self.frames[self.nodes[node].frame];
        let (function, module) = (frame.function.as_ref()?, frame.module.as_ref());
        let is_start = module.is_some_and(|module| is_start(function, module));
        (!is_start).then(|| function.clone())
    }

    /// The names of a node and its callers, up to the program.
    fn names_outwards(&self, from: Option<usize>) -> Vec<String> {
        let nodes = std::iter::successors(from, |&node| self.nodes[node].caller);
        let names = nodes.filter(|&node| self.nodes[node].caller.is_some()).map(|node| {
            let frame = &self.frames[self.nodes[node].frame];
            frame.function.clone().unwrap_or_else(|| "?".to_owned())
        });
        names.take(MOST_CALLERS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::Mapping;
    use crate::samples::tally::{Mapped, Sample};
    use units::{Avma, FileOffset};

    #[test]
    fn samples_without_a_stack_are_of_the_program_that_ran() {
        let mut tally = Tally::default();
        let file = Mapped { name: b"/lib/x".to_vec(), device: (8, 1), inode: 7, area: None };
        let what = tally.id(file);
        let (start, end, offset) = (Avma(0x1000), Avma(0x3000), FileOffset(0));
        for (process, name) in [(1, &b"first"[..]), (2, b"second")] {
            let entry = tally.processes.entry(process).or_default();
            entry.name = name.to_vec();
            entry.space.map(Mapping { start, end, offset, what, is_shared: false });
        }
        for time_ns in 0..40 {
            let process = if time_ns % 4 == 0 { 1 } else { 2 };
            let ip = Some(Avma(0x1010));
            tally.count(Sample { process, thread: process, time_ns, in_kernel: false, ip, registers: None });
        }
        // One stack, of the first program, in another file.
        let other = tally.id(Mapped { name: b"/lib/y".to_vec(), device: (8, 1), inode: 8, area: None });
        let elsewhere = Place { what: other, offset: FileOffset(0x900) };
        let calls = crate::samples::unwind::Calls::default();
        tally.stacks.count(b"first", elsewhere, false, &calls);
        let sources = HashMap::new();
        let made = MadeCode::default();
        let place = Place { what, offset: FileOffset(0x10) };
        let tree = Building::new(&tally, &sources, &made);
        let parts = tree.by_program(&tally.places[&place], 41);
        assert_eq!(parts, [("first".to_owned(), 10), ("second".to_owned(), 31)]);
        assert_eq!(tree.by_program(&PlaceTally::default(), 3), [("?".to_owned(), 3)]);
        let tree = Calls::of(&tally, &sources, &made).into_tree(&HashSet::new());
        let below = |program: &str| -> u64 {
            let is_it = |node: &CallNode| {
                node.caller
                    .is_some_and(|at| tree.frames[tree.nodes[at].frame].function.as_deref() == Some(program))
            };
            tree.nodes.iter().filter(|node| is_it(node)).map(|node| node.samples).sum()
        };
        assert_eq!((below("first"), below("second")), (10, 30));
    }
}
