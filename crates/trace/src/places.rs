//! What accesses memory in a module: each instruction's accesses by their number, as the twins tell
//! them.

use caches::Access;
use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess};
use image::Module;

/// One access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Of a string instruction: of one step.
    pub bytes: u16,
    pub access: Access,
    /// A string instruction that is repeated: an entry before says how often.
    pub is_repeated: bool,
    /// It may end early, by what it compares.
    pub may_end: bool,
}

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub address: u32,
    pub unit: u32,
    /// Its accesses: the first of them, and how many.
    first: u32,
    count: u8,
}

/// All of a module.
pub(crate) struct Places {
    pub all: Vec<Place>,
    operands: Vec<Operand>,
    /// By address from `base` on: the number of the place and one more; 0 for none.
    index: Vec<u32>,
    base: u32,
    /// Where units begin.
    pub units: Vec<u64>,
}

impl Places {
    pub(crate) fn of(module: &Module<'_>) -> Self {
        let mut factory = InstructionInfoFactory::new();
        let (mut all, mut operands) = (Vec::new(), Vec::new());
        for unit in 0..module.units.len() {
            for instruction in module.instructions(unit) {
                let Ok(address) = u32::try_from(instruction.ip()) else { continue };
                let used = factory.info(&instruction).used_memory();
                if used.is_empty() {
                    continue;
                }
                let place = Place {
                    address,
                    unit: unit as u32,
                    first: operands.len() as u32,
                    count: used.len() as u8,
                };
                let is_string = instruction.is_string_instruction();
                let is_repeated =
                    is_string && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
                for memory in used {
                    let writes = matches!(
                        memory.access(),
                        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
                    );
                    operands.push(Operand {
                        bytes: memory.memory_size().size().clamp(1, 4096) as u16,
                        access: match writes {
                            false => Access::Read,
                            true if is_past(instruction.mnemonic()) => Access::WritePast,
                            true if is_repeated => Access::WriteWhole,
                            true => Access::Write,
                        },
                        is_repeated,
                        may_end: compares(instruction.mnemonic()),
                    });
                }
                all.push(place);
            }
        }
        let base = all.iter().map(|place| place.address).min().unwrap_or(0);
        let end = all.iter().map(|place| place.address + 1).max().unwrap_or(0);
        let mut index = vec![0; (end - base) as usize];
        for (place, number) in all.iter().zip(1..) {
            index[(place.address - base) as usize] = number;
        }
        Self { all, operands, index, base, units: module.units.iter().map(|unit| unit.start.0).collect() }
    }

    /// The number of the place at an address.
    #[inline]
    pub(crate) fn at(&self, address: u32) -> Option<usize> {
        let number = *self.index.get(address.wrapping_sub(self.base) as usize)?;
        (number as usize).checked_sub(1)
    }

    /// An access of a place by its number.
    #[inline]
    pub(crate) fn operand(&self, place: usize, access: u8) -> Option<&Operand> {
        let place = self.all.get(place)?;
        if access >= place.count {
            return None;
        }
        self.operands.get(place.first as usize + usize::from(access))
    }
}

/// Stores that go past the caches.
fn is_past(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Movntdq, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss, Vmovntdq, Vmovntpd, Vmovntps,
    };
    matches!(
        mnemonic,
        Movntdq | Movnti | Movntpd | Movntps | Movntq | Movntsd | Movntss | Vmovntdq | Vmovntpd | Vmovntps
    )
}

fn compares(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Scasb, Scasd, Scasq, Scasw};
    matches!(mnemonic, Cmpsb | Cmpsd | Cmpsq | Cmpsw | Scasb | Scasd | Scasq | Scasw)
}
