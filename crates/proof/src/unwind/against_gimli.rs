//! What this room reads of unwind tables, against what the crate `gimli` reads.

use super::cfa::Rows;
use super::frames::Frames;
use crate::container::elf::Elf;
use gimli::{BaseAddresses, CfaRule, CieOrFde, EhFrame, LittleEndian, Pointer, RegisterRule, UnwindSection};

/// Of registers 0 to 16: the general ones and the return address.
const REGISTERS: u16 = 17;

#[test]
fn frames_and_rows_are_those_that_gimli_reads() {
    let data = std::fs::read("/proc/self/exe").expect("this program");
    let elf = Elf::parse(&data).expect("a sound file");
    let Ok(own) = Frames::of(&elf) else { panic!("its unwind tables") };
    let section = elf.section(".eh_frame").expect("a table");
    let bytes = elf.section_bytes(section).expect("its bytes");
    let text = elf.section(".text").expect("code");
    let bases = BaseAddresses::default().set_eh_frame(section.address).set_text(text.address);
    let table = EhFrame::new(bytes, LittleEndian);
    let mut entries = table.entries(&bases);
    let (mut number, mut rows_met) = (0, 0);
    let mut context = gimli::UnwindContext::new();
    while let Some(entry) = entries.next().expect("a sound table") {
        let CieOrFde::Fde(partial) = entry else { continue };
        let other = partial.parse(EhFrame::cie_from_offset).expect("a sound entry");
        let fde = &own.list[number];
        number += 1;
        assert_eq!((fde.start, fde.size), (other.initial_address(), other.len()));
        // A distance of 0 is no table here, and a table in its own place by gimli.
        if fde.exceptions != 0 {
            assert_eq!(Some(fde.exceptions), other.lsda().map(Pointer::pointer), "of {:#x}", fde.start);
        }
        let mut rows = Rows::new(&own.shared[fde.shared as usize], fde).expect("a sound program");
        let mut others = other.rows(&table, &bases, &mut context).expect("a sound program");
        while let Some(row) = others.next_row().expect("a sound program") {
            if row.start_address() >= row.end_address() {
                continue;
            }
            rows.advance(row.start_address() - fde.start).expect("a row");
            rows_met += 1;
            let at = row.start_address();
            if let CfaRule::RegisterAndOffset { register, offset } = row.cfa() {
                assert_eq!(rows.frame_at(), Some((u64::from(register.0), *offset)), "at {at:#x}");
            } else {
                assert_eq!(rows.frame_at(), None, "at {at:#x}");
            }
            for register in 0..REGISTERS {
                let saved = match row.register(gimli::Register(register)) {
                    Some(RegisterRule::Offset(offset)) => Some(offset),
                    _ => None,
                };
                assert_eq!(rows.saved_at(u64::from(register)), saved, "register {register} at {at:#x}");
            }
        }
    }
    assert_eq!(number, own.list.len());
    assert!(number > 100 && rows_met > number, "{number} frames with {rows_met} rows");
}
