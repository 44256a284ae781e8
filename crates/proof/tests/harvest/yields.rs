//! Wrong yields.

use crate::Wrong;
use crate::pieces::{Piece, add, fill, is_relayed};
use gleaner_proof::Rule::{Mapping, Prefetches, Yields};
use iced_x86::{Code, Instruction};

const NOP: u8 = 0x90;

/// Pieces whose flags and some register are dead, and that do nothing but yield: where they load
/// the context.
fn short(piece: &Piece) -> Option<usize> {
    let first = piece.inserted.iter().find(|insn| !is_switch(insn))?;
    let place = piece.place(first);
    let first = first.to_string();
    (first.starts_with("mov") && first.ends_with("gs:[8]")).then_some(place)
}
/// What turns into a jump where a primary's yield is switched on.
fn is_switch(insn: &Instruction) -> bool {
    leads_itself(insn) || is_relayed(insn)
}
fn leads_itself(insn: &Instruction) -> bool {
    matches!(insn.code(), Code::Mov_r32_imm32 | Code::Cmp_EAX_imm32)
}
/// It, where it needs no relay; where its opcode is.
fn switch(piece: &Piece) -> Option<(&Instruction, usize)> {
    let switch = piece.inserted.iter().find(|insn| leads_itself(insn))?;
    Some((switch, piece.place(switch) + switch.len() - 5))
}
/// Pieces that save `rax` first.
fn general(piece: &Piece) -> Option<()> {
    piece.find("mov gs:[10h],rax").map(|_| ())
}
/// The jump that depends on whether there is another context.
fn asks(piece: &Piece) -> Option<(usize, usize)> {
    piece.find("je").or_else(|| piece.find("jne"))
}
/// Where the instructions are that bring general registers back, `rsp` aside.
fn loads(piece: &Piece) -> Vec<usize> {
    let loads = piece.inserted.iter().filter(|insn| {
        let text = insn.to_string();
        text.contains(",[rax-") && text.starts_with("mov r") && insn.len() == 4
    });
    loads.map(|insn| piece.place(insn)).collect()
}
fn stores(piece: &Piece) -> Vec<usize> {
    let stores = piece.inserted.iter().filter(|insn| {
        let text = insn.to_string();
        text.starts_with("mov [r") && text.contains('-') && insn.len() == 4
    });
    stores.map(|insn| piece.place(insn)).collect()
}
fn swap(new: &mut [u8], a: usize, b: usize, size: usize) {
    for at in 0..size {
        new.swap(a + at, b + at);
    }
}
fn put(new: &mut [u8], (at, size): (usize, usize), bytes: &[u8]) -> Option<()> {
    (bytes.len() <= size).then(|| {
        new[at..at + size].fill(NOP);
        new[at..at + bytes.len()].copy_from_slice(bytes);
    })
}

macro_rules! wrong {
    ($name:literal, $rule:ident, |$piece:ident, $new:ident| $body:expr) => {
        Wrong { name: $name, rule: $rule, make: |$piece: &Piece, $new: &mut [u8]| $body }
    };
}

pub(crate) const ALL: &[Wrong] = &[
    wrong!("saved to another register's slot", Yields, |piece, new| {
        add(new, *stores(piece).first()? + 3, 1, 8);
        Some(())
    }),
    wrong!("restored from another register's slot", Yields, |piece, new| {
        add(new, *loads(piece).first()? + 3, 1, 8);
        Some(())
    }),
    wrong!("two slots swapped", Yields, |piece, new| {
        let loads = loads(piece);
        swap(new, *loads.first()? + 3, *loads.get(1)? + 3, 1);
        Some(())
    }),
    wrong!("two slots swapped on both sides", Yields, |piece, new| {
        let (stores, loads) = (stores(piece), loads(piece));
        swap(new, *stores.first()? + 3, *stores.get(1)? + 3, 1);
        swap(new, *loads.first()? + 3, *loads.get(1)? + 3, 1);
        Some(())
    }),
    wrong!("another register saved", Yields, |piece, new| {
        let stores = stores(piece);
        let (first, second) = (*stores.first()?, *stores.get(1)?);
        new.copy_within(second..second + 4, first);
        Some(())
    }),
    wrong!("another register restored", Yields, |piece, new| {
        let loads = loads(piece);
        let (first, second) = (*loads.first()?, *loads.get(1)?);
        new.copy_within(second..second + 4, first);
        Some(())
    }),
    wrong!("rax restored before others", Yields, |piece, new| {
        let (rax, _) = piece.find("mov rax,[rax-80h]")?;
        let first = loads(piece).into_iter().find(|&at| at != rax)?;
        swap(new, first, rax, 4);
        Some(())
    }),
    wrong!("goes to what a free word of the context names, and asks for that", Yields, |piece, new| {
        let next = |text: &str| {
            let is_it = |insn: &&Instruction| insn.to_string().starts_with(text);
            let insn = piece.inserted.iter().find(is_it)?;
            // With a displacement of one byte, which is NEXT's.
            let at = piece.place(insn) + 3;
            (insn.len() == 4 && new[at] == 0).then_some(at)
        };
        let (asked, gone) = (next("cmp r")?, next("mov rax,[r")?);
        (new[asked], new[gone]) = (0x28, 0x28);
        Some(())
    }),
    wrong!("the stack pointer not saved", Yields, |piece, new| {
        short(piece)?;
        let (at, size) = piece
            .inserted
            .iter()
            .find(|i| i.to_string().ends_with("+10h],rsp"))
            .map(|i| (piece.place(i), i.len()))?;
        new[at + size - 2] ^= 0x08; // rbp, or r13 by its prefix
        Some(())
    }),
    wrong!("the stack pointer not restored", Yields, |piece, new| {
        let (at, _) = piece.find("mov rsp,[rax+10h]")?;
        new[at + 3] = 0x18;
        Some(())
    }),
    wrong!("the stack pointer restored into rbp", Yields, |piece, new| {
        let (at, _) = piece.find("mov rsp,[rax+10h]")?;
        new[at + 2] ^= 0x08;
        Some(())
    }),
    wrong!("goes on one byte further", Yields, |piece, new| {
        let insn = piece
            .inserted
            .iter()
            .find(|insn| insn.is_ip_rel_memory_operand() && insn.to_string().starts_with("lea"))?;
        add(new, piece.place(insn) + 3, 4, 1);
        Some(())
    }),
    wrong!("goes on behind the first thing to do", Yields, |piece, new| {
        let insn = piece
            .inserted
            .iter()
            .find(|insn| insn.is_ip_rel_memory_operand() && insn.to_string().starts_with("lea"))?;
        let (_, size) = piece.find("mov rsp,[rax+10h]")?;
        add(new, piece.place(insn) + 3, 4, size as i64);
        Some(())
    }),
    wrong!("goes on elsewhere", Yields, |piece, new| {
        let insn = piece
            .inserted
            .iter()
            .find(|insn| insn.is_ip_rel_memory_operand() && insn.to_string().starts_with("lea"))?;
        add(new, piece.place(insn) + 3, 4, 0x1000);
        Some(())
    }),
    wrong!("does not say where to go on", Yields, |piece, new| {
        let insn = piece
            .inserted
            .iter()
            .find(|insn| insn.is_ip_rel_memory_operand() && insn.to_string().starts_with("lea"))?;
        let next = piece.place(insn) + insn.len();
        // into FS instead of RIP
        let modrm = new[next..].iter().take(5).position(|&byte| byte == 8)?;
        new[next + modrm] = 0x18;
        Some(())
    }),
    wrong!("jumps too far with other contexts in the ring, or without", Yields, |piece, new| {
        short(piece)?;
        let (at, size) = asks(piece)?;
        add(new, at + size - if size == 2 { 1 } else { 4 }, 1, 1);
        Some(())
    }),
    wrong!("comes back too early", Yields, |piece, new| {
        // in the cold part, the jump back; else the one over it
        short(piece)?;
        let (at, size) = piece.find("jmp 0").or_else(|| piece.find("je"))?;
        let wide = size != 2;
        add(new, at + size - if wide { 4 } else { 1 }, if wide { 4 } else { 1 }, -4);
        Some(())
    }),
    wrong!("yields when alone, and not else", Yields, |piece, new| {
        let (at, size) = asks(piece)?;
        new[at + size - if size == 2 { 2 } else { 5 }] ^= 1;
        Some(())
    }),
    wrong!("asks another word who is next", Yields, |piece, new| {
        let insn = piece.inserted.iter().find(|insn| insn.to_string().starts_with("cmp r"))?;
        new[piece.place(insn) + insn.len() - 1] = 8;
        Some(())
    }),
    wrong!("another word is the context", Yields, |piece, new| {
        new[short(piece)? + 5] = 0x38; // OWN
        Some(())
    }),
    wrong!("does not make the next one current", Yields, |piece, new| {
        let (at, _) = piece.find("mov gs:[8],rax")?;
        new[at + 5] = 0x18;
        Some(())
    }),
    wrong!("switches to itself", Yields, |piece, new| {
        let (at, _) = piece.find("mov gs:[8],rax")?;
        // the load before it: of RIP instead of NEXT
        add(new, at - 1, 1, 8);
        Some(())
    }),
    wrong!("jumps to another word", Yields, |piece, new| {
        let (at, size) = piece.find("jmp qword ptr [rax+8]")?;
        new[at + size - 1] = 0x10;
        Some(())
    }),
    wrong!("jumps by another register", Yields, |piece, new| {
        let (at, size) = piece.find("jmp qword ptr [rax+8]")?;
        new[at + size - 2] |= 1;
        Some(())
    }),
    wrong!("a push and a pop in the red zone", Yields, |piece, new| {
        put(new, (*stores(piece).first()?, 4), &[0x50, 0x58])
    }),
    wrong!("a store into the red zone", Yields, |piece, new| {
        let (at, size) = piece.nth("movups [r", 0).or_else(|| piece.nth("vmovups [r", 0))?;
        put(new, (at, size), &[0x48, 0x89, 0x44, 0x24, 0xf8])
    }),
    wrong!("a call", Yields, |piece, new| { put(new, piece.find("mov gs:[10h],rax")?, &[0xe8, 4, 0, 0, 0]) }),
    wrong!("a store to the program's memory", Yields, |piece, new| {
        let at = *stores(piece).first()?;
        new[at + 2] = new[at + 2] & !7 | 7; // by rdi
        (new[at] & 1 == 0).then_some(())?;
        let base = piece.inserted.iter().find(|insn| insn.to_string().starts_with("cmp r"))?;
        (base.memory_base() != iced_x86::Register::RDI).then_some(())
    }),
    wrong!("flags not saved", Yields, |piece, new| put(new, piece.find("lahf")?, &[])),
    wrong!("the overflow flag inverted", Yields, |piece, new| {
        let (at, _) = piece.find("seto al")?;
        new[at + 1] = 0x91;
        Some(())
    }),
    wrong!("the overflow flag not saved", Yields, |piece, new| put(
        new,
        piece.find("seto al")?,
        &[0x66, 0x90]
    )),
    wrong!("flags not restored", Yields, |piece, new| put(new, piece.find("sahf")?, &[])),
    wrong!("flags not restored where nobody else is", Yields, |piece, new| {
        put(new, piece.nth("sahf", 1)?, &[])
    }),
    wrong!("the overflow flag never set", Yields, |piece, new| {
        let (at, _) = piece.find("add al,7Fh")?;
        new[at + 1] = 0x7e;
        Some(())
    }),
    wrong!("flags restored from rax's word", Yields, |piece, new| {
        let (at, _) = piece.find("mov rax,gs:[18h]")?;
        new[at + 5] = 0x10;
        Some(())
    }),
    wrong!("rax restored from the flags' word", Yields, |piece, new| {
        piece.find("lahf")?;
        let insn = piece.inserted.iter().rfind(|insn| insn.to_string() == "mov rax,gs:[10h]")?;
        new[piece.place(insn) + 5] = 0x18;
        Some(())
    }),
    wrong!("rax saved to another register's slot", Yields, |piece, new| {
        general(piece)?;
        let (at, _) = piece.find("mov gs:[10h],rax")?;
        new[at + 5] = 0x40;
        Some(())
    }),
    wrong!("a vector register saved to another's place", Yields, |piece, new| {
        let (at, size) = piece.nth("movups [r", 0).or_else(|| piece.nth("vmovups [r", 0))?;
        add(new, at + size - 4, 4, 64);
        Some(())
    }),
    wrong!("a vector register restored from another's place", Yields, |piece, new| {
        let (at, size) = piece.nth("movups xmm", 0).or_else(|| piece.nth("vmovups ", 1))?;
        add(new, at + size - 4, 4, 64);
        Some(())
    }),
    wrong!("half of a vector register saved", Yields, |piece, new| {
        let insn = piece
            .inserted
            .iter()
            .find(|insn| insn.to_string().starts_with("vmovups [r") && insn.op1_register().is_zmm())?;
        let at = piece.place(insn);
        (new[at] == 0x62).then_some(())?;
        new[at + 3] = new[at + 3] & !0x60 | 0x20;
        Some(())
    }),
    wrong!("half of a vector register restored", Yields, |piece, new| {
        let insn = piece.inserted.iter().find(|insn| insn.to_string().starts_with("vmovups zmm"))?;
        let at = piece.place(insn);
        new[at + 3] = new[at + 3] & !0x60 | 0x20;
        Some(())
    }),
    wrong!("another mask register saved", Yields, |piece, new| {
        let (at, _) = piece.find("kmovq [")?;
        new[at + 4] ^= 0x08;
        Some(())
    }),
    wrong!("prefetches another address", Prefetches, |piece, new| {
        let insn = piece
            .inserted
            .iter()
            .find(|insn| insn.to_string().starts_with("prefetch") && insn.memory_displ_size() > 0)?;
        add(new, piece.place(insn) + insn.len() - insn.memory_displ_size().min(4) as usize, 1, 1);
        Some(())
    }),
    wrong!("prefetches by another register", Prefetches, |piece, new| {
        let insn = piece.inserted.iter().find(|insn| {
            insn.to_string().starts_with("prefetch")
                && insn.memory_base() == iced_x86::Register::RDI
                && insn.memory_index() == iced_x86::Register::None
                && insn.memory_displ_size() == 0
        })?;
        let at = piece.place(insn) + insn.len() - 1;
        new[at] = new[at] & !7 | 3;
        Some(())
    }),
    wrong!("prefetches in another way", Yields, |piece, new| {
        let insn = piece.inserted.iter().find(|insn| insn.to_string().starts_with("prefetcht0 [rdi]"))?;
        new[piece.place(insn) + 2] ^= 0x18;
        Some(())
    }),
    wrong!("in a primary: a yield without a prefetch", Prefetches, |piece, new| {
        let insn =
            piece.inserted.iter().find(|insn| insn.to_string().starts_with("prefetch") && insn.len() == 4)?;
        crate::pieces::fill(&mut new[piece.place(insn)..][..4]);
        Some(())
    }),
    wrong!("in a primary: a budget", Yields, |piece, new| {
        let charge = [0x65, 0x83, 0x2c, 0x25, 0x28, 0, 0, 0, 1];
        put(new, piece.find("mov gs:[10h],rax")?, &charge)
    }),
    wrong!("in a primary: looks whether it is aboard", Yields, |piece, new| {
        let test = [0x65, 0x80, 0x3c, 0x25, 0x2c, 0, 0, 0, 0];
        put(new, piece.find("mov gs:[10h],rax")?, &test)
    }),
    wrong!("in a primary: goes home", Yields, |piece, new| {
        let leave = [0x65, 0xff, 0x24, 0x25, 0x30, 0, 0, 0];
        put(new, piece.find("mov gs:[10h],rax")?, &leave)
    }),
    wrong!("in a primary: a switch that loads what lives", Yields, |piece, new| {
        let (switch, at) = switch(piece)?;
        // Whatever the instruction reads lives: but it must be a register that needs no other
        // prefix.
        let lives = piece.original.memory_base();
        let fits = lives.is_gpr64()
            && lives.number() < 8
            && switch.len() == 5
            && switch.code() == Code::Mov_r32_imm32;
        fits.then(|| new[at] = 0xb8 | lives.number() as u8)
    }),
    wrong!("in a primary: a switch that loads the stack pointer", Yields, |piece, new| {
        let (switch, at) = switch(piece)?;
        (switch.len() == 5).then(|| new[at] = 0xbc)
    }),
    wrong!("in a primary: a switch that leads elsewhere", Yields, |piece, new| {
        let (_, at) = switch(piece)?;
        add(new, at + 1, 4, 1);
        Some(())
    }),
    wrong!("in a primary: a switch that leads back", Yields, |piece, new| {
        let (_, at) = switch(piece)?;
        new[at + 1..at + 5].copy_from_slice(&(-20_i32).to_le_bytes());
        Some(())
    }),
    wrong!("in a primary: a switch that leads behind what asks", Yields, |piece, new| {
        short(piece)?;
        let (switch, at) = switch(piece)?;
        let count = piece.inserted.iter().find(|insn| insn.to_string().starts_with("dec qword"))?;
        let by = count.ip().wrapping_sub(switch.next_ip()) as u32;
        new[at + 1..at + 5].copy_from_slice(&by.to_le_bytes());
        Some(())
    }),
    wrong!("in a primary: a jump in place of a switch", Mapping, |piece, new| {
        let (_, at) = switch(piece)?;
        new[at] = 0xe9;
        Some(())
    }),
    wrong!("in a primary: counts in another word", Yields, |piece, new| {
        let (at, size) = piece.find("dec qword ptr gs:[40h]")?;
        new[at + size - 4] = 0x48;
        Some(())
    }),
    wrong!("in a primary: counts in half a word", Yields, |piece, new| {
        let (at, _) = piece.find("dec qword ptr gs:[40h]")?;
        new[at + 1] = 0x40;
        Some(())
    }),
    wrong!("in a primary: counts the other way", Yields, |piece, new| {
        let (at, _) = piece.find("dec qword ptr gs:[40h]")?;
        new[at + 3] &= !0x08;
        Some(())
    }),
    wrong!("in a primary: does not count what it passes by", Yields, |piece, new| {
        let (at, size) = piece.find("dec qword ptr gs:[40h]")?;
        fill(&mut new[at..at + size]);
        Some(())
    }),
    wrong!("in a primary: counts, and tests for other contexts", Yields, |piece, new| {
        let (at, size) = piece.find("jns")?;
        new[at + size - if size == 2 { 2 } else { 5 }] ^= 0x0d; // je
        Some(())
    }),
    wrong!("in a primary: counts, and never passes by", Yields, |piece, new| {
        let (at, size) = piece.find("jns")?;
        fill(&mut new[at..at + size]);
        Some(())
    }),
    wrong!("in a primary: passes by, and leaves flags as the count does", Yields, |piece, new| {
        let (at, size) = piece.find("jns")?;
        piece.find("lahf")?;
        // behind the restoring of flags, which is the last but one where rax is live
        let last = piece.inserted.last()?;
        let to = if last.to_string() == "mov rax,gs:[10h]" { last.ip() } else { last.next_ip() };
        let from = piece.inserted.iter().find(|insn| piece.place(insn) == at)?.next_ip();
        let by = i32::try_from(to.wrapping_sub(from) as i64).ok()?;
        if size == 2 {
            new[at + 1] = i8::try_from(by).ok()? as u8;
        } else {
            new[at + size - 4..at + size].copy_from_slice(&by.to_le_bytes());
        }
        Some(())
    }),
    wrong!("in a primary: counts before it tests for other contexts", Yields, |piece, new| {
        let count = [0x65, 0x48, 0xff, 0x0c, 0x25, 0x40, 0, 0, 0];
        put(new, piece.find("mov gs:[10h],rax")?, &count)
    }),
    wrong!("in a primary: counts twice", Yields, |piece, new| {
        short(piece)?;
        let (count, size) = piece.find("dec qword ptr gs:[40h]")?;
        let (jump, more) = piece.find("jns")?;
        let (fetch, rest) = piece.find("prefetch")?;
        // the other one in the place of what passes by, and of the prefetch
        let fits = jump == count + size && fetch == jump + more && more + rest == size;
        fits.then(|| new.copy_within(count..count + size, jump))
    }),
];
