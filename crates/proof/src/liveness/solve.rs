//! The equations of one function, with all its parts, and their solutions.

use super::body::{Block, Body, BodyPlace, Last, Out, UNKNOWN};
use super::order::knots;
use super::set::{
    ALL, ANY_ARGUMENTS, ARGUMENTS, CALLEE_SAVED, CLOBBERED, RED_ZONE, RESERVED, RESULTS, STATUS_FLAGS, Set,
};

/// What callers need to know of a function that is entered at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// May be read before it is overwritten, by it or by what it calls.
    pub(crate) reads: Set,
    /// Is seen to be read.
    pub(crate) seen: Set,
    /// Overwritten on every way to every return.
    pub(crate) overwrites: Set,
    pub(crate) returns: bool,
}

impl Summary {
    /// What the search begins with. It only ever gets worse.
    pub(crate) const HOPED: Self = Self { reads: 0, seen: 0, overwrites: ALL, returns: false };
    const UNKNOWN: Self = Self { reads: UNKNOWN.0, seen: 0, overwrites: UNKNOWN.1, returns: true };
}

/// A way of looking at a function.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    /// Needed at returns.
    pub(crate) at_return: Set,
    /// Needed where nobody knows what follows.
    pub(crate) unknown: Set,
    /// What functions read that are known by the ABI alone.
    pub(crate) arguments: Set,
    /// What those read of which not even the convention is known.
    pub(crate) by_pointer: Set,
    /// Whether only what is seen counts.
    pub(crate) seen: bool,
}

impl Way {
    /// What the function itself may read.
    pub(crate) const READING: Self =
        Self { at_return: 0, unknown: ALL, arguments: ARGUMENTS, by_pointer: ANY_ARGUMENTS, seen: false };
    /// What it is seen to read.
    pub(crate) const SEEING: Self =
        Self { at_return: 0, unknown: 0, arguments: 0, by_pointer: 0, seen: true };
    /// What must be kept, if `at_return` must be at its returns.
    pub(crate) fn keeping(at_return: Set) -> Self {
        Self { at_return, ..Self::READING }
    }
}

/// What comes of registers on the ways from a function's entries to its returns.
pub(crate) struct Forwards {
    /// Overwritten on every way.
    overwrites: Set,
    /// Put on the stack as they were found, and got back from there: possibly on purpose.
    pub(crate) given_back: Set,
    /// Whether there are returns that can be reached.
    returns: bool,
}

const LOST: u32 = u32::MAX;
/// Where what is read behind a call may have been left by it, whatever its convention.
const LEFT: Set = RESULTS | STATUS_FLAGS | RED_ZONE;

/// A function: bodies that lead into each other's middles. Its blocks are numbered through.
pub(crate) struct Function<'m> {
    pub(crate) members: &'m [u32],
    bodies: Vec<&'m Body>,
    base: Vec<u32>,
    /// For each member, where its outs lead in the function, and its pads.
    inside: Vec<Vec<u32>>,
    pads: Vec<Vec<u32>>,
    /// For each block, whether it or a later one looks at what is live before it. Only where that
    /// grows has another round over the function anything to find.
    leads_back: Vec<bool>,
    /// For each member, what its callers may keep because it is never written; empty where that is
    /// not asked.
    unwritten: Vec<Set>,
    /// For each block, what is seen to be read behind the call by the ABI at its end; empty before
    /// that was looked for.
    kept: Vec<Set>,
    /// For each member, what callers not in view may want back; empty before that is known.
    preserved: Vec<Set>,
}

impl<'m> Function<'m> {
    pub(crate) fn new(members: &'m [u32], all: &'m [Body]) -> Self {
        let bodies: Vec<&Body> = members.iter().map(|&body| &all[body as usize]).collect();
        let mut base = vec![0];
        for body in &bodies {
            base.push(base.last().copied().unwrap_or(0) + body.blocks.len() as u32);
        }
        let resolve = |place: BodyPlace| {
            let member = members.binary_search(&place.body).ok();
            let block = member.and_then(|member| Some(base[member] + bodies[member].block_at(place.at)?));
            block.unwrap_or(LOST)
        };
        // A jump to the start of what belongs to the same function stays in it.
        let out = |out: &Out| match *out {
            Out::Inside(place) => resolve(place),
            Out::Tail(body) => resolve(BodyPlace { body, at: 0 }),
            _ => LOST,
        };
        let inside = bodies.iter().map(|body| body.outs.iter().map(out).collect()).collect();
        let pads = bodies.iter().map(|body| body.pads.iter().map(|&pad| resolve(pad)).collect()).collect();
        let mut function = Self {
            members,
            bodies,
            base,
            inside,
            pads,
            leads_back: Vec::new(),
            unwritten: Vec::new(),
            kept: Vec::new(),
            preserved: Vec::new(),
        };
        function.leads_back = function.led_back_to();
        function
    }

    fn led_back_to(&self) -> Vec<bool> {
        let mut found = vec![false; self.count()];
        for (member, body) in self.bodies.iter().enumerate() {
            for (index, block) in body.blocks.iter().enumerate() {
                let own = self.base[member] as usize + index;
                let mut to = |at: usize| {
                    if at <= own {
                        found[at] = true;
                    }
                };
                self.successors(member, index, &mut to);
                let pad = block.pad.map(|pad| self.pads[member][pad as usize]);
                pad.filter(|&pad| pad != LOST).into_iter().for_each(|pad| to(pad as usize));
            }
        }
        found
    }

    /// Takes in, for one round from the last block to the first, what is needed before a block.
    /// Returns whether another round may find more.
    pub(crate) fn grow(&self, block: usize, before: Set, live: &mut [Set]) -> bool {
        std::mem::replace(&mut live[block], before) != before && self.leads_back[block]
    }

    pub(crate) fn body(&self, member: usize) -> &'m Body {
        self.bodies[member]
    }
    /// From here on, what a member's own instructions never change, nor those of members that lead
    /// to it and that it leads to, is needed at its returns; but for `what_nobody_keeps`. Other
    /// members tell nothing: who calls a function that goes on in the middle of another may rely on
    /// what only that one writes, and the other way round.
    pub(crate) fn need_what_is_unwritten(&mut self, what_nobody_keeps: Set) {
        let member = |block: u32| self.base.partition_point(|&base| base <= block) as u32 - 1;
        let leads = |(inside, pads): (&Vec<u32>, &Vec<u32>)| {
            let mut to: Vec<u32> = inside
                .iter()
                .chain(pads)
                .filter(|&&block| block != LOST)
                .map(|&block| member(block))
                .collect();
            to.sort_unstable();
            to.dedup();
            to
        };
        let graph: Vec<Vec<u32>> = self.inside.iter().zip(&self.pads).map(leads).collect();
        let knots = knots(&graph);
        let mut written = vec![what_nobody_keeps; knots.len()];
        for (&knot, body) in knots.iter().zip(&self.bodies) {
            written[knot as usize] |= body.written;
        }
        self.unwritten = knots.iter().map(|&knot| ALL & !written[knot as usize]).collect();
    }
    /// The way as it is for a member.
    pub(crate) fn way(&self, member: usize, way: &Way) -> Way {
        Way { at_return: way.at_return | self.unwritten.get(member).copied().unwrap_or(0), ..*way }
    }
    pub(crate) fn count(&self) -> usize {
        self.base.last().map_or(0, |&count| count as usize)
    }

    /// Tells which blocks of the function may follow one, calls at its end coming back.
    pub(crate) fn successors(&self, member: usize, index: usize, mut to: impl FnMut(usize)) {
        let body = self.bodies[member];
        let (base, block) = (self.base[member] as usize, &body.blocks[index]);
        if block.next {
            to(base + index + 1);
        }
        for &target in &body.targets[block.targets.0 as usize..block.targets.1 as usize] {
            to(base + target as usize);
        }
        for at in block.outs.0 as usize..block.outs.1 as usize {
            let inside = self.inside[member][at];
            if inside != LOST {
                to(inside as usize);
            }
        }
    }

    /// Needed behind a block, calls at its end not counted.
    pub(crate) fn after(
        &self,
        member: usize,
        index: usize,
        live: &[Set],
        way: &Way,
        summaries: &[Summary],
    ) -> Set {
        let body = self.bodies[member];
        let (base, block) = (self.base[member] as usize, &body.blocks[index]);
        let mut after = if block.next { live[base + index + 1] } else { 0 };
        for &target in &body.targets[block.targets.0 as usize..block.targets.1 as usize] {
            after |= live[base + target as usize];
        }
        for at in block.outs.0 as usize..block.outs.1 as usize {
            let inside = self.inside[member][at];
            after |= match body.outs[at] {
                Out::Tail(_) if inside != LOST => live[inside as usize],
                Out::Nowhere => 0,
                Out::Anywhere | Out::Trap => way.unknown,
                Out::Import => way.arguments | way.at_return & (!CLOBBERED | self.preserved(member)),
                Out::Inside(_) => live.get(inside as usize).copied().unwrap_or(way.unknown),
                Out::Tail(other) => {
                    let summary = &summaries[other as usize];
                    let reads = if way.seen { summary.seen } else { summary.reads };
                    reads | way.at_return & !summary.overwrites
                }
            };
        }
        after
    }

    /// From here on, calls by the ABI keep what is read behind them though they leave nothing
    /// there: there are other conventions, and pointers do not tell.
    pub(crate) fn see_what_is_kept(&mut self, summaries: &[Summary]) {
        let foreign = |block: &Block| matches!(block.last, Last::Foreign | Last::Pointer);
        if self.bodies.iter().any(|body| body.blocks.iter().any(foreign)) {
            let seen = self.solve(&Way::SEEING, summaries);
            self.keep(&seen, summaries);
        }
    }
    fn keep(&mut self, seen: &[Set], summaries: &[Summary]) {
        let mut kept = Vec::with_capacity(self.count());
        for (member, body) in self.bodies.iter().enumerate() {
            for (index, block) in body.blocks.iter().enumerate() {
                let is_call = matches!(block.last, Last::Foreign | Last::Pointer);
                let after = || self.after(member, index, seen, &Way::SEEING, summaries);
                kept.push(if is_call { after() & CLOBBERED & !LEFT } else { 0 });
            }
        }
        self.kept = kept;
    }
    /// What the call by the ABI at the end of a block, numbered through, is seen to keep, or may
    /// have to.
    pub(crate) fn kept(&self, block: usize) -> Set {
        self.kept.get(block).copied().unwrap_or(0)
    }
    fn preserved(&self, member: usize) -> Set {
        self.preserved.get(member).copied().unwrap_or(0)
    }
    /// From here on, calls that leave the module keep what a member may have to leave as it found
    /// it (by body).
    pub(crate) fn preserve(&mut self, preserved: &[Set]) {
        self.preserved = self.members.iter().map(|&body| preserved[body as usize]).collect();
        self.kept.resize(self.count(), 0);
        for (member, &more) in self.preserved.iter().enumerate() {
            let (from, to) = (self.base[member] as usize, self.base[member + 1] as usize);
            self.kept[from..to].iter_mut().for_each(|kept| *kept |= more);
        }
    }
    /// What [`Self::see_what_is_kept`] and [`Self::preserve`] found, for [`Self::keep_as_found`].
    pub(crate) fn into_kept(self) -> Vec<Set> {
        self.kept
    }
    /// The same as those two, from what they found of this function before.
    pub(crate) fn keep_as_found(&mut self, kept: &[Set], preserved: &[Set]) {
        self.preserved = self.members.iter().map(|&body| preserved[body as usize]).collect();
        self.kept = kept.to_vec();
    }
    /// From here on, that is needed at returns.
    pub(crate) fn need_what_is_preserved(&mut self) {
        self.unwritten.clone_from(&self.preserved);
    }

    /// Needed before what stands at the end of a block (by its number), given what is behind it.
    pub(crate) fn before_last(
        &self,
        block: usize,
        last: Last,
        after: Set,
        way: &Way,
        summaries: &[Summary],
    ) -> Set {
        match last {
            Last::Plain => after,
            Last::Return => way.at_return,
            Last::Foreign | Last::Pointer if way.seen => after & !LEFT,
            Last::Pointer => way.by_pointer | after & (!CLOBBERED | self.kept(block)),
            Last::Foreign => way.arguments | after & (!CLOBBERED | self.kept(block)),
            Last::Keeps => way.unknown | after,
            Last::DeadEnd => way.arguments,
            Last::DeadCall(other) if way.seen => summaries[other as usize].seen,
            Last::DeadCall(other) => summaries[other as usize].reads,
            Last::Call(other) => {
                let summary = &summaries[other as usize];
                let reads = if way.seen { summary.seen } else { summary.reads };
                let after = if summary.returns { after } else { 0 };
                reads | after & !(summary.overwrites | RED_ZONE)
            }
        }
    }

    /// Needed wherever an exception may be raised, for where it lands.
    pub(crate) fn at_pad(&self, member: usize, pad: Option<u32>, live: &[Set], way: &Way) -> Set {
        const GIVEN: Set = 1 | 1 << 2; // rax, rdx
        let Some(pad) = pad else { return 0 };
        let block = self.pads[member][pad as usize] as usize;
        live.get(block).copied().unwrap_or(way.unknown) & !GIVEN
    }

    /// What is needed before each block.
    pub(crate) fn solve(&self, way: &Way, summaries: &[Summary]) -> Vec<Set> {
        let mut live = vec![0; self.count()];
        let mut changed = true;
        while changed {
            changed = false;
            for member in (0..self.bodies.len()).rev() {
                let base = self.base[member] as usize;
                let way = &self.way(member, way);
                for (index, block) in self.bodies[member].blocks.iter().enumerate().rev() {
                    let after = self.after(member, index, &live, way, summaries);
                    let before_last = self.before_last(base + index, block.last, after, way, summaries);
                    let before =
                        block.uses | before_last & !block.kills | self.at_pad(member, block.pad, &live, way);
                    changed |= self.grow(base + index, before, &mut live);
                }
            }
        }
        live
    }

    /// What comes of registers on the ways from the entries to the returns.
    pub(crate) fn forwards(&self, summaries: &[Summary]) -> Forwards {
        let count = self.count();
        let mut state = vec![ALL; count];
        let mut reached = vec![false; count];
        for (member, body) in self.bodies.iter().enumerate() {
            for (index, _) in body.blocks.iter().enumerate().filter(|(_, block)| block.is_entry) {
                let at = self.base[member] as usize + index;
                (state[at], reached[at]) = (0, true);
            }
        }
        let (mut at_return, mut returns) = (ALL, false);
        let mut changed = true;
        while changed {
            changed = false;
            (at_return, returns) = (ALL, false);
            for (member, body) in self.bodies.iter().enumerate() {
                let base = self.base[member] as usize;
                for (index, block) in body.blocks.iter().enumerate() {
                    if !reached[base + index] {
                        continue;
                    }
                    let mut after = state[base + index] | block.kills;
                    match block.last {
                        Last::DeadEnd | Last::DeadCall(_) => continue,
                        Last::Return => {
                            (at_return, returns) = (at_return & after, true);
                            continue;
                        }
                        Last::Call(other) => {
                            let summary = &summaries[other as usize];
                            if !summary.returns {
                                continue;
                            }
                            after |= summary.overwrites;
                        }
                        _ => {}
                    }
                    let mut to = |at: usize| {
                        if !reached[at] || state[at] & !after != 0 {
                            (reached[at], state[at]) = (true, state[at] & after);
                            changed = true;
                        }
                    };
                    if block.next {
                        to(base + index + 1);
                    }
                    for &target in &body.targets[block.targets.0 as usize..block.targets.1 as usize] {
                        to(base + target as usize);
                    }
                    for at in block.outs.0 as usize..block.outs.1 as usize {
                        match (body.outs[at], self.inside[member][at]) {
                            (Out::Nowhere | Out::Trap, _) => {}
                            (Out::Inside(_) | Out::Tail(_), at) if at != LOST => to(at as usize),
                            (Out::Tail(other), _) if summaries[other as usize].returns => {
                                let also = summaries[other as usize].overwrites;
                                (at_return, returns) = (at_return & (after | also), true);
                            }
                            (Out::Tail(_), _) => {}
                            // Whatever follows, what is gone stays gone.
                            _ => (at_return, returns) = (at_return & after, true),
                        }
                    }
                }
            }
        }
        let (mut saved, mut restored) = (0, 0);
        for (member, body) in self.bodies.iter().enumerate() {
            restored |= body.restored;
            for (block, state) in body.blocks.iter().zip(&state[self.base(member)..]) {
                saved |= block.saves & !state;
            }
        }
        let given_back = saved & restored;
        // What must come back unchanged, or may, is not taken for overwritten.
        let overwrites = at_return & !(CALLEE_SAVED | RESERVED | RED_ZONE | given_back);
        Forwards { overwrites, given_back, returns }
    }

    /// The summaries of the function's bodies.
    pub(crate) fn summaries(&mut self, summaries: &[Summary], is_part: impl Fn(u32) -> bool) -> Vec<Summary> {
        let seen = self.solve(&Way::SEEING, summaries);
        self.keep(&seen, summaries);
        let reads = self.solve(&Way::READING, summaries);
        let Forwards { overwrites, returns, .. } = self.forwards(summaries);
        let of = |(member, &body): (usize, &u32)| {
            let first = self.base[member] as usize;
            if self.bodies[member].block_at(0).is_none() {
                return Summary::UNKNOWN;
            }
            Summary {
                reads: reads[first] & !RED_ZONE,
                seen: seen[first] & !RED_ZONE,
                // That holds from the entries on, and a part is none.
                overwrites: if is_part(body) { 0 } else { overwrites },
                returns: returns || is_part(body),
            }
        };
        self.members.iter().enumerate().map(of).collect()
    }

    /// What of the function's blocks lies behind direct calls and is seen to be read there, by
    /// callee.
    pub(crate) fn read_behind_calls(&self, summaries: &[Summary], tell: &mut impl FnMut(u32, Set)) {
        let calls = |body: &&Body| body.blocks.iter().any(|block| matches!(block.last, Last::Call(_)));
        if !self.bodies.iter().any(calls) {
            return;
        }
        let live = self.solve(&Way::SEEING, summaries);
        for (member, body) in self.bodies.iter().enumerate() {
            for (index, block) in body.blocks.iter().enumerate() {
                if let Last::Call(other) = block.last {
                    if summaries[other as usize].returns {
                        tell(other, self.after(member, index, &live, &Way::SEEING, summaries));
                    }
                }
            }
        }
    }

    /// The first block of a member, numbered through.
    pub(crate) fn base(&self, member: usize) -> usize {
        self.base[member] as usize
    }
}
