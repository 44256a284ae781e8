//! Relays of switches: that each switch has its own, which leads to its own cold part, and that
//! they are unwound as their instructions.

use crate::pieces::{Piece, add, get, is_relayed, pieces};
use crate::{C, CPP, compile, rejected, rewrite};
use gleaner_proof::{Rule, check};
use image::Image;
use twin::VectorWidth;

struct Specimen {
    original: Vec<u8>,
    rewritten: Vec<u8>,
    pieces: Vec<Piece>,
}

fn specimen(source: &str, options: &[&str]) -> Specimen {
    let original = compile(source, options);
    let rewritten = rewrite(&original, false, VectorWidth::Sse, true).expect("it can be");
    check(&original, &rewritten).expect("a right one");
    let pieces = pieces(&original, &rewritten, false);
    Specimen { original, rewritten, pieces }
}

impl Specimen {
    /// Of pieces that have one: where the switch is in the file, and the relay.
    fn relays(&self) -> Vec<(&Piece, usize, usize)> {
        let of = |piece: &'_ Piece| {
            let switch = piece.inserted.iter().find(|insn| is_relayed(insn))?;
            Some((piece.place(switch), piece.relay?.1))
        };
        self.pieces
            .iter()
            .filter_map(|piece| of(piece).map(|(switch, relay)| (piece, switch, relay)))
            .collect()
    }
    fn rejected(&self, rule: Rule, change: impl FnOnce(&mut [u8])) -> bool {
        let mut wrong = self.rewritten.clone();
        change(&mut wrong);
        assert_ne!(wrong, self.rewritten);
        rejected(&self.original, &wrong, rule)
    }
}

#[test]
fn each_leads_from_its_switch_to_its_cold_part() {
    let it = specimen(C, &["-O2"]);
    let relays = it.relays();
    assert!(relays.len() > 2);
    for window in relays.windows(2) {
        let [(first, switch, relay), (second, other_switch, _)] = *window else { continue };
        let between = first.cold.2.abs_diff(second.cold.2) as i64;
        let yields = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Yields, change);
        let mapping = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Mapping, change);
        assert!(yields(&|new| add(new, relay + 1, 4, 1)), "between instructions");
        assert!(yields(&|new| add(new, relay + 1, 4, between)), "another's cold part");
        assert!(yields(&|new| add(new, relay + 1, 4, first.cold.1 as i64)), "behind its own");
        assert!(mapping(&|new| new[relay] = 0xcc), "none there");
        assert!(mapping(&|new| new[relay] = 0xe8), "a call");
        assert!(mapping(&|new| new[relay - 1] = 0x90), "something in front of it");
        assert!(mapping(&|new| add(new, switch + 3, 2, 1)), "a switch that leads elsewhere");
        assert!(mapping(&|new| new[switch + 4] ^= 0x80), "out of the code");
        assert!(mapping(&|new| new[switch] = 0xe9), "switched on in the file");
        // What is no listed switch may not be changed to lead anywhere; and what leads back leads
        // to no relay.
        assert!(
            mapping(&|new| new[switch + 2] = 0x40) || yields(&|new| new[switch + 2] = 0x40),
            "another form"
        );
        // Two that share one.
        let share = |new: &mut [u8]| {
            let to = get(new, other_switch + 1, 4) as i64;
            let apart = other_switch as i64 - switch as i64;
            new[switch + 1..switch + 5].copy_from_slice(&((to + apart) as u32).to_le_bytes());
        };
        assert!(it.rejected(Rule::Mapping, share) || it.rejected(Rule::Unwind, share), "shared");
    }
}

/// The frame descriptions of relays: where each begins and ends in the file, whether with a word
/// for an exception table, and what that holds.
fn described(it: &Specimen) -> Vec<(usize, usize, Option<u64>)> {
    let image = Image::parse(&it.rewritten).expect("sound");
    let frames = image.section(".eh_frame").expect("a table");
    let (begin, address) = (frames.offset as usize, frames.address);
    let relays: Vec<u64> = it.relays().iter().map(|(piece, ..)| piece.relay.expect("one").0.ip()).collect();
    let (mut at, mut found) = (begin, Vec::new());
    while get(&it.rewritten, at, 4) != 0 {
        let end = at + 4 + get(&it.rewritten, at, 4) as usize;
        let place = address + (at + 8 - begin) as u64;
        let code = place.wrapping_add_signed(i64::from(get(&it.rewritten, at + 8, 4) as i32));
        if get(&it.rewritten, at + 4, 4) != 0 && relays.contains(&code) {
            let has_word = it.rewritten[at + 16] == 4;
            found.push((at, end, has_word.then(|| get(&it.rewritten, at + 17, 4))));
        }
        at = end;
    }
    assert_eq!(found.len(), relays.len());
    found
}

#[test]
fn they_are_unwound_as_their_instructions() {
    let it = specimen(C, &["-O2"]);
    let mut changed = 0;
    for (at, end, _) in described(&it) {
        let unwind = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Unwind, change);
        assert!(unwind(&|new| new[at + 12] += 1), "longer");
        assert!(unwind(&|new| add(new, at + 8, 4, 1)), "elsewhere");
        // Another size of the frame, from the start on or from behind the first byte on, where
        // there is space to say so.
        let space =
            it.rewritten[..end].iter().rev().take_while(|&&byte| byte == 0).count().min(end - at - 17);
        for steps in [&[0x0e, 0x7f][..], &[0x41, 0x0e, 0x7f]] {
            if space >= steps.len() {
                changed += 1;
                assert!(unwind(&|new| new[end - steps.len()..end].copy_from_slice(steps)), "{steps:x?}");
            }
        }
    }
    assert!(changed > 2);
}

/// Without exceptions of loads, tables list calls alone; with them, all that may throw.
#[test]
fn exceptions_do_from_them_what_they_do_from_their_instructions() {
    for (options, is_listed) in [(&["-O2"][..], false), (&["-O2", "-fnon-call-exceptions"], true)] {
        let it = specimen(CPP, options);
        let (tables, size) = {
            let image = Image::parse(&it.rewritten).expect("sound");
            let section = image.section(".gcc_except_table.twin").expect("the section");
            (section.offset as usize, section.size as usize)
        };
        let unwind = |change: &dyn Fn(&mut [u8])| it.rejected(Rule::Unwind, change);
        let (mut with, mut without) = (0, 0);
        for (at, _, word) in described(&it) {
            match word {
                Some(0) => {
                    without += 1;
                    // That of whatever follows: no table, or one that lists other places.
                    assert!(unwind(&|new| new[at + 17] = 0x40), "a table of its own");
                }
                Some(_) => {
                    with += 1;
                    assert!(unwind(&|new| new[at + 17..at + 21].fill(0)), "none");
                    assert!(unwind(&|new| add(new, at + 17, 4, -4)), "another one");
                }
                None => {}
            }
        }
        assert!(
            if is_listed { without > 0 } else { with > 0 },
            "{options:?}: {with} with, {without} without"
        );
        if with > 0 {
            let listing = |new: &mut [u8]| new[tables + size - 1] = 1;
            assert!(it.rejected(Rule::Unwind, listing), "one that lists something");
        }
    }
}
