//! From a sampled instruction pointer to the load that the core waited for.
//!
//! A timer interrupt is taken when the oldest instruction in the core retires. While a load waits
//! for memory it *is* the oldest instruction, so the interrupt waits with it, and the sampled
//! instruction pointer is that of the instruction executed next:
//!
//! ```text
//!     mov rax, [rdi]     the core waits here
//!     add rax, rbx    <- and here the sample lands
//! ```
//!
//! An instruction that goes over many bytes by itself is interrupted in its midst, so its samples
//! land on it.
//!
//! So the instruction *executed before* the sampled one is asked for. Inside a basic block that is
//! the one in front. At the start of a block it is the last one of whichever block control came
//! from: a load is named only if no more than one of them ends in one. Behind a call it is the
//! `ret` of a function that is not known here. What stays unclear is counted as such.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedMemory,
};
use image::Module;
use image::code::insn::index_at;
use image::flow::cfg::Cfg;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use units::Svma;

/// What a sample's time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The core waited for this instruction, which reads memory.
    Load(Svma),
    /// The core waited for this instruction, which only writes memory.
    Store(Svma),
    /// The instruction executed before has no operand in memory.
    Computing,
    /// Not known which instruction was executed before.
    Unclear(Unclear),
}

/// Why the instruction executed before a sample is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Unclear {
    /// The sampled instruction is the first behind a call: the callee's `ret` was before it.
    BehindCall,
    /// It is a function's first instruction: the caller's call was before it.
    FunctionEntry,
    /// Control comes here from several places, and more than one of them ends in a load.
    SeveralLoads,
    /// Only computed jumps lead here.
    JumpTarget,
    /// No code is known at the sampled address.
    NoCode,
}

impl Unclear {
    /// In words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::BehindCall => "behind calls: how the callee ended is not followed",
            Self::FunctionEntry => "at the start of functions: who called them is not followed",
            Self::SeveralLoads => "where several loads may come before",
            Self::JumpTarget => "where computed jumps lead: which one was taken is not known",
            Self::NoCode => "in code that no file has, or that could not be decoded",
        }
    }
}

/// How a thread came into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    SystemCall,
    /// The instruction accesses memory: most likely its page was not there.
    Fault,
    /// An interrupt, or a fault of another kind.
    Other,
}

/// The code of one module around its samples.
pub(crate) struct Code<'d> {
    pub module: Module<'d>,
    /// Samples name the instruction itself that the core waited for, not the one behind it: those
    /// that hardware takes do.
    exact: bool,
    units: RefCell<HashMap<usize, Rc<UnitCode>>>,
}

/// One decoded unit.
pub(crate) struct UnitCode {
    pub instructions: Vec<Instruction>,
    pub cfg: Cfg,
}

impl<'d> Code<'d> {
    pub(crate) fn of(module: Module<'d>, exact: bool) -> Self {
        Self { module, exact, units: RefCell::default() }
    }

    /// The unit that holds an address, decoded.
    pub(crate) fn unit_at(&self, address: Svma) -> Option<Rc<UnitCode>> {
        let unit = self.module.unit_at(address)?;
        let mut units = self.units.borrow_mut();
        let decoded = units.entry(unit).or_insert_with(|| {
            let instructions = self.module.instructions(unit).collect();
            Rc::new(UnitCode { instructions, cfg: self.module.cfg(unit) })
        });
        Some(Rc::clone(decoded))
    }

    /// Lets go of what was decoded: it is decoded again where it is asked for.
    pub(crate) fn forget(&self) {
        self.units.borrow_mut().clear();
    }

    /// The unit that holds an instruction, and its number there.
    pub(crate) fn decoded_at(&self, address: Svma) -> Option<(Rc<UnitCode>, usize)> {
        let unit = self.module.unit_at(address)?;
        let at = (address.0 - self.module.units[unit].start.0) as u32;
        let index = index_at(&self.module.decoded[unit].insns, at)?;
        Some((self.unit_at(address)?, index))
    }

    /// The instruction at an address.
    pub(crate) fn instruction(&self, address: Svma) -> Option<Instruction> {
        let bytes = self.module.image.bytes_from(address)?;
        let instruction = Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// How the kernel was entered by a thread that goes on at this address: behind a system call,
    /// or again at an instruction that could not be executed.
    pub(crate) fn entry(&self, resumes: Svma) -> Entry {
        let in_front = Svma(resumes.0.wrapping_sub(SYSCALL.len() as u64));
        let in_front = self.module.image.bytes_at(in_front, SYSCALL.len());
        entered(in_front, self.instruction(resumes).as_ref())
    }

    /// What the time of a sample at this address was spent on.
    pub(crate) fn cause(&self, sampled: Svma) -> Cause {
        let Some(unit) = self.module.unit_at(sampled) else { return Cause::Unclear(Unclear::NoCode) };
        let Some(code) = self.unit_at(sampled) else { return Cause::Unclear(Unclear::NoCode) };
        let here = self.instruction(sampled);
        if self.exact || here.is_some_and(|it| is_repeated(&it)) {
            return here.map_or(Cause::Unclear(Unclear::NoCode), |it| waits(&it));
        }
        let at = (sampled.0 - self.module.units[unit].start.0) as u32;
        let Some(index) = index_at(&self.module.decoded[unit].insns, at) else {
            return self.cause_by_line(unit, sampled);
        };
        let cfg = &code.cfg;
        let block = cfg.block_of(index);
        if index > cfg.blocks[block].first as usize {
            if self.module.decoded[unit].insns[index - 1].flow.is_call() {
                return Cause::Unclear(Unclear::BehindCall);
            }
            return waits(&code.instructions[index - 1]);
        }
        if cfg.blocks[block].is_root {
            let is_label = self.module.labels(unit).any(|label| label == at);
            return Cause::Unclear(if is_label { Unclear::JumpTarget } else { Unclear::FunctionEntry });
        }
        let mut before: Vec<Cause> = Vec::new();
        for edge in cfg.edges_to(block) {
            let from = cfg.blocks[edge.from as usize];
            let cause = code.waited_at_end(from.first as usize, from.end as usize);
            if !before.contains(&cause) {
                before.push(cause);
            }
        }
        let waiting: Vec<Cause> =
            before.into_iter().filter(|cause| !matches!(cause, Cause::Computing)).collect();
        match waiting[..] {
            [] => Cause::Computing,
            [one] => one,
            _ => Cause::Unclear(Unclear::SeveralLoads),
        }
    }

    /// The instructions of a load's basic block at which a sample means that the core waited for
    /// nothing in memory. `None` where its block is not known.
    pub(crate) fn computing_beside(&self, load: Svma) -> Option<Vec<Svma>> {
        let (code, index) = self.decoded_at(load)?;
        let block = code.cfg.blocks[code.cfg.block_of(index)];
        let addresses = code.instructions[block.first as usize..block.end as usize]
            .iter()
            .map(|instruction| Svma(instruction.ip()));
        Some(addresses.filter(|&address| self.cause(address) == Cause::Computing).collect())
    }

    /// The same for code that control flow is not seen to reach, as the handlers of interpreters
    /// are, which a computed jump leads to: it is decoded line by line from the last instruction in
    /// front that is known.
    fn cause_by_line(&self, unit: usize, sampled: Svma) -> Cause {
        const NO_CODE: Cause = Cause::Unclear(Unclear::NoCode);
        let start = self.module.units[unit].start;
        let insns = &self.module.decoded[unit].insns;
        let at = (sampled.0 - start.0) as u32;
        let known = insns[..insns.partition_point(|insn| insn.at < at)].last();
        let from = known.map_or(0, image::code::insn::Insn::end);
        let Some(code) = self.module.code(unit).get(from as usize..) else { return NO_CODE };
        let mut decoder = Decoder::with_ip(64, code, start.0 + u64::from(from), DecoderOptions::NONE);
        let mut before: Vec<Instruction> = Vec::new();
        while decoder.can_decode() && decoder.ip() < sampled.0 {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return NO_CODE;
            }
            before.push(instruction);
        }
        let Some(last) = before.last().filter(|_| decoder.ip() == sampled.0) else { return NO_CODE };
        match last.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => waited_at_end(&before),
            FlowControl::Call | FlowControl::IndirectCall => Cause::Unclear(Unclear::BehindCall),
            _ => Cause::Unclear(Unclear::JumpTarget),
        }
    }
}

impl UnitCode {
    fn waited_at_end(&self, first: usize, end: usize) -> Cause {
        waited_at_end(&self.instructions[first..end])
    }
}

/// What the core waits for at the end of some instructions that it executes one after the other. A
/// comparison and the branch behind it are one operation in the core (macro-fusion), so the
/// comparison's load counts as the branch's.
pub(crate) fn waited_at_end(instructions: &[Instruction]) -> Cause {
    let Some((last, before)) = instructions.split_last() else { return Cause::Computing };
    let fused = before.last().filter(|_| last.is_jcc_short_or_near());
    match (waits(last), fused) {
        (Cause::Computing, Some(before)) if matches!(before.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) => {
            waits(before)
        }
        (cause, _) => cause,
    }
}

/// The instruction by which programs call the kernel.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// How the kernel was entered, by the bytes in front of where the thread goes on, and the
/// instruction there.
fn entered(in_front: Option<&[u8]>, resumes: Option<&Instruction>) -> Entry {
    if in_front == Some(&SYSCALL[..]) {
        return Entry::SystemCall;
    }
    match resumes {
        Some(instruction) if !accesses(instruction).is_empty() => Entry::Fault,
        _ => Entry::Other,
    }
}

/// Whether an instruction goes over many bytes by itself (`rep movsb`): an interrupt is taken in
/// its midst, and it goes on behind, so a sample there is its own.
pub(crate) fn is_repeated(instruction: &Instruction) -> bool {
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    repeats && instruction.is_string_instruction()
}

/// What the core waits for when this instruction is the oldest.
fn waits(instruction: &Instruction) -> Cause {
    let accesses = accesses(instruction);
    let at = Svma(instruction.ip());
    let reads = |access| {
        matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    };
    if accesses.iter().any(|memory| reads(memory.access())) {
        Cause::Load(at)
    } else if accesses.is_empty() {
        Cause::Computing
    } else {
        Cause::Store(at)
    }
}

thread_local!(static FACTORY: RefCell<InstructionInfoFactory> = RefCell::new(InstructionInfoFactory::new()));

/// The operands in memory that an instruction accesses; none for `lea`, prefetches and `nop`.
pub(crate) fn accesses(instruction: &Instruction) -> Vec<UsedMemory> {
    let touches = |memory: &UsedMemory| !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess);
    if instruction.mnemonic() == Mnemonic::Nop {
        return Vec::new();
    }
    FACTORY.with_borrow_mut(|factory| {
        factory.info(instruction).used_memory().iter().filter(|memory| touches(memory)).copied().collect()
    })
}

/// Whether an instruction writes a register, wholly or in part.
pub(crate) fn writes(instruction: &Instruction, register: Register) -> bool {
    let whole = register.full_register();
    FACTORY.with_borrow_mut(|factory| {
        let info = factory.info(instruction);
        info.used_registers().iter().any(|used| {
            used.register().full_register() == whole
                && !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_entered_by_calls_and_by_faults() {
        let at = |code: &[u8]| decoded(code).first().copied();
        let load = at(&[0x48, 0x8b, 0x07]); // mov rax, [rdi]
        let add = at(&[0x48, 0x01, 0xc8]); // add rax, rcx
        assert_eq!(entered(Some(&SYSCALL), add.as_ref()), Entry::SystemCall);
        assert_eq!(entered(Some(&SYSCALL), load.as_ref()), Entry::SystemCall);
        assert_eq!(entered(Some(&[0x90, 0x90]), load.as_ref()), Entry::Fault);
        assert_eq!(entered(None, add.as_ref()), Entry::Other);
        assert_eq!(entered(None, None), Entry::Other);
    }

    fn decoded(code: &[u8]) -> Vec<Instruction> {
        Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn the_core_waits_for_what_reads_memory() {
        let waits_for = |code: &[u8]| waited_at_end(&decoded(code));
        let load = Cause::Load(Svma(0x1000));
        assert_eq!(waits_for(&[0x48, 0x8b, 0x07]), load, "mov rax, [rdi]");
        assert_eq!(waits_for(&[0x48, 0x03, 0x07]), load, "add rax, [rdi]");
        assert_eq!(waits_for(&[0xf0, 0x48, 0xff, 0x07]), load, "lock inc qword [rdi]");
        assert_eq!(waits_for(&[0x58]), load, "pop rax");
        assert_eq!(waits_for(&[0x48, 0x89, 0x07]), Cause::Store(Svma(0x1000)), "mov [rdi], rax");
        assert_eq!(waits_for(&[0x48, 0x8d, 0x07]), Cause::Computing, "lea rax, [rdi]");
        assert_eq!(waits_for(&[0x0f, 0x18, 0x0f]), Cause::Computing, "prefetcht0 [rdi]");
        assert_eq!(waits_for(&[0x0f, 0x1f, 0x40, 0x00]), Cause::Computing, "nop [rax]");
        assert_eq!(waits_for(&[0x48, 0x01, 0xc8]), Cause::Computing, "add rax, rcx");
        assert_eq!(waits_for(&[]), Cause::Computing);
    }

    #[test]
    fn block_copies_are_interrupted_in_their_midst() {
        let is = |code: &[u8]| decoded(code).first().is_some_and(is_repeated);
        assert!(is(&[0xf3, 0xa4]) && is(&[0xf3, 0x48, 0xab]) && is(&[0xf2, 0xae]), "movsb, stosq, scasb");
        assert!(!is(&[0xa4]) && !is(&[0xf3, 0x0f, 0x10, 0x07]), "movsb once; movss xmm0, [rdi]");
        assert_eq!(waits(&decoded(&[0xf3, 0xa4])[0]), Cause::Load(Svma(0x1000)), "rep movsb");
        assert_eq!(waits(&decoded(&[0xf3, 0xaa])[0]), Cause::Store(Svma(0x1000)), "rep stosb");
    }

    #[test]
    fn a_comparison_and_its_branch_are_one() {
        let fused = decoded(&[0x48, 0x39, 0x07, 0x74, 0x05]); // cmp [rdi], rax; je +5
        assert_eq!(waited_at_end(&fused), Cause::Load(Svma(0x1000)));
        let apart = decoded(&[0x48, 0x8b, 0x07, 0x74, 0x05]); // mov rax, [rdi]; je +5
        assert_eq!(waited_at_end(&apart), Cause::Computing);
    }
}
