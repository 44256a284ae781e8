//! A unit (or a function without twin) as blocks of instructions: all that the equations of
//! liveness need of it.

use super::effects::Effect;
use super::set::{ALL, RED_ZONE, STACK_POINTER, STATUS_FLAGS, Set, is_one_register, whole};
use super::steps::{End, LivenessStep};
use super::{Buffers, Code};
use crate::container::elf::Elf;
use crate::container::read::Reader;
use crate::unwind::lsda::Site;

/// A place in code, by the number of its body and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BodyPlace {
    pub(crate) body: u32,
    pub(crate) at: u32,
}

/// How control leaves a body but by calls and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// Into the same function, elsewhere.
    Inside(BodyPlace),
    /// To the start of another function, which returns in this one's stead.
    Tail(u32),
    /// By a linkage stub, likewise.
    Import,
    Nowhere,
    /// The program ends, unless a debugger looks into it and goes on.
    Trap,
    Anywhere,
}

/// What stands at a block's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Plain,
    Return,
    Foreign,
    Pointer,
    Keeps,
    DeadEnd,
    /// Of this body, at its start.
    Call(u32),
    /// The same, and it never comes back.
    DeadCall(u32),
}

/// Instructions that follow each other, entered at the first, with a call at most at the end.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// Read before it is overwritten, what a call reads left out.
    pub(crate) uses: Set,
    /// Surely overwritten.
    pub(crate) kills: Set,
    /// Possibly changed.
    pub(crate) writes: Set,
    /// Put on the stack before it is overwritten.
    pub(crate) saves: Set,
    /// Read before it is possibly changed, but by pushing it.
    pub(crate) takes: Set,
    /// Written by instructions that write only that, and not read in the block since.
    pub(crate) left: Set,
    /// Offset of the first instruction.
    pub(crate) at: u32,
    /// Index of the first instruction, and of that behind the last.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Offsets of the last instruction, and of what follows it.
    pub(crate) last_at: u32,
    pub(crate) end_at: u32,
    pub(crate) last: Last,
    /// Whether the next block may follow.
    pub(crate) next: bool,
    /// Whether control may come from where nobody looks.
    pub(crate) is_entry: bool,
    /// Where else control goes in the body, in [`Body::targets`].
    pub(crate) targets: (u32, u32),
    /// In [`Body::outs`].
    pub(crate) outs: (u32, u32),
    /// Where exceptions land, in [`Body::pads`].
    pub(crate) pad: Option<u32>,
}

#[derive(Default)]
pub(crate) struct Body {
    pub(crate) blocks: Vec<Block>,
    /// Indices of blocks.
    pub(crate) targets: Vec<u32>,
    pub(crate) outs: Vec<Out>,
    pub(crate) pads: Vec<BodyPlace>,
    /// All that its own instructions may change.
    pub(crate) written: Set,
    /// All that comes back from the stack.
    pub(crate) restored: Set,
    /// The places in other bodies that are called or jumped to, but for starts.
    pub(crate) enters: Vec<(BodyPlace, bool)>,
}

impl Body {
    /// The block that begins at an offset.
    pub(crate) fn block_at(&self, at: u32) -> Option<u32> {
        self.blocks.binary_search_by_key(&at, |block| block.at).ok().map(|block| block as u32)
    }

    /// Blocks to which no way leads that is followed may be come to by others: takes the first such
    /// one for an entry, and so on until there is a way to each. `seen` are those that others enter
    /// by ways that are followed.
    fn enter_what_is_not_reached(&mut self, mut seen: Vec<bool>) {
        let mut waiting: Vec<u32> = (0..self.blocks.len() as u32)
            .filter(|&block| seen[block as usize] || self.blocks[block as usize].is_entry)
            .collect();
        for &block in &waiting {
            seen[block as usize] = true;
        }
        for first in 0..self.blocks.len() {
            while let Some(index) = waiting.pop() {
                let block = &self.blocks[index as usize];
                let targets = &self.targets[block.targets.0 as usize..block.targets.1 as usize];
                let next = block.next.then_some(index + 1);
                for to in targets.iter().copied().chain(next) {
                    if !std::mem::replace(&mut seen[to as usize], true) {
                        waiting.push(to);
                    }
                }
            }
            if !seen[first] {
                (seen[first], self.blocks[first].is_entry) = (true, true);
                waiting.push(first as u32);
            }
        }
    }

    /// Puts a body together. `entered` are the offsets where others enter it, and whether by ways
    /// that are followed.
    pub(crate) fn build(own: u32, code: &Code<'_, '_>, entered: &[(u32, bool)], buffers: &Buffers) -> Self {
        Builder { own, code, buffers, body: Self::default(), from: Vec::new() }.build(entered)
    }
}

struct Builder<'b, 'c, 'd> {
    own: u32,
    code: &'b Code<'c, 'd>,
    buffers: &'b Buffers,
    body: Body,
    /// For each item, where it goes in the body, as indices of items.
    from: Vec<(u32, u32)>,
}

impl Builder<'_, '_, '_> {
    fn build(mut self, entered: &[(u32, bool)]) -> Body {
        let (items, steps) = (&self.buffers.items, &self.buffers.steps);
        let mut begins = vec![false; items.len() + 1];
        let mut is_entry = vec![false; items.len() + 1];
        let mut reached = vec![false; items.len() + 1];
        let Some(first) = begins.first_mut() else { return self.body };
        *first = true;
        is_entry[0] = !self.code.is_part(self.own);
        for &(at, followed) in entered {
            if let Some(index) = self.item(u64::from(at)) {
                begins[index as usize] = true;
                is_entry[index as usize] |= !followed;
                reached[index as usize] |= followed;
            }
        }
        let sites = &self.buffers.sites;
        for site in sites {
            for edge in [site.start, site.end] {
                begins[items.partition_point(|item| u64::from(item.at) < edge)] = true;
            }
            let at = site.pad.wrapping_sub(self.code.start(self.own));
            if let Some(index) = self.item(at).filter(|_| site.pad != 0) {
                (begins[index as usize], is_entry[index as usize]) = (true, true);
            }
        }
        for (index, step) in steps.iter().enumerate() {
            let from = self.body.targets.len() as u32;
            match step.end {
                End::Branch | End::Jump => self.target(step.to),
                End::Table(table) => self.table(table),
                _ => {}
            }
            let adjacent = items.get(index + 1).is_some_and(|next| next.at == items[index].end());
            if step.end.goes_on() && !adjacent {
                // Where instructions overlap, what follows is not the next one of the list.
                let behind = self.item(u64::from(items[index].end()));
                self.body.targets.extend(behind);
            }
            self.from.push((from, self.body.targets.len() as u32));
            if step.end != End::Next || !adjacent {
                begins[index + 1] = true;
            }
        }
        for &target in &self.body.targets {
            begins[target as usize] = true;
        }
        self.blocks(&begins, &is_entry, &reached);
        self.body
    }

    /// Index of the item at an offset.
    fn item(&self, at: u64) -> Option<u32> {
        self.buffers.items.binary_search_by_key(&at, |item| u64::from(item.at)).ok().map(|index| index as u32)
    }
    fn inside(&self, to: u64) -> Option<u32> {
        self.item(to.checked_sub(self.code.start(self.own))?)
    }
    fn target(&mut self, to: u64) {
        let inside = self.inside(to);
        self.body.targets.extend(inside);
    }
    fn entries(&self, table: u32) -> Vec<Option<u64>> {
        let table = &self.code.tables(self.own)[table as usize];
        let image: &Elf<'_> = self.code.original;
        let bytes = image.bytes_at(units::Svma(table.original), table.size() as usize).unwrap_or(&[]);
        let target = |entry: &[u8]| {
            let distance = Reader::new(entry, 0).signed(entry.len())?;
            Some(table.base.wrapping_add_signed(distance))
        };
        let mut entries: Vec<_> = bytes.chunks_exact(table.entry as usize).map(target).collect();
        if bytes.is_empty() {
            entries.push(None);
        }
        entries.sort_unstable();
        entries.dedup();
        entries
    }
    fn table(&mut self, table: u32) {
        let inside: Vec<u32> =
            self.entries(table).into_iter().flatten().filter_map(|to| self.inside(to)).collect();
        self.body.targets.extend(inside);
    }

    fn blocks(&mut self, begins: &[bool], is_entry: &[bool], reached: &[bool]) {
        let buffers = self.buffers;
        let (items, steps) = (&buffers.items, &buffers.steps);
        let mut block_of = vec![0u32; items.len()];
        let mut first = 0;
        for index in 0..items.len() {
            block_of[index] = self.body.blocks.len() as u32;
            if !begins[index + 1] && index + 1 < items.len() {
                continue;
            }
            let step = &steps[index];
            let adjacent = items.get(index + 1).is_some_and(|next| next.at == items[index].end());
            let next = step.end.goes_on() && adjacent;
            let outs = self.body.outs.len() as u32;
            self.leave(index, adjacent);
            let (uses, kills) = transfer(&steps[first..=index]);
            let pad = self.pad(items[index].at);
            let saves = steps[first..=index]
                .iter()
                .rev()
                .fold(0, |saves, step| step.saves | saves & !step.effect.kills);
            self.body.blocks.push(Block {
                uses,
                kills,
                writes: steps[first..=index].iter().fold(0, |all, step| all | step.effect.writes),
                saves,
                takes: takes(&steps[first..=index]),
                left: left(&steps[first..=index]),
                at: items[first].at,
                first: first as u32,
                end: index as u32 + 1,
                last_at: items[index].at,
                end_at: items[index].end(),
                last: self.last(step),
                next,
                is_entry: is_entry[first],
                targets: self.from[index],
                outs: (outs, self.body.outs.len() as u32),
                pad,
            });
            first = index + 1;
        }
        for target in &mut self.body.targets {
            *target = block_of[*target as usize];
        }
        let seen: Vec<bool> = self.body.blocks.iter().map(|block| reached[block.first as usize]).collect();
        self.body.enter_what_is_not_reached(seen);
        self.body.restored = steps.iter().fold(0, |all, step| all | step.restores);
        self.body.written = steps
            .iter()
            .filter(|step| !is_call(step.end))
            .map(|step| step.effect.writes)
            .fold(0, |all, set| all | set);
    }

    fn last(&self, step: &LivenessStep) -> Last {
        match step.end {
            End::Return => Last::Return,
            End::Foreign => Last::Foreign,
            End::Pointer => Last::Pointer,
            End::Keeps => Last::Keeps,
            End::DeadEnd => match self.code.place(step.to) {
                Some(place) if place.at == 0 && self.code.linkage.stub(step.to).is_none() => {
                    Last::DeadCall(place.body)
                }
                _ => Last::DeadEnd,
            },
            End::Call => match self.code.place(step.to) {
                Some(place) if place.at == 0 => Last::Call(place.body),
                _ => Last::Keeps,
            },
            _ => Last::Plain,
        }
    }

    /// Notes where an instruction leads outside of the body.
    fn leave(&mut self, index: usize, adjacent: bool) {
        let step = self.buffers.steps[index];
        match step.end {
            End::Branch | End::Jump if self.inside(step.to).is_none() => {
                let out = self.out(step.to);
                self.body.outs.push(out);
            }
            End::Table(table) => {
                for entry in self.entries(table) {
                    let out = match entry {
                        Some(to) if self.inside(to).is_some() => continue,
                        Some(to) => self.out(to),
                        None => Out::Anywhere,
                    };
                    if let Out::Inside(place) = out {
                        self.body.enters.push((place, true));
                    }
                    self.body.outs.push(out);
                }
            }
            End::Open => self.body.outs.push(Out::Anywhere),
            End::Stop => self.body.outs.push(Out::Trap),
            End::Call => {
                let place =
                    self.code.place(step.to).filter(|place| place.at != 0 || self.code.is_part(place.body));
                self.body.enters.extend(place.map(|place| (place, false)));
            }
            _ => {}
        }
        if is_call(step.end) && self.code.is_last_call(self.own, &self.buffers.items[index]) {
            self.body.outs.push(Out::Trap);
        } else if step.end.goes_on()
            && !adjacent
            && self.item(u64::from(self.buffers.items[index].end())).is_none()
        {
            // What lies behind belongs to another function, or is not known: nothing is said about
            // what it returns to.
            self.body.outs.push(Out::Anywhere);
        }
    }

    fn out(&mut self, to: u64) -> Out {
        match self.code.linkage.stub(to) {
            Some(super::linkage::Outside::NeverReturns) => return Out::Nowhere,
            Some(super::linkage::Outside::Returns) => return Out::Import,
            None => {}
        }
        match self.code.place(to) {
            Some(place) if place.body == self.own => Out::Anywhere,
            Some(place) if place.at == 0 && !self.code.is_part(place.body) => Out::Tail(place.body),
            Some(place) => {
                self.body.enters.push((place, true));
                Out::Inside(place)
            }
            None => Out::Anywhere,
        }
    }

    fn pad(&mut self, at: u32) -> Option<u32> {
        let sites: &[Site] = &self.buffers.sites;
        let after = sites.partition_point(|site| site.start <= u64::from(at));
        let site = sites[..after].last().filter(|site| u64::from(at) < site.end && site.pad != 0)?;
        let nowhere = BodyPlace { body: u32::MAX, at: 0 };
        let place = self.code.place(site.pad).unwrap_or(nowhere);
        if place.body != self.own && place != nowhere {
            self.body.enters.push((place, false));
        }
        let known = self.body.pads.iter().position(|&known| known == place);
        Some(known.unwrap_or_else(|| {
            self.body.pads.push(place);
            self.body.pads.len() - 1
        }) as u32)
    }
}

fn is_call(end: End) -> bool {
    matches!(end, End::Call | End::Foreign | End::Pointer | End::Keeps | End::DeadEnd)
}

fn transfer(steps: &[LivenessStep]) -> (Set, Set) {
    steps.iter().rev().fold((0, 0), |(uses, kills), step| {
        (step.effect.reads | uses & !step.effect.kills, kills | step.effect.kills)
    })
}

/// What is read of what was there before. What is pushed may be anything, to reserve space; and
/// what reads all tells nothing.
fn takes(steps: &[LivenessStep]) -> Set {
    let (taken, _) = steps.iter().fold((0, 0), |(taken, written), step| {
        let Effect { reads, writes, .. } = step.effect;
        let pushed = if writes & STACK_POINTER != 0 { step.saves } else { 0 };
        let more = if reads == ALL { 0 } else { reads & !pushed & !written };
        (taken | more, written | writes)
    });
    taken
}

/// What instructions that write one register, and nothing else but flags, leave there unread.
fn left(steps: &[LivenessStep]) -> Set {
    steps.iter().fold(0, |left, step| {
        let written = step.effect.writes & !(STATUS_FLAGS | RED_ZONE);
        let more = if is_one_register(written) { written & step.effect.kills } else { 0 };
        left & !whole(step.effect.reads | step.effect.writes) | more
    })
}

/// What is known of a body that could not be followed.
pub(crate) const UNKNOWN: (Set, Set) = (ALL & !RED_ZONE, 0);
