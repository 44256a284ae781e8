//! Jump tables in code written for the purpose: shapes that compilers make seldom.

use gleaner_image::Image;
use gleaner_image::code::descend::{Decoded, Scratch, decode};
use gleaner_image::code::surroundings::Surroundings;
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, byte_ptr, dword_ptr, eax, esi, ptr, qword_ptr, rax, rdi, rdx, rsi,
};
use units::Svma;

const BASE: u64 = 0x1000;

/// A file of one executable segment, which holds `code` and nothing else.
fn module(code: &[u8]) -> Vec<u8> {
    let mut file = vec![0u8; 64 + 56];
    file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    let mut put = |at: usize, size: usize, value: u64| {
        file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    };
    for (at, size, value) in [(16, 2, 3), (18, 2, 62), (32, 8, 64), (52, 2, 64), (54, 2, 56), (56, 2, 1)] {
        put(at, size, value);
    }
    let size = code.len() as u64;
    for (at, field, value) in [(0, 4, 1), (4, 4, 5), (8, 8, 120), (16, 8, BASE), (32, 8, size), (40, 8, size)]
    {
        put(64 + at, field, value);
    }
    file.extend(code);
    file
}

fn decoded(code: &[u8], unit: usize) -> Decoded {
    let file = module(code);
    let image = Image::parse(&file).expect("a sound file");
    let returns = |_: Svma| false;
    let around = Surroundings {
        image: &image,
        code: (BASE, BASE + code.len() as u64),
        data: &[],
        never_returns: &returns,
        slot_never_returns: &returns,
        most_entries: 1 << 17,
    };
    decode(Svma(BASE), &code[..unit], &[], &around, &mut Scratch::default())
}

/// `switch` over 0x100..=0x122, compiled as gcc does when it knows that the value is at most 0x122
/// already.
#[test]
fn the_closest_comparison_says_how_long_a_table_is() {
    let assemble = || -> Result<(Vec<u8>, usize), iced_x86::IcedError> {
        let mut a = CodeAssembler::new(64)?;
        let (mut out, mut table, mut case) = (a.create_label(), a.create_label(), a.create_label());
        a.cmp(rsi, 0x122)?;
        a.ja(out)?;
        a.cmp(rsi, 0xff)?;
        a.jbe(out)?;
        a.sub(rsi, 0x100)?;
        a.cmp(rsi, 0x22)?;
        a.ja(out)?;
        a.lea(rdx, ptr(table))?;
        a.movsxd(rax, dword_ptr(rdx + rsi * 4))?;
        a.add(rax, rdx)?;
        a.jmp(rax)?;
        a.set_label(&mut case)?;
        a.xor(eax, eax)?;
        a.set_label(&mut out)?;
        a.ret()?;
        a.set_label(&mut table)?;
        a.nop()?;
        let result =
            a.assemble_options(BASE, iced_x86::BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
        let at = |label: &iced_x86::code_asm::CodeLabel| result.label_ip(label);
        let (table, case) = (at(&table)?, at(&case)?);
        let mut code = result.inner.code_buffer;
        code.pop();
        let unit = code.len();
        for _ in 0..=0x22 {
            code.extend((case as i32 - table as i32).to_le_bytes());
        }
        Ok((code, unit))
    };
    let (code, unit) = assemble().expect("it can be assembled");
    let decoded = decoded(&code, unit);
    let [table] = &decoded.tables[..] else { panic!("{decoded:?}") };
    assert_eq!(table.table, Svma(BASE + unit as u64));
    assert_eq!(table.targets.len(), 0x23);
    assert!(table.is_guarded && decoded.open_jumps.is_empty() && !decoded.overlaps);
}

/// The end of a function: a jump by the table behind it, each of whose entries leads so far astray
/// from the only case. All of it, with where the table begins.
fn jump_by_table(
    mut a: CodeAssembler,
    index: AsmRegister64,
    astray: impl Iterator<Item = i32>,
) -> Result<(Vec<u8>, usize), iced_x86::IcedError> {
    let (mut table, mut case) = (a.create_label(), a.create_label());
    a.lea(rdx, ptr(table))?;
    a.movsxd(rax, dword_ptr(rdx + index * 4))?;
    a.add(rax, rdx)?;
    a.jmp(rax)?;
    a.set_label(&mut case)?;
    a.xor(eax, eax)?;
    a.ret()?;
    a.set_label(&mut table)?;
    a.nop()?;
    let result = a.assemble_options(BASE, iced_x86::BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
    let (table, case) = (result.label_ip(&table)?, result.label_ip(&case)?);
    let mut code = result.inner.code_buffer;
    code.pop();
    let unit = code.len();
    code.extend(astray.flat_map(|astray| (case as i32 - table as i32 + astray).to_le_bytes()));
    Ok((code, unit))
}

/// A `match` over a byte that is read on two ways, with fewer variants than a byte has values: what
/// stands behind the table is none of it, though no comparison says so.
#[test]
fn what_a_byte_holds_says_nothing_of_where_a_table_ends() {
    const VARIANTS: i32 = 6;
    let assemble = || -> Result<(Vec<u8>, usize), iced_x86::IcedError> {
        let mut a = CodeAssembler::new(64)?;
        let (mut other, mut both) = (a.create_label(), a.create_label());
        a.test(esi, esi)?;
        a.je(other)?;
        a.movzx(eax, byte_ptr(rdi))?;
        a.jmp(both)?;
        a.set_label(&mut other)?;
        a.movzx(eax, byte_ptr(rdi + 1))?;
        a.set_label(&mut both)?;
        // Behind the table lies another one, of offsets that lead elsewhere from here.
        jump_by_table(a, rax, (0..256).map(|entry| if entry < VARIANTS { 0 } else { 40 + entry }))
    };
    let (code, unit) = assemble().expect("it can be assembled");
    let found = decoded(&code, unit);
    assert!(found.tables.is_empty() && found.jumps_out.is_empty(), "{found:?}");
    assert_eq!(found.open_jumps.len(), 1);
}

/// `match` over a variant whose number is kept in a field of another variant, as rustc compiles it:
/// whatever is out of range stands for that other one.
#[test]
fn a_number_that_is_chosen_is_bounded_by_both_choices() {
    let assemble = |bounded: bool| -> Result<(Vec<u8>, usize), iced_x86::IcedError> {
        let mut a = CodeAssembler::new(64)?;
        a.mov(rdx, qword_ptr(rdi))?;
        a.add(rdx, -12)?;
        a.cmp(rdx, 0x18)?;
        if bounded {
            a.mov(esi, 1)?;
        }
        a.cmovb(rsi, rdx)?;
        jump_by_table(a, rsi, std::iter::repeat_n(0, 0x18))
    };
    let (code, unit) = assemble(true).expect("it can be assembled");
    let found = decoded(&code, unit);
    let [table] = &found.tables[..] else { panic!("{found:?}") };
    assert_eq!((table.table, table.targets.len()), (Svma(BASE + unit as u64), 0x18));
    assert!(table.is_guarded && found.open_jumps.is_empty());
    let (code, unit) = assemble(false).expect("it can be assembled");
    let found = decoded(&code, unit);
    assert!(found.tables.is_empty() && found.open_jumps.len() == 1, "one choice may be anything: {found:?}");
}

#[test]
fn bytes_that_are_no_instruction_end_what_is_known() {
    // test eax, eax; je +2; and then what no processor takes; je leads to a return
    let decoded = decoded(&[0x85, 0xc0, 0x74, 0x02, 0xff, 0xff, 0xc3], 7);
    assert_eq!(decoded.undecoded, [4]);
    assert_eq!(decoded.insns.iter().map(|insn| insn.at).collect::<Vec<_>>(), [0, 2, 6]);
}
