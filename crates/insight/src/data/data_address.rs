//! Which data a load read, by the registers of a sample taken right behind it; and which data an
//! instruction is about to access, by the registers in front of it.

use crate::code::cause::{accesses, is_repeated, writes};
use crate::samples::registers::Registers;
use iced_x86::{Instruction, Mnemonic, OpKind, Register, UsedMemory};

/// An address that a sample's registers tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataAddress {
    /// What the load read.
    Read(u64),
    /// The load replaced its own base or index by what it loaded, as the step along a list does:
    /// what it will read in the next iteration.
    Next(u64),
    /// The load replaced its index by what it loaded: where the array begins that it reads.
    Base(u64),
}

impl DataAddress {
    pub(crate) fn address(self) -> u64 {
        match self {
            Self::Read(address) | Self::Next(address) | Self::Base(address) => address,
        }
    }

    /// Whether the address is one that is read, this time or the next.
    pub(crate) fn is_exact(self) -> bool {
        !matches!(self, Self::Base(_))
    }
}

/// Why no address is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NoAddress {
    /// The instruction itself changed a register that the address was made of.
    Overwritten,
    /// Relative to a segment's base, which samples do not hold: thread-local data.
    ThreadLocal,
    /// Many addresses at once, or none.
    NotOne,
}

/// A smaller base is no address: the array is named by what the index held.
const LEAST_BASE: u64 = 0x10000;

/// The address that `load` read. `registers` are those behind it. `is_chased` says whether its
/// address comes from what it loaded one iteration earlier, where its code tells: a field may be
/// loaded into the register that held its object, which is another one in the next iteration.
pub(crate) fn data_address(
    load: &Instruction,
    registers: &Registers,
    is_chased: Option<bool>,
) -> Result<DataAddress, NoAddress> {
    if is_repeated(load) {
        return in_the_midst(load, registers);
    }
    let memory = one_operand(load)?;
    let sum = sum(load, &memory, registers, load.next_ip())?;
    let changed = |register| register != Register::None && writes(load, register);
    let loads_into = |register: Register| {
        let into = load.op0_register();
        let keeps_all = into == register || into.is_gpr32() && into.full_register() == register;
        load.mnemonic() == Mnemonic::Mov && load.op0_kind() == OpKind::Register && keeps_all
    };
    if changed(memory.index()) {
        let is_other = memory.base() != memory.index();
        if is_chased == Some(true) && is_other && loads_into(memory.index()) {
            return Ok(DataAddress::Next(sum));
        }
        let base = registers.value(memory.base()).ok_or(NoAddress::NotOne)?;
        let base = base.wrapping_add(memory.displacement());
        let keeps_base = memory.base() != memory.index() && !changed(memory.base()) && base >= LEAST_BASE;
        return if keeps_base { Ok(DataAddress::Base(base)) } else { Err(NoAddress::Overwritten) };
    }
    if changed(memory.base()) {
        // `pop` moves the stack pointer by what it read.
        if memory.base() == Register::RSP {
            let moved = i64::from(load.stack_pointer_increment());
            return Ok(DataAddress::Read(sum.wrapping_add_signed(-moved)));
        }
        let steps = is_chased != Some(false)
            && load.mnemonic() == Mnemonic::Mov
            && load.op0_kind() == OpKind::Register
            && load.op0_register() == memory.base();
        return if steps { Ok(DataAddress::Next(sum)) } else { Err(NoAddress::Overwritten) };
    }
    Ok(DataAddress::Read(sum))
}

/// How far a string instruction has come that was interrupted: what it reads, or else writes.
fn in_the_midst(instruction: &Instruction, registers: &Registers) -> Result<DataAddress, NoAddress> {
    let reads_there = matches!(
        instruction.mnemonic(),
        Mnemonic::Movsb
            | Mnemonic::Movsw
            | Mnemonic::Movsd
            | Mnemonic::Movsq
            | Mnemonic::Cmpsb
            | Mnemonic::Cmpsw
            | Mnemonic::Cmpsd
            | Mnemonic::Cmpsq
            | Mnemonic::Lodsb
            | Mnemonic::Lodsw
            | Mnemonic::Lodsd
            | Mnemonic::Lodsq
    );
    let register = if reads_there { Register::RSI } else { Register::RDI };
    registers.value(register).map(DataAddress::Read).ok_or(NoAddress::NotOne)
}

/// The address that an instruction is about to access. `registers` are those in front of it, so it
/// has overwritten none of them.
pub(crate) fn address_ahead(instruction: &Instruction, registers: &Registers) -> Result<u64, NoAddress> {
    let memory = one_operand(instruction)?;
    sum(instruction, &memory, registers, instruction.ip())
}

/// The operand in memory of an instruction that accesses one address, which registers tell.
fn one_operand(instruction: &Instruction) -> Result<UsedMemory, NoAddress> {
    let accesses = accesses(instruction);
    let [memory] = accesses[..] else { return Err(NoAddress::NotOne) };
    match memory.segment() {
        Register::FS | Register::GS => Err(NoAddress::ThreadLocal),
        _ => Ok(memory),
    }
}

/// An operand's address by these registers. Their instruction pointer is where the file has
/// `stated_ip`.
fn sum(
    instruction: &Instruction,
    memory: &UsedMemory,
    registers: &Registers,
    stated_ip: u64,
) -> Result<u64, NoAddress> {
    // Relative to the instruction: the decoder has worked out the displacement, as an address of
    // the file.
    if instruction.is_ip_rel_memory_operand() && memory.base() == Register::None {
        let distance = memory.displacement().wrapping_sub(stated_ip);
        return Ok(registers.ip.0.wrapping_add(distance));
    }
    // Vector registers have no value here: such an instruction accesses many addresses.
    let value = |register| registers.value(register).ok_or(NoAddress::NotOne);
    let (base, index) = (value(memory.base())?, value(memory.index())?);
    let scaled = index.wrapping_mul(u64::from(memory.scale()));
    Ok(base.wrapping_add(scaled).wrapping_add(memory.displacement()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use units::Avma;

    const AT: u64 = 0x1000;
    /// Where the code of the tests is loaded: other than its file says.
    const LOADED: u64 = 0x7000_0000;

    fn decoded(bytes: &[u8]) -> Instruction {
        let instruction = Decoder::with_ip(64, bytes, AT, DecoderOptions::NONE).decode();
        assert_eq!(instruction.len(), bytes.len(), "{instruction}");
        instruction
    }

    fn registers_at(ip: u64) -> Registers {
        let general = std::array::from_fn(|number| 0x100_0000 * (number as u64 + 1));
        Registers { general, ip: Avma(LOADED + ip - AT) }
    }

    fn told(bytes: &[u8]) -> Result<DataAddress, NoAddress> {
        let load = decoded(bytes);
        data_address(&load, &registers_at(load.next_ip()), None)
    }

    #[test]
    fn what_a_load_reads_next_is_known_of_chains() {
        use DataAddress::{Base, Next};
        let told = |bytes: &[u8], is_chased| {
            let load = decoded(bytes);
            data_address(&load, &registers_at(load.next_ip()), is_chased)
        };
        let list = [0x48, 0x8b, 0x3f]; // mov rdi, [rdi]
        assert_eq!(told(&list, Some(true)), Ok(Next(0x800_0000)));
        assert_eq!(told(&list, Some(false)), Err(NoAddress::Overwritten), "a field in its object's place");
        let indices = [0x8b, 0x04, 0x87]; // mov eax, [rdi + rax*4]
        assert_eq!(told(&indices, Some(true)), Ok(Next(0x800_0000 + 4 * 0x100_0000)));
        assert_eq!(told(&indices, Some(false)), Ok(Base(0x800_0000)));
        assert_eq!(
            told(&[0x0f, 0xb6, 0x04, 0x07], Some(true)),
            Ok(Base(0x800_0000)),
            "movzx eax, [rdi + rax]"
        );
    }

    #[test]
    fn in_front_of_an_instruction_nothing_is_overwritten() {
        let ahead = |bytes: &[u8]| address_ahead(&decoded(bytes), &registers_at(AT));
        assert_eq!(ahead(&[0x48, 0x8b, 0x3c, 0x3f]), Ok(2 * 0x800_0000), "mov rdi, [rdi + rdi]");
        assert_eq!(ahead(&[0x0f, 0xb6, 0x3f]), Ok(0x800_0000), "movzx edi, byte [rdi]");
        assert_eq!(ahead(&[0x8b, 0x05, 0x10, 0, 0, 0]), Ok(LOADED + 6 + 0x10), "mov eax, [rip + 16]");
        assert_eq!(
            ahead(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]),
            Err(NoAddress::ThreadLocal),
            "mov rax, fs:[0x28]"
        );
    }

    #[test]
    fn addresses_are_made_of_the_registers_behind_the_load() {
        // RAX is 0x100_0000, RCX 0x200_0000, RSP 0x500_0000, RDI 0x800_0000 …
        use DataAddress::{Base, Next, Read};
        assert_eq!(told(&[0x48, 0x8b, 0x47, 0x08]), Ok(Read(0x800_0008)), "mov rax, [rdi + 8]");
        assert_eq!(
            told(&[0x8b, 0x14, 0x8f]),
            Ok(Read(0x800_0000 + 4 * 0x200_0000)),
            "mov edx, [rdi + rcx*4]"
        );
        assert_eq!(told(&[0x48, 0x8b, 0x3f]), Ok(Next(0x800_0000)), "mov rdi, [rdi]");
        assert_eq!(told(&[0x48, 0x8b, 0x7f, 0x10]), Ok(Next(0x800_0010)), "mov rdi, [rdi + 16]");
        assert_eq!(told(&[0x48, 0x8b, 0x0c, 0x0f]), Ok(Base(0x800_0000)), "mov rcx, [rdi + rcx]");
        assert_eq!(
            told(&[0x48, 0x63, 0x0c, 0x8d, 8, 0, 0, 0]),
            Err(NoAddress::Overwritten),
            "movsxd rcx, [rcx*4 + 8]"
        );
        assert_eq!(told(&[0x48, 0x8b, 0x3c, 0x3f]), Err(NoAddress::Overwritten), "mov rdi, [rdi + rdi]");
        assert_eq!(told(&[0x0f, 0xb6, 0x3f]), Err(NoAddress::Overwritten), "movzx edi, byte [rdi]");
        assert_eq!(told(&[0xf3, 0xa4]), Ok(Read(0x700_0000)), "rep movsb");
        assert_eq!(told(&[0xf3, 0x48, 0xab]), Ok(Read(0x800_0000)), "rep stosq");
        assert_eq!(told(&[0x58]), Ok(Read(0x500_0000 - 8)), "pop rax");
        assert_eq!(told(&[0x8b, 0x05, 0x10, 0, 0, 0]), Ok(Read(LOADED + 6 + 0x10)), "mov eax, [rip + 16]");
        assert_eq!(
            told(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]),
            Err(NoAddress::ThreadLocal),
            "mov rax, fs:[0x28]"
        );
        assert_eq!(told(&[0x48, 0x8d, 0x07]), Err(NoAddress::NotOne), "lea rax, [rdi]");
        assert_eq!(told(&[0xf0, 0x48, 0xff, 0x07]), Ok(Read(0x800_0000)), "lock inc qword [rdi]");
    }
}
