//! Rule R12, of restartable sequences: code that the kernel knows by its place (`rseq`), and begins
//! anew where the thread was interrupted in it. What it begins anew there is not what runs in a
//! twin, so no unit that a descriptor names has one.

use crate::container::elf::Elf;
use crate::container::mapping::Mapping;
use crate::container::read::number;
use crate::container::relocations::Relocations;
use crate::rule::{Findings, Rule};

pub(crate) fn check(
    original: &Elf<'_>,
    mapping: &Mapping<'_>,
    relocations: &Relocations,
    findings: &Findings,
) {
    for section in original.sections().iter().filter(|section| section.name == b"__rseq_cs") {
        let bytes = original.section_bytes(section).unwrap_or(&[]);
        let here = bytes.chunks_exact(8).filter_map(|word| number(word, 0, 8));
        let holds = |place: u64| place.wrapping_sub(section.address) < section.size;
        let written = relocations.addresses.iter().filter(|(place, _)| holds(*place)).map(|&(_, to)| to);
        for address in here.chain(written).filter(|&address| mapping.index_at(address).is_some()) {
            findings.at(Rule::Mapping, address, "a restartable sequence in a unit with a twin");
        }
    }
}
