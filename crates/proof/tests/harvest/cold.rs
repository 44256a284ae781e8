//! Cold parts of yields: that they hang together with what stands before the instruction, and that
//! they are unwound as it is.

use crate::pieces::{Piece, add, get, mapping, pieces};
use crate::{compile, rejected, rewrite};
use gleaner_proof::{Refusal, Rule, Violation, check};
use image::Image;
use twin::VectorWidth;

struct Specimen {
    original: Vec<u8>,
    rewritten: Vec<u8>,
    pieces: Vec<Piece>,
}

fn specimen(scavenger: bool) -> Specimen {
    let original = compile("../../programs/rewriter/exception_kinds.cpp", &["-O2", "-fnon-call-exceptions"]);
    let rewritten = rewrite(&original, scavenger, VectorWidth::Sse, false).expect("it can be");
    check(&original, &rewritten).expect("a right one");
    let pieces = pieces(&original, &rewritten, scavenger);
    Specimen { original, rewritten, pieces }
}

impl Specimen {
    /// Whether a rule rejects what `change` makes of it.
    fn rejected(&self, rule: Rule, change: impl FnOnce(&mut [u8])) -> bool {
        let mut wrong = self.rewritten.clone();
        change(&mut wrong);
        rejected(&self.original, &wrong, rule)
    }
    /// The first and the next piece with a cold part that a jump of their own leads to, and those.
    fn cold(&self) -> [(&Piece, usize); 2] {
        let own = self.pieces.iter().filter(|piece| piece.cold.1 > 0 && piece.relay.is_none());
        let mut cold = own.map(|piece| {
            let jump = piece.inserted.iter().find(|insn| piece.leads_to(insn) == piece.cold.2);
            let jump = jump.expect("a jump there");
            (piece, piece.place(jump) + jump.len() - 4)
        });
        [cold.next().expect("a cold part"), cold.next().expect("another one")]
    }
    fn section(&self, name: &str) -> (usize, usize) {
        let image = Image::parse(&self.rewritten).expect("sound");
        let section = image.section(name).expect("the section");
        (section.offset as usize, section.size as usize)
    }
}

#[test]
fn control_keeps_to_its_own_parts() {
    for scavenger in [false, true] {
        let it = specimen(scavenger);
        let [(first, jump), (second, other_jump)] = it.cold();
        let yields = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Yields, change);
        let (_, size, address) = first.cold;
        let between = (second.cold.2 - address) as i64;
        assert!(yields(&|new| add(new, jump, 4, between)), "another's cold part");
        assert!(yields(&|new| add(new, other_jump, 4, -between)), "another's, in front of its own");
        assert!(yields(&|new| add(new, jump, 4, size as i64)), "behind its own");
        let back = first.inserted.iter().rfind(|insn| insn.ip().wrapping_sub(address) < size as u64);
        let back = back.expect("a jump back");
        assert!(back.to_string().starts_with("jmp"), "{back}");
        let at = first.place(back) + back.len() - 4;
        let to = |new: &mut [u8], to: u64| {
            let distance = to.wrapping_sub(back.next_ip()) as u32;
            new[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        };
        assert!(yields(&|new| to(new, first.copy.ip() - first.size as u64)), "back to where it was asked");
        assert!(yields(&|new| to(new, address)), "round and round");
        assert!(yields(&|new| to(new, first.copy.next_ip())), "past the instruction");
        assert!(yields(&|new| to(new, back.next_ip())), "on into the next one's");
        // Nobody looked at what switches it has: all that is told of it is told with its
        // instruction.
        let mut wrong = it.rewritten.clone();
        add(&mut wrong, jump, 4, size as i64);
        let Err(Refusal::Wrong { violations, .. }) = check(&it.original, &wrong) else {
            panic!("accepted");
        };
        let whose = Some(first.original.ip());
        let of_it = |found: &Violation| found.rule == Rule::Yields && found.origin.map(|at| at.0) == whose;
        assert!(violations.iter().all(of_it), "{violations:?}");
    }
}

#[test]
fn the_mapping_says_whose_they_are() {
    for scavenger in [false, true] {
        let it = specimen(scavenger);
        let [(first, _), _] = it.cold();
        let list = it.list_of(first);
        let mapping = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Mapping, change);
        assert!(mapping(&|new| new[list] += 1), "more of them than there are");
        assert!(mapping(&|new| new[list + 1] = 0x7f), "of no instruction");
        // Of the next instruction: there may be nothing inserted before it, or what is, is no jump
        // there.
        let whose = |new: &mut [u8]| new[list + 1] += 1;
        assert!(it.rejected(Rule::Mapping, whose) || it.rejected(Rule::Yields, whose), "another's");
    }
}

#[test]
fn the_mapping_lists_what_switches_yields() {
    let it = specimen(false);
    let map = mapping(&it.rewritten).0;
    let (count, first) = (map + 48, map + get(&it.rewritten, map + 56, 8) as usize);
    assert!(get(&it.rewritten, count, 8) > 2);
    let mapping = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Mapping, change);
    assert!(mapping(&|new| add(new, count, 8, -1)), "the last one is missing");
    assert!(mapping(&|new| add(new, first + 16, 8, 1)), "another byte");
    assert!(mapping(&|new| add(new, first + 8, 8, 1)), "its yield goes on elsewhere");
    assert!(mapping(&|new| new.copy_within(first..first + 32, first + 32)), "one of them twice");
    assert!(mapping(&|new| new[first..first + 64].rotate_left(32)), "they do not ascend");
    let resume = |new: &mut [u8]| new.copy_within(first + 40..first + 48, first + 8);
    assert!(mapping(&resume), "another one's yield");
}

impl Specimen {
    /// Where the list of cold parts of a piece's unit is in the mapping: its count, below 128 as
    /// all that follows.
    fn list_of(&self, piece: &Piece) -> usize {
        let bytes = &self.rewritten;
        let map = mapping(bytes).0;
        let ip = piece.copy.ip();
        let record = (0..get(bytes, map + 16, 8) as usize)
            .map(|unit| map + get(bytes, map + 32, 8) as usize + 40 * unit)
            .find(|&record| {
                let twin = get(bytes, record + 8, 8);
                (twin..twin + get(bytes, record + 28, 4)).contains(&ip)
            });
        let record = record.expect("its unit");
        let mut at = map + get(bytes, record + 16, 8) as usize;
        for _ in 0..get(bytes, record + 32, 4) {
            let numbers = (bytes[at] >> 4 & 7).count_ones();
            at += 1;
            for _ in 0..numbers {
                at += bytes[at..].iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
            }
        }
        assert!(bytes[at] < 127, "{}", bytes[at]);
        at
    }
}

/// The frame descriptions of twins begin with `DW_CFA_remember_state` where there are cold parts.
#[test]
fn they_are_unwound_as_their_instructions() {
    for scavenger in [false, true] {
        let it = specimen(scavenger);
        let (frames, size) = it.section(".eh_frame");
        let (mut at, mut found) = (frames, 0);
        while get(&it.rewritten, at, 4) != 0 && at < frames + size {
            let end = at + 4 + get(&it.rewritten, at, 4) as usize;
            if get(&it.rewritten, at + 4, 4) != 0 {
                let program = at + 17 + usize::from(it.rewritten[at + 16]);
                let steps = &it.rewritten[program..end];
                // Behind the state that is restored, what holds at the first cold part: the offset
                // of the frame, here.
                let mut restores = steps.iter().enumerate().filter(|(_, byte)| **byte == 0x0b);
                if let (Some(0x0a), Some((restore, _)), None) =
                    (steps.first(), restores.next(), restores.next())
                {
                    if steps.get(restore + 1) == Some(&0x0e) {
                        let offset = program + restore + 2;
                        found += usize::from(it.rejected(Rule::Unwind, |new| new[offset] += 8));
                    }
                }
            }
            at = end;
        }
        assert!(found > 0, "no frame description to make wrong");
    }
}

/// Call sites come twice where there are cold parts; without the second time nothing would be
/// caught there.
#[test]
fn exceptions_land_from_them_as_from_their_instructions() {
    for scavenger in [false, true] {
        let it = specimen(scavenger);
        let (tables, size) = it.section(".gcc_except_table.twin");
        let mut at = tables;
        let mut found = 0;
        while at < tables + size && matches!(it.rewritten[at], 0x1b | 0xff) {
            // base of landing pads if any, types and the distance to their end, call sites and how
            // many bytes of them
            let base = if it.rewritten[at] == 0xff { 1 } else { 5 };
            let types = it.rewritten[at + base] != 0xff;
            let uleb = |at: usize| {
                (0..5).map(|i| usize::from(it.rewritten[at + i] & 0x7f) << (7 * i)).sum::<usize>()
            };
            let sites = at + base + if types { 7 } else { 2 };
            let (begin, end) = (sites + 5, sites + 5 + uleb(sites));
            let mut last = None;
            let mut next = begin;
            while next < end {
                last = Some(next).filter(|&at| get(&it.rewritten, at + 8, 4) != 0).or(last);
                next += 12;
                next += it.rewritten[next..].iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
            }
            if let Some(last) = last {
                found += usize::from(it.rejected(Rule::Unwind, |new| new[last + 4..last + 8].fill(0)));
                found += usize::from(it.rejected(Rule::Unwind, |new| new[last + 8..last + 12].fill(0)));
            }
            // Behind the types there may be lists of exceptions that may pass: then this is the
            // last table that is found.
            let Some(step) = types.then(|| uleb(at + base + 1)) else { break };
            at = (at + base + 6 + step).next_multiple_of(4);
        }
        assert!(found >= 2, "{found}");
    }
}
