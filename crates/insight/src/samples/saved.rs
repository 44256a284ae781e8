//! Registers of callers: compilers write down where each function saves those that its caller
//! goes on with. Unwinding itself asks only for the stack and the frame pointer; interpreters keep
//! in the others where they are in a script.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// General registers by their number in instructions, as far as they are known.
pub type KnownRegisters = [Option<u64>; 16];

/// The numbers that call-frame information gives to registers, by those in instructions.
const IN_TABLES: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
/// Those that a function gives back as it found them.
const PRESERVED: [usize; 6] = [3, 5, 12, 13, 14, 15];
const RSP: usize = 4;

/// Where the functions of one file save registers, in its stated addresses.
pub(crate) struct SavedRegisters {
    eh_frame: Arc<[u8]>,
    header: Arc<[u8]>,
    bases: BaseAddresses,
    rules: RefCell<HashMap<u64, Option<Rule>>>,
}

/// What holds at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// The register and the distance from it at which the caller's frame ends.
    frame: (usize, i64),
    /// Where registers are saved, from there.
    saved: [Option<i64>; 16],
}

impl SavedRegisters {
    /// By `.eh_frame` and `.eh_frame_hdr`, each with its address.
    pub(crate) fn of(eh_frame: (u64, Arc<[u8]>), header: (u64, Arc<[u8]>)) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(eh_frame.0).set_eh_frame_hdr(header.0);
        Self { eh_frame: eh_frame.1, header: header.1, bases, rules: RefCell::default() }
    }

    /// The registers of the caller of a frame that is at this instruction.
    pub(crate) fn of_caller(
        &self,
        address: u64,
        registers: &KnownRegisters,
        mut read: impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<KnownRegisters> {
        let rule = (*self.rules.borrow_mut().entry(address).or_insert_with(|| self.rule(address)))?;
        let end = registers[rule.frame.0]?.wrapping_add_signed(rule.frame.1);
        let mut found = [None; 16];
        for register in PRESERVED {
            found[register] = match rule.saved[register] {
                Some(offset) => read(end.wrapping_add_signed(offset)).ok(),
                None => registers[register],
            };
        }
        found[RSP] = Some(end);
        Some(found)
    }

    fn rule(&self, address: u64) -> Option<Rule> {
        let header = EhFrameHdr::new(&self.header, LittleEndian).parse(&self.bases, 8).ok()?;
        let frames = EhFrame::new(&self.eh_frame, LittleEndian);
        let mut context = UnwindContext::new();
        let row = header
            .table()?
            .unwind_info_for_address(&frames, &self.bases, &mut context, address, EhFrame::cie_from_offset)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let number = IN_TABLES.iter().position(|&number| number == register.0)?;
        let saved = |number: u16| match row.register(gimli::Register(number)) {
            Some(RegisterRule::Offset(offset)) => Some(offset),
            _ => None,
        };
        Some(Rule { frame: (number, *offset), saved: IN_TABLES.map(saved) })
    }
}
