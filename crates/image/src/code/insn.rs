//! An instruction in eight bytes: a large program has millions of them.

use crate::code::skipped_lock::is_locked;
use crate::elf::bytes::u32_at;
use units::Svma;

/// Where control goes after an instruction. Numbers in names are the bits of the displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flow {
    Next,
    Jump8,
    Jump32,
    Branch8,
    /// Conditional jumps, and `xbegin`, which may continue at its target too.
    Branch32,
    /// `loop`, `jrcxz` and the like: conditional, with no longer form.
    Loop8,
    Call32,
    JumpIndirect,
    CallIndirect,
    Return,
    /// Does not continue: `ud2`, `hlt`.
    Stop,
}

impl Flow {
    /// Whether the next instruction in memory may follow. A call counts, whether or not it returns.
    pub fn falls_through(self) -> bool {
        !matches!(self, Self::Jump8 | Self::Jump32 | Self::JumpIndirect | Self::Return | Self::Stop)
    }
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call32 | Self::CallIndirect)
    }
    /// Bytes of the displacement that ends the instruction; 0 if it has no direct target.
    pub fn displacement_size(self) -> usize {
        match self {
            Self::Jump8 | Self::Branch8 | Self::Loop8 => 1,
            Self::Jump32 | Self::Branch32 | Self::Call32 => 4,
            _ => 0,
        }
    }
}

/// One decoded instruction of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Offset of its first byte in the unit.
    pub at: u32,
    pub len: u8,
    pub flow: Flow,
    /// Where in it the 4-byte displacement of a RIP-relative operand lies; 0 without one.
    pub rip_displacement: u8,
    /// A call that is known not to return.
    pub never_returns: bool,
}

impl Insn {
    pub fn end(&self) -> u32 {
        self.at + u32::from(self.len)
    }
    /// The bytes of the instruction; `code` are those of its unit.
    pub fn bytes<'c>(&self, code: &'c [u8]) -> &'c [u8] {
        &code[self.at as usize..self.end() as usize]
    }
    /// Where a direct jump, branch or call goes; over a `lock` prefix: to the prefix
    /// ([`super::skipped_lock`]).
    pub fn target(&self, start: Svma, code: &[u8]) -> Option<Svma> {
        let displacement = match self.flow.displacement_size() {
            1 if self.skips_lock(code) => 0,
            1 => i64::from(code[self.end() as usize - 1] as i8),
            4 => i64::from(u32_at(code, self.end() as usize - 4)? as i32),
            _ => return None,
        };
        Some(Svma((start.0 + u64::from(self.end())).wrapping_add_signed(displacement)))
    }
    fn skips_lock(self, code: &[u8]) -> bool {
        self.flow == Flow::Branch8
            && code[self.end() as usize - 1] == 1
            && is_locked(&code[self.end() as usize..])
    }
    /// What a RIP-relative operand refers to.
    pub fn rip_target(&self, start: Svma, code: &[u8]) -> Option<Svma> {
        if self.rip_displacement == 0 {
            return None;
        }
        let displacement = u32_at(code, self.at as usize + usize::from(self.rip_displacement))? as i32;
        Some(Svma((start.0 + u64::from(self.end())).wrapping_add_signed(i64::from(displacement))))
    }
}

/// The index of the instruction that starts at this offset; `insns` ascend.
pub fn index_at(insns: &[Insn], at: u32) -> Option<usize> {
    insns.binary_search_by_key(&at, |insn| insn.at).ok()
}

/// The index of the instruction that starts where this one (by its index) ends. It is the next one
/// almost always.
pub fn index_behind(insns: &[Insn], index: usize) -> Option<usize> {
    let end = insns[index].end();
    match insns.get(index + 1) {
        Some(next) if next.at == end => Some(index + 1),
        _ => index_at(insns, end),
    }
}
