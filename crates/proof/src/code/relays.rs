//! Relays: a switch that is a `nop` leads, while it is a jump, to one of these, which leads on into
//! its cold part.

use crate::container::Added;
use crate::container::elf::Elf;
use crate::container::mapping::{Mapping, RELAY_SIZE as SIZE, Relay};
use crate::rule::{Findings, Rule};

/// Those of all switches that are listed, in the order of these.
pub(crate) fn read(
    rewritten: &Elf<'_>,
    added: &Added,
    mapping: &Mapping<'_>,
    findings: &Findings,
) -> Vec<Relay> {
    let text = rewritten.segment_bytes(&added.text).unwrap_or(&[]);
    let five = |address: u64| {
        let at = usize::try_from(address.checked_sub(added.text.address)?).ok()?;
        text.get(at..)?.first_chunk::<{ SIZE as usize }>()
    };
    let led = |from: u64, bytes: &[u8; SIZE as usize]| {
        let [_, distance @ ..] = *bytes;
        (from + SIZE).wrapping_add_signed(i64::from(i32::from_le_bytes(distance)))
    };
    let mut relays = Vec::new();
    for switch in mapping.yields.rows().iter().filter_map(|row| row.switch) {
        let Some(nop @ [0x0f, 0x1f, 0x44, ..]) = five(switch) else { continue };
        let at = led(switch, nop);
        let Some(jump @ [0xe9, ..]) = five(at) else {
            findings.at(Rule::Mapping, switch, "a switch that leads to no relay");
            continue;
        };
        relays.push(Relay { switch, at, to: led(at, jump) });
    }
    relays
}
