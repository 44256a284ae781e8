//! Functions to which a return address is more than where to return: they take it for the place of
//! their caller, or come back somewhere behind it. Called from a twin they find the twin's; so
//! their callers have none. What does so where the unwind table says that the return address lies
//! is looked for in `frames`. Where the table of what is called says that its frame is another one
//! than that of a function just called, nobody knows what becomes of the return address.

mod frames;

use crate::select::hazards::ENDBR64;
use image::Module;
use image::code::insn::Insn;
use rayon::prelude::*;
use std::collections::HashSet;
use units::Svma;

/// How many instructions behind a load of the return address something is looked for that makes
/// another one of it.
const NEAR: usize = 2;

/// The functions of a module that do so.
pub(crate) struct Readers(HashSet<u64>);

impl Readers {
    pub(crate) fn of(module: &Module<'_>) -> Self {
        let mut found: Vec<usize> = (0..module.units.len())
            .into_par_iter()
            .with_min_len(256)
            .filter(|&unit| {
                let code = module.code(unit);
                let is_called = || frames::is_called(module, unit);
                (begins_with_it(code) || returns_elsewhere(code, &module.decoded[unit].insns)) && is_called()
                    || frames::are_used(module, unit)
            })
            .collect();
        // A function that ends with a jump to one of them hands its return address on. By the
        // target of the jump:
        let start = |unit: usize| module.units[unit].start.0;
        let mut readers: HashSet<u64> = found.iter().map(|&unit| start(unit)).collect();
        // To others, jumps have been looked at where their frames are known.
        found.retain(|&unit| module.units[unit].fde.is_some());
        let jumps = if found.is_empty() { Vec::new() } else { jumps(module) };
        while let Some(to) = found.pop() {
            let first = jumps.partition_point(|jump| jump.0 < start(to));
            for &(_, from) in jumps[first..].iter().take_while(|jump| jump.0 == start(to)) {
                if readers.insert(start(from)) {
                    found.push(from);
                }
            }
        }
        let is_odd = |&unit: &usize| module.units[unit].is_part && !frames::is_called(module, unit);
        readers.extend((0..module.units.len()).filter(is_odd).map(start));
        Self(readers)
    }

    /// Whether a unit reads the return addresses of its own calls.
    pub(crate) fn look_back(module: &Module<'_>, unit: usize) -> bool {
        frames::look_back(module, unit)
    }

    /// Whether a call of this address leads to one.
    pub(crate) fn hold(&self, module: &Module<'_>, target: Svma) -> bool {
        self.0.contains(&target.0) || is_at(module, target)
    }
}

/// Whether the code at an address, whatever it is a part of, begins so.
fn is_at(module: &Module<'_>, target: Svma) -> bool {
    module.image.is_code(target) && module.image.bytes_from(target).is_some_and(begins_with_it)
}

/// Jumps to where units begin, and the units they come from; by the former.
fn jumps(module: &Module<'_>) -> Vec<(u64, usize)> {
    let mut jumps: Vec<(u64, usize)> = (0..module.units.len())
        .flat_map(|unit| module.decoded[unit].jumps_out.iter().map(move |to| (to.0, unit)))
        .collect();
    jumps.sort_unstable();
    jumps
}

/// By the very first instruction, where the return address is on top of the stack.
fn begins_with_it(code: &[u8]) -> bool {
    match code.strip_prefix(&ENDBR64).unwrap_or(code) {
        [0x58..=0x5f, ..] | [0x41, 0x58..=0x5f, ..] => true,
        [0x48 | 0x4c, 0x8b, modrm, 0x24, ..] if modrm & 0xc7 == 0x04 => true,
        code => frames::begin(code),
    }
}

/// The return address, or a copy of it in a register, gets something added: as where the stack of a
/// caller is split, which goes on not behind the call but behind the `ret` that stands there.
fn returns_elsewhere(code: &[u8], insns: &[Insn]) -> bool {
    // Bytes pushed since the entry, while nothing else moved the stack pointer; whether rbp marks
    // the frame.
    let (mut pushed, mut framed) = (Some(0u8), false);
    for (index, insn) in insns.iter().enumerate() {
        let bytes = insn.bytes(code);
        let is_it = |slot: Slot| match slot {
            Slot::Stack(at) => pushed == Some(at),
            Slot::Frame(at) => framed && at == 8,
        };
        if added_to(bytes).is_some_and(is_it) {
            return true;
        }
        if let Some((register, slot)) = loaded(bytes) {
            let behind = insns[index + 1..].iter().take(NEAR);
            if is_it(slot) && behind.map(|insn| insn.bytes(code)).any(|bytes| is_added_to(bytes, register)) {
                return true;
            }
        }
        match bytes {
            [0x48, 0x89, 0xe5] | [0x48, 0x8b, 0xec] if pushed == Some(8) => framed = true,
            [0x50..=0x57] | [0x41, 0x50..=0x57] => pushed = pushed.and_then(|pushed| pushed.checked_add(8)),
            _ if moves_stack(bytes) || insn.flow.is_call() => pushed = None,
            _ => {}
        }
        if pushed.is_none() && !framed {
            return false;
        }
    }
    false
}

/// A word on the stack, by what it is addressed with.
#[derive(Clone, Copy)]
enum Slot {
    Stack(u8),
    Frame(u8),
}

/// `mov reg, [rsp + d]`, `mov reg, [rbp + d]`.
fn loaded(bytes: &[u8]) -> Option<(u8, Slot)> {
    let [rex @ (0x48 | 0x4c), 0x8b, modrm, operand @ ..] = bytes else { return None };
    Some((modrm >> 3 & 7 | (rex & 4) << 1, slot(*modrm, operand)?))
}

/// `inc`, `add` and `sub` of such a word.
fn added_to(bytes: &[u8]) -> Option<Slot> {
    match bytes {
        [0x48, 0xff, modrm, operand @ ..] if matches!(modrm >> 3 & 7, 0) => slot(*modrm, operand),
        [0x48, 0x81 | 0x83, modrm, operand @ ..] if matches!(modrm >> 3 & 7, 0 | 5) => slot(*modrm, operand),
        _ => None,
    }
}

fn slot(modrm: u8, operand: &[u8]) -> Option<Slot> {
    match (modrm & 0xc7, operand) {
        (0x04, [0x24, ..]) => Some(Slot::Stack(0)),
        (0x44, [0x24, at, ..]) => Some(Slot::Stack(*at)),
        (0x45, [at, ..]) => Some(Slot::Frame(*at)),
        _ => None,
    }
}

/// `inc reg`, `add reg, constant`.
fn is_added_to(bytes: &[u8], register: u8) -> bool {
    match bytes {
        [rex @ (0x48 | 0x49), 0xff, modrm] | [rex @ (0x48 | 0x49), 0x81 | 0x83, modrm, ..] => {
            modrm >> 3 == 0x18 && modrm & 7 | (rex & 1) << 3 == register
        }
        [0x48, 0x05, ..] => register == 0,
        _ => false,
    }
}

/// Anything that may change rsp but pushes: `pop`, `leave`, `add` and `sub`, `lea`, `mov` to it.
fn moves_stack(bytes: &[u8]) -> bool {
    match bytes {
        [0x58..=0x5f | 0xc9 | 0x9c | 0x9d | 0x68 | 0x6a, ..] | [0x41, 0x58..=0x5f, ..] => true,
        [0x48, 0x81 | 0x83 | 0x89, modrm, ..] => modrm & 0xc7 == 0xc4,
        [0x48, 0x8b | 0x8d, modrm, ..] => modrm >> 3 & 7 == 4,
        [0xff, modrm, ..] | [0x41, 0xff, modrm, ..] => modrm >> 3 & 7 == 6,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use image::code::insn::Flow;

    fn of(code: &[u8]) -> bool {
        let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
        let mut insns = Vec::new();
        while decoder.can_decode() {
            let at = decoder.position() as u32;
            let len = decoder.decode().len() as u8;
            let flow = if code[at as usize] == 0xe8 { Flow::Call32 } else { Flow::Next };
            insns.push(Insn { at, len, flow, rip_displacement: 0, never_returns: false });
        }
        returns_elsewhere(code, &insns)
    }

    #[test]
    fn what_is_added_to_a_return_address() {
        // push rbp; mov rbp, rsp; call; mov r10, [rbp+8]; inc r10
        let morestack = [0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0, 0x4c, 0x8b, 0x55, 8, 0x49, 0xff, 0xc2];
        assert!(of(&morestack));
        let mut other = morestack;
        other[15] = 0xc3; // inc r11
        assert!(!of(&other));
        other = morestack;
        other[12] = 16; // an argument
        assert!(!of(&other));
        other = morestack;
        other[0] = 0x90; // no frame
        assert!(!of(&other));
        // push rax; inc qword [rsp+8]
        assert!(of(&[0x50, 0x48, 0xff, 0x44, 0x24, 8]));
        assert!(!of(&[0x90, 0x48, 0xff, 0x44, 0x24, 8]), "something of the caller's");
        assert!(!of(&[0x50, 0x48, 0x83, 0xec, 8, 0x48, 0xff, 0x44, 0x24, 8]), "what was pushed");
        // mov rax, [rsp]; nop; add rax, 4
        assert!(of(&[0x48, 0x8b, 4, 0x24, 0x90, 0x48, 0x83, 0xc0, 4]));
        assert!(!of(&[0x48, 0x8b, 4, 0x24, 0xc3]), "it is only looked at");
    }
}
