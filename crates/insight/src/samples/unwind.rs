//! From the registers and the copied stack of a sample to the calls that led there.
//!
//! Compilers describe in `.eh_frame` how each function saves what its caller needs, for exceptions;
//! stripped files have it, too. Where a file has none, frame pointers are followed.
//!
//! Tables state addresses as the file's headers do. So each file has one unwinder, in its stated
//! addresses, which all processes that map it share: a sample's addresses are translated frame by
//! frame, by the mappings of its process.

use crate::samples::address_space::{AddressSpace, MappedId, Place};
use crate::samples::registers::Registers;
use crate::samples::saved::{KnownRegisters, SavedRegisters};
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder as _};
use image::Image;
use image::elf::Segment;
use std::collections::HashMap;
use std::sync::Arc;
use units::{Avma, FileOffset, Svma};

/// No stack is followed further: recursion without end is no news.
const MOST_FRAMES: usize = 256;

type FileUnwinder = UnwinderX86_64<Arc<[u8]>>;

/// How to unwind through the code of one file.
pub struct UnwindTables {
    unwinder: FileUnwinder,
    saved: Option<SavedRegisters>,
    /// What of it is loaded, and where.
    segments: Vec<Segment>,
}

impl UnwindTables {
    pub fn of(image: &Image<'_>) -> Self {
        let range = |name: &str| {
            let section = image.section(name)?;
            Some(section.address..section.address.saturating_add(section.size))
        };
        let bytes =
            |name: &str| -> Option<Arc<[u8]>> { Some(Arc::from(image.section_bytes(image.section(name)?)?)) };
        let (eh_frame, eh_frame_hdr) = (bytes(".eh_frame"), bytes(".eh_frame_hdr"));
        let at = |name: &str, bytes: &Option<Arc<[u8]>>| Some((range(name)?.start, bytes.clone()?));
        let saved = at(".eh_frame", &eh_frame).zip(at(".eh_frame_hdr", &eh_frame_hdr));
        let sections = ExplicitModuleSectionInfo {
            base_svma: image.span().0,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame,
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr,
            ..ExplicitModuleSectionInfo::default()
        };
        let (low, high) = image.span();
        let mut unwinder = FileUnwinder::new();
        unwinder.add_module(framehop::Module::new(String::new(), low..high, low, sections));
        let saved = saved.map(|(frame, header)| SavedRegisters::of(frame, header));
        Self { unwinder, saved, segments: image.loads().to_vec() }
    }

    fn stated(&self, offset: FileOffset) -> Option<Svma> {
        self.segments.iter().find_map(|load| {
            let into = offset.0.checked_sub(load.offset).filter(|into| *into < load.file_size)?;
            Some(Svma(load.address.checked_add(into)?))
        })
    }
}

/// The calls that led to a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Where each caller goes on, less one byte: inside its call instruction. The innermost first.
    pub callers: Vec<Place>,
    /// Why the outermost frame was not reached; none if it was.
    pub cut_off: Option<CutOff>,
    /// The registers of the frame that was sampled and of each caller, where they were asked for.
    pub registers: Vec<KnownRegisters>,
}

/// Why a stack is known without its outermost frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CutOff {
    /// It goes on behind the bytes that were copied of it.
    NotCopied,
    /// The code of a file, or its frame pointers, do not tell where the caller is.
    NoInformation,
    /// What should be a return address is in no code: the frame before was not understood.
    NoCode,
    /// It has too many frames.
    TooDeep,
    /// There are too many different stacks.
    TooMany,
    /// The kernel told it so.
    ByKernel,
}

impl CutOff {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotCopied => "deeper than the bytes that are copied of a stack",
            Self::NoInformation => "code on the way has no unwind information, and no frame pointer",
            Self::NoCode => "a frame was not understood: its return address is in no code",
            Self::TooDeep => "more frames than are followed",
            Self::TooMany => "more different stacks than are kept",
            Self::ByKernel => "the kernel followed them no further",
        }
    }
}

/// The unwinders of all files.
pub struct Unwinder {
    files: HashMap<MappedId, Option<UnwindTables>>,
    /// For code that no file has: it follows frame pointers.
    without_tables: FileUnwinder,
    cache: CacheX86_64,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self { files: HashMap::new(), without_tables: FileUnwinder::new(), cache: CacheX86_64::new() }
    }
}

impl Unwinder {
    /// The callers of where a thread is, by its registers and the bytes from its stack pointer on.
    /// `tables` reads those of a file that was not seen before.
    pub fn calls(
        &mut self,
        registers: &Registers,
        stack: &[u8],
        space: &AddressSpace,
        with_registers: bool,
        mut tables: impl FnMut(MappedId) -> Option<UnwindTables>,
    ) -> Calls {
        const RSP: usize = 4;
        const RBP: usize = 5;
        let bottom = registers.general[RSP];
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(bottom).ok_or(())?).map_err(|_| ())?;
            let end = at.checked_add(8).ok_or(())?;
            stack.get(at..end).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).ok_or(())
        };
        let mut state = unwind_registers(registers);
        let mut calls = Calls::default();
        let mut known: KnownRegisters = registers.general.map(Some);
        let cut_off = |calls: Calls, why: CutOff| Calls { cut_off: Some(why), ..calls };
        let mut at = FrameAddress::from_instruction_pointer(registers.ip.0);
        loop {
            let looked_up = at.address_for_lookup();
            let place = space.place(Avma(looked_up));
            if at.is_return_address() {
                // Whatever this is, it is no code: the frame before was not understood.
                let Some(place) = place else { return cut_off(calls, CutOff::NoCode) };
                calls.callers.push(place);
                if calls.callers.len() == MOST_FRAMES {
                    return cut_off(calls, CutOff::TooDeep);
                }
            }
            if with_registers {
                calls.registers.push(known);
            }
            let file = place.and_then(|Place { what, offset }| {
                let file = self.files.entry(what).or_insert_with(|| tables(what)).as_ref()?;
                Some((file, file.stated(offset)?))
            });
            let next = if let Some((file, stated)) = file {
                if with_registers {
                    let caller =
                        file.saved.as_ref().and_then(|saved| saved.of_caller(stated.0, &known, &mut read));
                    known = caller.unwrap_or([None; 16]);
                }
                // Where it goes on from, in the file's stated addresses.
                let stated = stated.0 + (at.address() - looked_up);
                let stated = match at {
                    FrameAddress::InstructionPointer(_) => FrameAddress::from_instruction_pointer(stated),
                    FrameAddress::ReturnAddress(_) => {
                        let Some(stated) = FrameAddress::from_return_address(stated) else {
                            return cut_off(calls, CutOff::NoCode);
                        };
                        stated
                    }
                };
                file.unwinder.unwind_frame(stated, &mut state, &mut self.cache, &mut read)
            } else {
                known = [None; 16];
                self.without_tables.unwind_frame(at, &mut state, &mut self.cache, &mut read)
            };
            // The one way of unwinding does not know of the other: they must agree.
            if known[RSP] != Some(state.sp()) {
                known = [None; 16];
                known[RSP] = Some(state.sp());
                known[RBP] = Some(state.bp());
            }
            match next.map(|next| next.and_then(FrameAddress::from_return_address)) {
                Ok(Some(next)) => at = next,
                Ok(None) => return calls,
                Err(framehop::Error::CouldNotReadStack(address)) if is_behind(address, bottom, stack) => {
                    return cut_off(calls, CutOff::NotCopied);
                }
                Err(_) => return cut_off(calls, CutOff::NoInformation),
            }
        }
    }
}

/// Whether an address is behind what was copied of a stack, and not far from it.
fn is_behind(address: u64, bottom: u64, stack: &[u8]) -> bool {
    const FAR: u64 = 8 << 20;
    let copied = stack.len() as u64;
    address.checked_sub(bottom).is_some_and(|into| into + 8 > copied && into < copied.saturating_add(FAR))
}

fn unwind_registers(registers: &Registers) -> UnwindRegsX86_64 {
    /// By their number in instructions.
    const NUMBERED: [Reg; 16] = [
        Reg::RAX,
        Reg::RCX,
        Reg::RDX,
        Reg::RBX,
        Reg::RSP,
        Reg::RBP,
        Reg::RSI,
        Reg::RDI,
        Reg::R8,
        Reg::R9,
        Reg::R10,
        Reg::R11,
        Reg::R12,
        Reg::R13,
        Reg::R14,
        Reg::R15,
    ];
    let mut state = UnwindRegsX86_64::new(registers.ip.0, 0, 0);
    for (register, value) in NUMBERED.into_iter().zip(registers.general) {
        state.set(register, value);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::Mapping;

    /// A stack pointer, and where code without tables is mapped.
    const STACK: u64 = 0x7000_0000;
    const CODE: u64 = 0x10_0000;

    fn space() -> AddressSpace {
        let mut space = AddressSpace::default();
        let (start, end) = (Avma(CODE), Avma(CODE + 0x1000));
        space.map(Mapping { start, end, offset: FileOffset(0), what: MappedId(3), is_shared: false });
        space
    }

    fn calls(rbp: u64, stack: &[u64]) -> Calls {
        let mut registers = Registers { ip: Avma(CODE + 0x10), ..Registers::default() };
        registers.general[4] = STACK;
        registers.general[5] = rbp;
        let stack: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        Unwinder::default().calls(&registers, &stack, &space(), false, |_| None)
    }

    fn place(offset: u64) -> Place {
        Place { what: MappedId(3), offset: FileOffset(offset) }
    }

    #[test]
    fn code_without_tables_is_unwound_by_frame_pointers() {
        // Two frames: each a saved frame pointer and a return address; none behind them.
        let stack = [0, STACK + 32, CODE + 0x100, 0, 0, CODE + 0x200, 0];
        let found = calls(STACK + 8, &stack);
        assert_eq!(found.callers[0], place(0xff), "one byte in front of where it goes on");
    }

    #[test]
    fn what_is_cut_off_or_no_stack_ends_it() {
        for length in 0..7 {
            let stack = [0, STACK + 32, CODE + 0x100, 0, STACK + 48, CODE + 0x200, 0];
            let found = calls(STACK + 8, &stack[..length]);
            assert!(found.cut_off.is_some() && found.callers.len() <= 2, "{length}: {found:?}");
            if length < 2 {
                assert_eq!(found.cut_off, Some(CutOff::NotCopied), "{length}");
            }
        }
        for rbp in [0, 1, STACK - 8, u64::MAX, u64::MAX - 7] {
            assert!(calls(rbp, &[u64::MAX; 4]).callers.len() <= 1, "{rbp:#x}");
        }
        // A return address at which nothing is mapped is no caller.
        let lost = calls(STACK, &[STACK + 16, 0x1234, 0, 0]);
        assert_eq!((lost.callers, lost.cut_off), (Vec::new(), Some(CutOff::NoCode)));
    }

    #[test]
    fn a_stack_that_goes_round_is_left_at_last() {
        // A program's own tables make its CFA what they like; frame pointers only ever ascend.
        let round = calls(STACK, &[STACK, CODE + 0x100]);
        assert!(round.callers.len() <= MOST_FRAMES);
    }
}
