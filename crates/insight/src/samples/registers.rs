//! A thread's general registers at a sample.

use iced_x86::Register;
use units::Avma;

/// The general registers by their number in instructions (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI,
/// R8 to R15), and the instruction pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub general: [u64; 16],
    pub ip: Avma,
}

impl Registers {
    /// The value of a register that an address is made of; zero for none. `None` for what a sample
    /// does not hold: vector registers, segment registers.
    pub fn value(&self, register: Register) -> Option<u64> {
        if register == Register::None {
            return Some(0);
        }
        if register == Register::RIP || register == Register::EIP {
            return Some(self.ip.0);
        }
        if !register.is_gpr64() && !register.is_gpr32() {
            return None;
        }
        let whole = self.general[register.number() % 16];
        Some(if register.is_gpr32() { u64::from(whole as u32) } else { whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_by_their_number() {
        let mut registers = Registers { ip: Avma(0x40), ..Registers::default() };
        for (number, value) in registers.general.iter_mut().enumerate() {
            *value = 0x1_0000_0000 + number as u64;
        }
        for (register, number) in [
            (Register::RAX, 0),
            (Register::RCX, 1),
            (Register::RDX, 2),
            (Register::RBX, 3),
            (Register::RSP, 4),
            (Register::RBP, 5),
            (Register::RSI, 6),
            (Register::RDI, 7),
            (Register::R8, 8),
            (Register::R15, 15),
        ] {
            assert_eq!(registers.value(register), Some(0x1_0000_0000 + number), "{register:?}");
        }
        assert_eq!(registers.value(Register::R9D), Some(9));
        assert_eq!(registers.value(Register::RIP), Some(0x40));
        assert_eq!(registers.value(Register::None), Some(0));
        assert_eq!(registers.value(Register::XMM0), None);
        assert_eq!(registers.value(Register::FS), None);
    }
}
