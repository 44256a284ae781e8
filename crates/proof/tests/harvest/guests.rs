//! Wrong scavengers: guests that stay aboard where they must not, or for too long.

use crate::Wrong;
use crate::pieces::{LEAD, Piece, add, fill};
use gleaner_proof::Rule::{Aboard, Bounds, Calls, Copy, ThreadLocal, Yields};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, Register};

/// Takes away all that is inserted, but for what prefetches: those would be missed by another rule.
fn emptied(piece: &Piece, new: &mut [u8]) -> Option<()> {
    (piece.size > 0).then(|| fill(&mut new[piece.at..piece.at + piece.size]))
}
fn emptied_before(piece: &Piece, new: &mut [u8], wanted: bool) -> Option<()> {
    if wanted { emptied(piece, new) } else { None }
}
fn goes_home(piece: &Piece) -> Option<()> {
    let first = piece.inserted.first()?.to_string();
    (first == "cmp byte ptr gs:[2Ch],0").then_some(())
}
fn asm(piece: &Piece, mnemonic: Mnemonic) -> bool {
    piece.original.mnemonic() == mnemonic
}
fn checks_return(piece: &Piece) -> Option<()> {
    goes_home(piece)?;
    asm(piece, Mnemonic::Ret).then_some(())?;
    piece.find("sub r").map(|_| ())
}
fn local(piece: &Piece) -> Option<()> {
    let rewritten =
        piece.original.segment_prefix() == Register::FS && piece.copy.segment_prefix() == Register::None;
    rewritten.then_some(())
}
fn escape(piece: &Piece) -> Option<usize> {
    piece.escape.then(|| piece.copied() + piece.copy.len())
}

macro_rules! wrong {
    ($name:literal, $rule:ident, |$piece:ident, $new:ident| $body:expr) => {
        Wrong { name: $name, rule: $rule, make: |$piece: &Piece, $new: &mut [u8]| $body }
    };
}

pub(crate) const ALL: &[Wrong] = &[
    wrong!("no leave before an indirect call", Aboard, |piece, new| {
        emptied_before(piece, new, piece.original.flow_control() == FlowControl::IndirectCall)
    }),
    wrong!("no leave before a linkage stub", Aboard, |piece, new| {
        let plain = goes_home(piece).is_some();
        emptied_before(piece, new, plain && piece.original.is_call_near())
    }),
    wrong!("no leave before an indirect jump", Aboard, |piece, new| {
        let jump = piece.original.flow_control() == FlowControl::IndirectBranch;
        emptied_before(piece, new, jump && piece.find("cmp byte ptr gs:[2Ch],0").is_some())
    }),
    wrong!("no leave before a system call", Aboard, |piece, new| {
        emptied_before(piece, new, asm(piece, Mnemonic::Syscall))
    }),
    wrong!("no leave before ldmxcsr", Aboard, |piece, new| emptied_before(
        piece,
        new,
        asm(piece, Mnemonic::Ldmxcsr)
    )),
    wrong!("no leave before fldcw", Aboard, |piece, new| emptied_before(
        piece,
        new,
        asm(piece, Mnemonic::Fldcw)
    )),
    wrong!("no leave before rdpid", Aboard, |piece, new| emptied_before(
        piece,
        new,
        asm(piece, Mnemonic::Rdpid)
    )),
    wrong!("no leave before rdfsbase", Aboard, |piece, new| {
        emptied_before(piece, new, asm(piece, Mnemonic::Rdfsbase))
    }),
    wrong!("no leave before what is relative to GS", Aboard, |piece, new| {
        let gs = piece.original.segment_prefix() == Register::GS && !asm(piece, Mnemonic::Nop);
        emptied_before(piece, new, gs)
    }),
    wrong!("no leave before an escape", Aboard, |piece, new| {
        let at = escape(piece)?;
        fill(&mut new[at..at + LEAD]);
        Some(())
    }),
    wrong!("an escape's leave that loses the flags", Aboard, |piece, new| {
        let at = escape(piece)?;
        // lahf; seto al, before it asks
        new[at + 9..at + 13].copy_from_slice(&[0xeb, 0, 0xeb, 0]);
        Some(())
    }),
    wrong!("an escape's leave that goes on too far", Aboard, |piece, new| {
        let at = escape(piece)?;
        let lea = new[at..at + LEAD].windows(3).position(|bytes| bytes == [0x48, 0x8d, 0x05])?;
        add(new, at + lea + 3, 4, 5);
        Some(())
    }),
    wrong!("an escape to elsewhere", Calls, |piece, new| {
        let at = escape(piece)?;
        add(new, at + LEAD + 1, 4, 1);
        Some(())
    }),
    wrong!("a call of an original aboard", Aboard, |piece, new| {
        // The twin of another unit and itself are both right, but for guests.
        let call = piece.original.is_call_near() && piece.inserted.is_empty();
        let own = piece.original.near_branch64();
        call.then_some(())?;
        let to = piece.copy.near_branch64();
        (to != own).then(|| add(new, piece.copied() + 1, 4, own.wrapping_sub(to) as i64))
    }),
    wrong!("a leave that asks another byte", Yields, |piece, new| {
        goes_home(piece)?;
        new[piece.at + 4] = 0x2d;
        Some(())
    }),
    wrong!("a leave that asks for another number", Yields, |piece, new| {
        goes_home(piece)?;
        new[piece.at + 8] = 1;
        Some(())
    }),
    wrong!("a leave with its condition inverted", Yields, |piece, new| {
        goes_home(piece)?;
        new[piece.at + 9] ^= 1;
        Some(())
    }),
    wrong!("a leave that loses rax", Yields, |piece, new| {
        goes_home(piece)?;
        piece.original.is_call_near_indirect().then_some(())?;
        let (at, _) = piece.find("mov gs:[10h],rax")?;
        new[at + 5] = 0x20;
        Some(())
    }),
    wrong!("a leave that does not say where to go on", Yields, |piece, new| {
        let (at, _) = piece.find("mov gs:[18h],rax")?;
        new[at + 5] = 0x20;
        Some(())
    }),
    wrong!("a leave that goes on too far", Yields, |piece, new| {
        goes_home(piece)?;
        let (at, _) = piece.find("lea rax,[")?;
        add(new, at + 3, 4, 1);
        Some(())
    }),
    wrong!("a leave by another word", Yields, |piece, new| {
        let (at, size) = piece.find("jmp qword ptr gs:[30h]")?;
        new[at + size - 4] = 0x38;
        Some(())
    }),
    wrong!("a leave that nobody asked for", Yields, |piece, new| {
        goes_home(piece)?;
        fill(&mut new[piece.at..piece.at + 11]);
        Some(())
    }),
    wrong!("no return check", Aboard, |piece, new| {
        checks_return(piece)?;
        emptied(piece, new)
    }),
    wrong!("a return check of more than the twins", Yields, |piece, new| {
        checks_return(piece)?;
        let insn = piece.inserted.iter().find(|insn| insn.immediate_size() == 4)?;
        add(new, piece.place(insn) + insn.len() - 4, 4, 16);
        Some(())
    }),
    wrong!("a return check from elsewhere on", Yields, |piece, new| {
        checks_return(piece)?;
        let insn = piece.inserted.iter().find(|insn| insn.is_ip_rel_memory_operand())?;
        add(new, piece.place(insn) + 3, 4, -64);
        Some(())
    }),
    wrong!("a return check with its condition inverted", Yields, |piece, new| {
        checks_return(piece)?;
        let insn = piece.inserted.iter().find(|insn| insn.mnemonic() == Mnemonic::Jb)?;
        new[piece.place(insn)] ^= 1;
        Some(())
    }),
    wrong!("a return check of another word", Yields, |piece, new| {
        checks_return(piece)?;
        let insn = piece.inserted.iter().find(|insn| insn.memory_base() == Register::RSP)?;
        new[piece.place(insn) + insn.len() - 1] = 8;
        Some(())
    }),
    wrong!("another displacement from FS", ThreadLocal, |piece, new| {
        local(piece)?;
        (piece.copy.memory_displ_size() > 0).then_some(())?;
        let immediate = piece.copy.immediate_size_after();
        add(new, piece.copied() + piece.copy.len() - 1 - immediate, 1, 1);
        Some(())
    }),
    wrong!("another base than the address", ThreadLocal, |piece, new| {
        local(piece)?;
        let modrm = piece.copied() + 2;
        (new[piece.copied()] & 0xf0 == 0x40 && new[modrm] >> 6 == 2 && new[modrm] & 7 != 4).then_some(())?;
        new[modrm] ^= 1;
        Some(())
    }),
    wrong!("another word than FS", ThreadLocal, |piece, new| {
        local(piece)?;
        let insn = piece
            .inserted
            .iter()
            .rfind(|insn| insn.memory_displacement64() == 0x18 && insn.mnemonic() == Mnemonic::Mov)?;
        new[piece.place(insn) + insn.len() - 1] = 0;
        Some(())
    }),
    wrong!("no address of what is thread-local", ThreadLocal, |piece, new| {
        local(piece)?;
        emptied(piece, new)
    }),
    wrong!("an index scaled otherwise", ThreadLocal, |piece, new| {
        local(piece)?;
        let insn = piece
            .inserted
            .iter()
            .rfind(|insn| insn.mnemonic() == Mnemonic::Lea && insn.memory_index() != Register::None)?;
        new[piece.place(insn) + insn.len() - 2] ^= 0xc0;
        Some(())
    }),
    wrong!("FS left as it was", Copy, |piece, new| {
        // The prefix on something that is not relative to FS.
        let wanted = piece.original.len() == 4
            && piece.original.code().op_code().op_count() == 2
            && new[piece.copied()] == 0x48;
        wanted.then(|| new[piece.copied()] = 0x64)
    }),
    wrong!("a loop without a bound", Bounds, |piece, new| {
        let marked = asm(piece, Mnemonic::Imul) && piece.original.immediate32() == 0x0765_4321;
        emptied_before(piece, new, marked)
    }),
    wrong!("a recursion without a bound", Bounds, |piece, new| {
        let marked = asm(piece, Mnemonic::Cmp) && piece.original.immediate32() == 0x0246_8024;
        emptied_before(piece, new, marked)
    }),
    wrong!("a long way without a bound", Bounds, |piece, new| {
        let marked = asm(piece, Mnemonic::Mov) && piece.original.immediate32() == 0x0135_7913;
        marked.then_some(())?;
        // What it takes is less than an eighth of what follows.
        let (at, size) = piece.find("sub dword ptr gs:[28h]")?;
        (size == 12).then_some(())?;
        new[at + 8..at + 12].copy_from_slice(&[1, 0, 0, 0]);
        Some(())
    }),
    wrong!("a bound that takes nothing", Yields, |piece, new| {
        let (at, size) = piece.find("sub dword ptr gs:[28h]")?;
        new[at + 8..at + size].fill(0);
        Some(())
    }),
    wrong!("a bound that gives", Yields, |piece, new| {
        let (at, size) = piece.find("sub dword ptr gs:[28h]")?;
        new[at + 8..at + size].fill(0xff);
        Some(())
    }),
    wrong!("a bound with its condition inverted", Yields, |piece, new| {
        let insn = piece.inserted.iter().find(|insn| insn.mnemonic() == Mnemonic::Js)?;
        new[piece.place(insn) + insn.len() - if insn.len() == 2 { 2 } else { 5 }] ^= 1;
        Some(())
    }),
    wrong!("a budget never set again", Yields, |piece, new| {
        let (at, size) = piece.find("mov dword ptr gs:[28h]")?;
        fill(&mut new[at..at + size]);
        Some(())
    }),
    wrong!("a budget never set again where nobody else is", Yields, |piece, new| {
        let (at, size) = piece.nth("mov dword ptr gs:[28h]", 1)?;
        fill(&mut new[at..at + size]);
        Some(())
    }),
    wrong!("what is for a context alone, behind a switch", Yields, |piece, new| {
        let ((at, size), (alone, _)) =
            (piece.find("mov dword ptr gs:[28h]")?, piece.nth("mov dword ptr gs:[28h]", 1)?);
        new.copy_within(alone..alone + size, at);
        Some(())
    }),
    wrong!("a quantum where nobody else is", Yields, |piece, new| {
        let ((at, size), (alone, _)) =
            (piece.find("mov dword ptr gs:[28h]")?, piece.nth("mov dword ptr gs:[28h]", 1)?);
        new.copy_within(at..at + size, alone);
        Some(())
    }),
    wrong!("a budget set too high where nobody else is", Yields, |piece, new| {
        let (at, size) = piece.nth("mov dword ptr gs:[28h]", 1)?;
        add(new, at + size - 4, 4, 1);
        Some(())
    }),
    wrong!("a budget set by a register", Yields, |piece, new| {
        let (at, size) = piece.find("mov dword ptr gs:[28h]")?;
        fill(&mut new[at..at + size]);
        new[at..at + 8].copy_from_slice(&[0x65, 0x89, 0x0c, 0x25, 0x28, 0, 0, 0]);
        Some(())
    }),
    wrong!("gives way to what a free word of the context names", Yields, |piece, new| {
        let is_it = |insn: &Instruction| insn.code() == Code::Cmp_rm64_r64;
        let load = piece.inserted.windows(2).find(|two| is_it(&two[1])).map(|two| two[0])?;
        new[piece.place(&load) + load.len() - 1] = 0x28;
        Some(())
    }),
    wrong!("asks for what a free word of the context names", Yields, |piece, new| {
        let insn = piece.inserted.iter().find(|insn| insn.code() == Code::Cmp_r64_rm64)?;
        new[piece.place(insn) + insn.len() - 1] = 0x28;
        Some(())
    }),
    wrong!("gives way although nobody else is there", Yields, |piece, new| {
        piece.find("prefetch")?;
        let (at, size) = piece.find("je")?;
        fill(&mut new[at..at + size]);
        Some(())
    }),
    wrong!("a budget set too high", Yields, |piece, new| {
        let (at, size) = piece.find("mov dword ptr gs:[28h]")?;
        add(new, at + size - 4, 4, 1);
        Some(())
    }),
    wrong!("a budget set without a yield", Yields, |piece, new| {
        let (at, size) = piece.find("sub dword ptr gs:[28h]")?;
        (size == 12).then_some(())?;
        new[at..at + 8].copy_from_slice(&[0x65, 0xc7, 0x04, 0x25, 0x28, 0, 0, 0]);
        new[at + 8..at + 12].copy_from_slice(&200u32.to_le_bytes());
        Some(())
    }),
    wrong!("counts what it passes by", Yields, |piece, new| {
        let (at, size) = piece.find("mov gs:[10h],rax")?;
        new[at..at + size].copy_from_slice(&[0x65, 0x48, 0xff, 0x0c, 0x25, 0x40, 0, 0, 0]);
        Some(())
    }),
];

trait Immediates {
    fn immediate_size(&self) -> usize;
    fn immediate_size_after(&self) -> usize;
}

impl Immediates for iced_x86::Instruction {
    fn immediate_size(&self) -> usize {
        let has = (0..self.op_count()).any(|op| self.op_kind(op) == iced_x86::OpKind::Immediate32to64);
        if has { 4 } else { 0 }
    }
    /// How many bytes of constants stand behind the displacement, as far as this program has any.
    fn immediate_size_after(&self) -> usize {
        use iced_x86::OpKind::{Immediate8, Immediate8to32, Immediate8to64, Immediate32, Immediate32to64};
        let size = |op| match self.op_kind(op) {
            Immediate8 | Immediate8to32 | Immediate8to64 => 1,
            Immediate32 | Immediate32to64 => 4,
            _ => 0,
        };
        (0..self.op_count()).map(size).sum()
    }
}
