//! The few instructions that inserted code of harvest twins is made of, as bytes. (A general
//! assembler would take most of the time of a rewrite.) The tests read them back with a decoder.

use crate::layout::insertions::{ListedYield, Part, Piece, Reference, Spot, Switch};
use crate::layout::thrown::ThrownTo;
use crate::yields::registers::Register;

/// A switch byte's `nop`, whose last two bytes are chosen when its relay has a place.
const NOP_SWITCH: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];

/// Forward jumps in a piece have one or four bytes of distance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JumpReach {
    Near,
    Far,
}

/// A place in a piece that is not known yet.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    number: usize,
    /// It may be jumped to from the piece's other part.
    across: bool,
}

/// What a switch does while it is switched off.
#[derive(Clone, Copy)]
pub(crate) enum OffForm {
    /// Nothing at all; then it needs a relay, from where exceptions do this.
    Nop(ThrownTo),
    /// It loads a dead register.
    LoadsDead(Register),
    /// It sets dead flags.
    ComparesDead,
}

/// A displacement to be filled in.
struct Open {
    cold: bool,
    at: usize,
    size: usize,
    label: usize,
}

/// Assembles one piece.
pub(crate) struct Assembler {
    piece: Piece,
    /// Whether it is at the piece's cold part.
    cold: bool,
    reach: JumpReach,
    labels: usize,
    open: Vec<Open>,
    too_far: bool,
    /// The switch of the yield that is being written.
    switch: Option<Switch>,
}

/// Assembles with short jumps if they reach, else with long ones.
pub(crate) fn assemble(mut write: impl FnMut(&mut Assembler)) -> Piece {
    for reach in [JumpReach::Near, JumpReach::Far] {
        let mut assembler = Assembler {
            piece: Piece::default(),
            cold: false,
            reach,
            labels: 0,
            open: Vec::new(),
            too_far: false,
            switch: None,
        };
        write(&mut assembler);
        debug_assert!(assembler.open.is_empty(), "a label without a place");
        if !assembler.too_far {
            return assembler.piece;
        }
    }
    unreachable!("long jumps reach everywhere")
}

impl Assembler {
    /// The part that is being written.
    fn part(&mut self) -> &mut Part {
        if self.cold { &mut self.piece.cold } else { &mut self.piece.hot }
    }
    fn here(&mut self) -> usize {
        self.part().bytes.len()
    }
    /// Goes on in the piece's cold part, or in the other one again.
    pub(crate) fn go_cold(&mut self, cold: bool) {
        self.cold = cold;
    }
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.part().bytes.extend_from_slice(bytes);
    }
    pub(crate) fn append(&mut self, part: &Part) {
        self.part().extend(part);
    }

    /// A modrm with a base register and a displacement, for `register`.
    pub(super) fn at_base(&mut self, register: u32, base: Register, displacement: i32) {
        self.at_base_by(1, register, base, displacement);
    }
    /// A displacement of one byte counts in units of this many.
    pub(super) fn at_base_by(&mut self, unit: i32, register: u32, base: Register, displacement: i32) {
        let whole = (displacement % unit == 0).then_some(displacement / unit);
        let short = whole.and_then(|units| i8::try_from(units).ok());
        let form = if short.is_some() { 0x40 } else { 0x80 };
        self.raw(&[form | (register as u8 & 7) << 3 | base as u8 & 7]);
        if base & 7 == 4 {
            self.raw(&[0x24]);
        }
        match short {
            Some(short) => self.raw(&short.to_le_bytes()),
            None => self.raw(&displacement.to_le_bytes()),
        }
    }
    fn wide(register: u32, base: Register) -> u8 {
        0x48 | (register >> 3 << 2) as u8 | (base >> 3) as u8
    }
    /// Writes `mov register, [base + displacement]`.
    pub(crate) fn load(&mut self, register: Register, base: Register, displacement: i32) {
        self.raw(&[Self::wide(register, base), 0x8b]);
        self.at_base(register, base, displacement);
    }
    /// Writes `mov to, from`.
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.raw(&[Self::wide(from, to), 0x89, 0xc0 | (from as u8 & 7) << 3 | to as u8 & 7]);
    }
    /// Writes `mov [base + displacement], register`.
    pub(crate) fn store(&mut self, base: Register, displacement: i32, register: Register) {
        self.raw(&[Self::wide(register, base), 0x89]);
        self.at_base(register, base, displacement);
    }
    /// Writes `cmp register, [base + displacement]`.
    pub(crate) fn compare_with(&mut self, register: Register, base: Register, displacement: i32) {
        self.raw(&[Self::wide(register, base), 0x3b]);
        self.at_base(register, base, displacement);
    }
    /// Writes `jmp [base + displacement]`.
    pub(crate) fn jump_through(&mut self, base: Register, displacement: i32) {
        if base >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0xff]);
        self.at_base(4, base, displacement);
    }

    fn at_gs(&mut self, register: u32, displacement: u32) {
        self.raw(&[0x04 | (register as u8 & 7) << 3, 0x25]);
        self.raw(&displacement.to_le_bytes());
    }
    /// Writes `mov register, gs:[displacement]`.
    pub(crate) fn load_area(&mut self, register: Register, displacement: u32) {
        self.raw(&[0x65, Self::wide(register, 0), 0x8b]);
        self.at_gs(register, displacement);
    }
    /// Writes `mov gs:[displacement], register`.
    pub(crate) fn store_area(&mut self, displacement: u32, register: Register) {
        self.raw(&[0x65, Self::wide(register, 0), 0x89]);
        self.at_gs(register, displacement);
    }
    /// Writes `mov dword gs:[displacement], number`.
    pub(crate) fn set_area32(&mut self, displacement: u32, number: u32) {
        self.raw(&[0x65, 0xc7]);
        self.at_gs(0, displacement);
        self.raw(&number.to_le_bytes());
    }
    /// Writes `sub dword gs:[displacement], number`.
    pub(crate) fn subtract_area32(&mut self, displacement: u32, number: u32) {
        if let Ok(short) = i8::try_from(number) {
            self.raw(&[0x65, 0x83]);
            self.at_gs(5, displacement);
            self.raw(&short.to_le_bytes());
        } else {
            self.raw(&[0x65, 0x81]);
            self.at_gs(5, displacement);
            self.raw(&number.to_le_bytes());
        }
    }
    /// Writes `dec qword gs:[displacement]`.
    pub(crate) fn decrement_area(&mut self, displacement: u32) {
        self.raw(&[0x65, 0x48, 0xff]);
        self.at_gs(1, displacement);
    }
    /// Writes `cmp byte gs:[displacement], 0`.
    pub(crate) fn test_area8(&mut self, displacement: u32) {
        self.raw(&[0x65, 0x80]);
        self.at_gs(7, displacement);
        self.raw(&[0]);
    }
    /// Writes `jmp gs:[displacement]`.
    pub(crate) fn jump_area(&mut self, displacement: u32) {
        self.raw(&[0x65, 0xff]);
        self.at_gs(4, displacement);
    }

    /// Writes `lea register, [base + index * 2^shift]`, the index not being `rsp`.
    pub(crate) fn add_scaled(&mut self, register: Register, base: Register, index: Register, shift: u32) {
        let rex = Self::wide(register, base) | (index >> 3 << 1) as u8;
        self.raw(&[rex, 0x8d, 0x44 | (register as u8 & 7) << 3]);
        self.raw(&[(shift << 6) as u8 | (index as u8 & 7) << 3 | base as u8 & 7, 0]);
    }
    /// Writes `sub a, b`.
    pub(crate) fn subtract(&mut self, a: Register, b: Register) {
        self.raw(&[Self::wide(b, a), 0x29, 0xc0 | (b as u8 & 7) << 3 | a as u8 & 7]);
    }
    /// Writes `cmp a, b`.
    pub(crate) fn compare(&mut self, a: Register, b: Register) {
        self.raw(&[Self::wide(b, a), 0x39, 0xc0 | (b as u8 & 7) << 3 | a as u8 & 7]);
    }
    /// Writes `cmp register, size of all twins`.
    pub(crate) fn compare_with_text_size(&mut self, register: Register) {
        self.raw(&[Self::wide(0, register), 0x81, 0xf8 | register as u8 & 7]);
        self.refer(Reference::TextSize);
    }
    /// Writes `lea register, [rip + the first twin]`.
    pub(crate) fn load_text_begin(&mut self, register: Register) {
        self.load_address(register, Reference::TextBegin);
    }
    /// Writes `lea register, [rip + …]`.
    pub(crate) fn load_address(&mut self, register: Register, of: Reference) {
        self.raw(&[Self::wide(register, 0), 0x8d, 0x05 | (register as u8 & 7) << 3]);
        self.refer(of);
    }
    /// Writes `cmp register, number`.
    pub(crate) fn compare_with_number(&mut self, register: Register, number: u32) {
        self.raw(&[Self::wide(0, register), 0x81, 0xf8 | register as u8 & 7]);
        self.raw(&number.to_le_bytes());
    }
    /// Writes `movsxd register, dword [base + index * 4]`, the base being no `rbp` or `r13`, the
    /// index no `rsp`.
    pub(crate) fn load_signed(&mut self, register: Register, base: Register, index: Register) {
        let rex = Self::wide(register, base) | (index >> 3 << 1) as u8;
        self.raw(&[rex, 0x63, 0x04 | (register as u8 & 7) << 3]);
        self.raw(&[0x80 | (index as u8 & 7) << 3 | base as u8 & 7]);
    }
    /// Writes `test register, register`.
    pub(crate) fn test(&mut self, register: Register) {
        self.raw(&[Self::wide(register, register), 0x85, 0xc0 | ((register as u8 & 7) * 9)]);
    }
    fn refer(&mut self, to: Reference) {
        let here = self.here() as u32;
        self.part().references.push((here, to));
        self.raw(&[0; 4]);
    }

    /// All six flags into `rax`: bits 0-7 the overflow flag, 8-15 the others.
    pub(crate) fn flags_to_rax(&mut self) {
        self.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    }
    pub(crate) fn flags_from_rax(&mut self) {
        self.raw(&[0x04, 0x7f, 0x9e]); // add al, 0x7f; sahf
    }

    /// For one part only.
    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label { number: self.labels - 1, across: false }
    }
    /// For jumps from the other part, too.
    pub(crate) fn label_across(&mut self) -> Label {
        Label { across: true, ..self.label() }
    }
    fn opened(&mut self, size: usize, label: Label) {
        let (cold, at) = (self.cold, self.here());
        self.open.push(Open { cold, at, size, label: label.number });
        self.raw(&[0; 4][..size]);
    }
    fn jump_by(&mut self, near: u8, far: &[u8], label: Label) {
        if self.reach == JumpReach::Near && !label.across {
            self.raw(&[near]);
            self.opened(1, label);
        } else {
            self.raw(far);
            self.opened(4, label);
        }
    }
    pub(crate) fn jump(&mut self, label: Label) {
        self.jump_by(0xeb, &[0xe9], label);
    }
    pub(crate) fn jump_if_equal(&mut self, label: Label) {
        self.jump_by(0x74, &[0x0f, 0x84], label);
    }
    pub(crate) fn jump_if_not_equal(&mut self, label: Label) {
        self.jump_by(0x75, &[0x0f, 0x85], label);
    }
    pub(crate) fn jump_if_below(&mut self, label: Label) {
        self.jump_by(0x72, &[0x0f, 0x82], label);
    }
    pub(crate) fn jump_if_not_below(&mut self, label: Label) {
        self.jump_by(0x73, &[0x0f, 0x83], label);
    }
    pub(crate) fn jump_if_negative(&mut self, label: Label) {
        self.jump_by(0x78, &[0x0f, 0x88], label);
    }
    pub(crate) fn jump_if_not_negative(&mut self, label: Label) {
        self.jump_by(0x79, &[0x0f, 0x89], label);
    }
    /// What does nothing that matters until its first byte but for a prefix becomes that of a jump
    /// to the cold part, as far as that is written. It goes on there.
    pub(crate) fn switch(&mut self, off: OffForm) {
        debug_assert!(!self.cold, "switches lead to cold parts");
        if matches!(off, OffForm::LoadsDead(8..)) {
            self.raw(&[0x41]);
        }
        let at = self.here() as u32;
        let to = self.piece.cold.bytes.len() as u32;
        let by_relay = if let OffForm::Nop(thrown) = off { Some((to, thrown)) } else { None };
        self.switch = Some(Switch { at, by_relay });
        match off {
            OffForm::Nop(_) => self.raw(&NOP_SWITCH),
            OffForm::LoadsDead(register) => self.raw(&[0xb8 | register as u8 & 7, 0, 0, 0, 0]), // mov register, distance
            OffForm::ComparesDead => self.raw(&[0x3d, 0, 0, 0, 0]), // cmp eax, distance
        }
        if by_relay.is_none() {
            self.piece.hot.references.push((at + 1, Reference::Across(to)));
        }
        self.go_cold(true);
    }
    /// Where it is.
    pub(crate) fn spot(&mut self) -> Spot {
        Spot { cold: self.cold, at: self.here() as u32 }
    }
    /// The yield that goes on here is one that the mapping lists; its jump is at `jump`.
    pub(crate) fn list(&mut self, jump: Spot, origins: &[u64]) {
        let (resume, switch) = (self.spot(), self.switch.take());
        self.piece.yields.push(ListedYield { jump, resume, switch, origins: origins.into() });
    }
    /// What no way leads to: which registers are left in their slots from before one instruction to
    /// another one.
    pub(crate) fn sunk_note(&mut self, registers: u16, first: u32, behind: u32) {
        self.raw(&[0xa9]); // test eax, registers
        self.raw(&u32::from(registers).to_le_bytes());
        for to in [Reference::Before(first), Reference::At(behind)] {
            self.raw(&[0x48, 0x8d, 0x05]); // lea rax, [rip + …]
            self.refer(to);
        }
    }
    /// Writes `lea register, [rip + label]`.
    pub(crate) fn load_place(&mut self, register: Register, label: Label) {
        self.raw(&[Self::wide(register, 0), 0x8d, 0x05 | (register as u8 & 7) << 3]);
        self.opened(4, label);
    }
    /// The label is here.
    pub(crate) fn place(&mut self, label: Label) {
        let (cold, here) = (self.cold, self.here());
        let (here_now, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.label == label.number);
        self.open = open;
        for open in here_now {
            let Open { at, size, .. } = open;
            let part = if open.cold { &mut self.piece.cold } else { &mut self.piece.hot };
            if open.cold != cold {
                debug_assert!(size == 4, "a short jump to the other part");
                part.references.push((at as u32, Reference::Across(here as u32)));
                part.references.sort_unstable_by_key(|&(at, _)| at);
                continue;
            }
            let distance = (here - at - size) as i32;
            if size == 1 && distance > 127 {
                self.too_far = true;
            }
            part.bytes[at..at + size].copy_from_slice(&distance.to_le_bytes()[..size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::width::VectorWidth;
    use crate::yields::registers::RSP;
    use crate::yields::vector_moves::Extent;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
    use runtime_abi::context;

    fn read(piece: &Piece) -> Vec<String> {
        text(&piece.hot.bytes)
    }
    fn text(code: &[u8]) -> Vec<String> {
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_rip_relative_addresses(false);
        formatter.options_mut().set_space_after_operand_separator(true);
        let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        decoder
            .into_iter()
            .map(|insn| {
                let mut text = String::new();
                formatter.format(&insn, &mut text);
                text
            })
            .collect()
    }

    #[test]
    fn every_register_everywhere() {
        for a in 0..16u32 {
            for b in 0..16u32 {
                let piece = assemble(|asm| {
                    asm.load(a, b, -8);
                    asm.store(b, 0x200, a);
                    asm.compare_with(a, b, 0);
                    asm.jump_through(b, 8);
                    asm.load_area(a, 8);
                    asm.store_area(16, a);
                    asm.subtract(a, b);
                    asm.copy(a, b);
                    if a != RSP {
                        asm.add_scaled(b, b, a, 3);
                    }
                });
                let of = |number: u32| format!("{:?}", iced_x86::Register::RAX + number).to_lowercase();
                let (x, y) = (of(a), of(b));
                let mut expected = vec![
                    format!("mov {x}, [{y}-8]"),
                    format!("mov [{y}+200h], {x}"),
                    format!("cmp {x}, [{y}]"),
                    format!("jmp qword ptr [{y}+8]"),
                    format!("mov {x}, gs:[8]"),
                    format!("mov gs:[10h], {x}"),
                    format!("sub {x}, {y}"),
                    format!("mov {x}, {y}"),
                ];
                if a != RSP {
                    expected.push(format!("lea {y}, [{y}+{x}*8]"));
                }
                assert_eq!(read(&piece), expected);
            }
        }
    }

    #[test]
    fn the_rest() {
        let piece = assemble(|asm| {
            let label = asm.label();
            asm.jump(label);
            asm.jump_if_equal(label);
            asm.jump_if_below(label);
            asm.jump_if_not_negative(label);
            asm.load_place(9, label);
            asm.place(label);
            asm.set_area32(0x28, 1000);
            asm.subtract_area32(0x28, 7);
            asm.subtract_area32(0x28, 700);
            asm.test_area8(0x2c);
            asm.jump_area(0x30);
            asm.compare_with_text_size(3);
            asm.load_text_begin(12);
            asm.flags_to_rax();
            asm.flags_from_rax();
        });
        let expected = [
            "jmp short 000000000000000Fh",
            "je short 000000000000000Fh",
            "jb short 000000000000000Fh",
            "jns short 000000000000000Fh",
            "lea r9, [0Fh]",
            "mov dword ptr gs:[28h], 3E8h",
            "sub dword ptr gs:[28h], 7",
            "sub dword ptr gs:[28h], 2BCh",
            "cmp byte ptr gs:[2Ch], 0",
            "jmp qword ptr gs:[30h]",
            "cmp rbx, 0",
            "lea r12, [4Fh]",
            "lahf",
            "seto al",
            "add al, 7Fh",
            "sahf",
        ];
        assert_eq!(read(&piece), expected);
        assert_eq!(piece.hot.references.len(), 2);
    }

    #[test]
    fn long_ways_take_long_jumps() {
        let piece = assemble(|asm| {
            let label = asm.label();
            asm.jump_if_equal(label);
            asm.raw(&[0x90; 200]);
            asm.place(label);
        });
        assert_eq!(piece.hot.bytes.len(), 206);
        assert_eq!(read(&piece)[0], "je 00000000000000CEh");
    }

    #[test]
    fn jumps_to_the_other_part_are_filled_in_later() {
        let piece = assemble(|asm| {
            let (away, back, inside) = (asm.label_across(), asm.label_across(), asm.label());
            asm.jump_if_not_equal(away);
            asm.go_cold(true);
            asm.place(away);
            asm.jump_if_negative(inside);
            asm.jump(back);
            asm.place(inside);
            asm.jump(back);
            asm.go_cold(false);
            asm.flags_to_rax();
            asm.place(back);
        });
        assert_eq!(read(&piece)[0], "jne 6");
        assert_eq!(text(&piece.cold.bytes)[0], "js short 7");
        assert_eq!(piece.hot.references, [(2, Reference::Across(0))]);
        assert_eq!(piece.cold.references, [(3, Reference::Across(10)), (8, Reference::Across(10))]);
        let mut two = piece.clone();
        two.append(&piece);
        assert_eq!(two.hot.references[1], (12, Reference::Across(12)));
        assert_eq!(two.cold.references[3], (20, Reference::Across(20)));
    }

    #[test]
    fn vectors_in_every_extent() {
        for (number, base) in [(0u32, 0u32), (7, 9), (8, 4), (15, 12), (16, 1), (31, 13)] {
            for (extent, prefix) in [(Extent::Low, "xmm"), (Extent::Half, "ymm"), (Extent::All, "zmm")] {
                for width in [VectorWidth::Sse, VectorWidth::Avx, VectorWidth::Avx512] {
                    if width == VectorWidth::Sse && (extent != Extent::Low || number >= 16) {
                        continue;
                    }
                    let piece = assemble(|asm| {
                        asm.vector(true, number, extent, base, width);
                        asm.vector(false, number, extent, base, width);
                    });
                    let name = if width == VectorWidth::Sse { "movups" } else { "vmovups" };
                    let base = format!("{:?}", iced_x86::Register::RAX + base).to_lowercase();
                    let at = format!("[{base}+{:X}h]", context::vector(number as u8));
                    let expected =
                        [format!("{name} {at}, {prefix}{number}"), format!("{name} {prefix}{number}, {at}")];
                    assert_eq!(read(&piece), expected);
                    let is_evex = piece.hot.bytes[0] == 0x62;
                    let by_units = context::vector(number as u8) % (16 << extent as u8) == 0 && number < 30;
                    assert!(!is_evex || !by_units || piece.hot.bytes.len() <= 2 * 8, "seven bytes, or eight");
                }
            }
        }
        let piece = assemble(|asm| {
            asm.mask(true, 3, 9);
            asm.mask(false, 7, 0);
        });
        assert_eq!(read(&piece), ["kmovq [r9+898h], k3", "kmovq k7, [rax+8B8h]"]);
    }
}
