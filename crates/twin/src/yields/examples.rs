//! The examples of `docs/harvest-abi.md`, assembled.

use super::*;
use crate::layout::insertions::Spot;
use crate::yields::sunk_restores::{SunkLoop, sunk_restore};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

const RBX: RegSet = RegSet::general(3);
const RCX: RegSet = RegSet::general(1);
const RDX: RegSet = RegSet::general(2);
const RSI: RegSet = RegSet::general(6);
const RDI: RegSet = RegSet::general(7);
const STACK: RegSet = RegSet::general(RSP);

fn text(part: &Part) -> Vec<String> {
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    let decoder = Decoder::with_ip(64, &part.bytes, 0, DecoderOptions::NONE);
    let told = decoder.into_iter().map(|insn| {
        let mut text = String::new();
        formatter.format(&insn, &mut text);
        // What leads elsewhere is filled in later.
        if insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near() || text.starts_with("lea") {
            text.truncate(text.find([' ', ',']).unwrap_or(text.len()));
        }
        text
    });
    told.collect()
}

/// A fetch for the load at 0x1000 with this prefetch.
fn fetch(prefetch: &[u8]) -> Fetch {
    let prefetches = Part { bytes: prefetch.to_vec(), references: Vec::new() };
    Fetch { prefetches, origins: vec![0x1000] }
}

fn request(fetch: &Fetch) -> YieldRequest<'_> {
    YieldRequest {
        purpose: Purpose::Site,
        live: RegSet::EMPTY,
        held: RegSet::EMPTY,
        base: None,
        sunk: None,
        balances: false,
        fetch,
        width: VectorWidth::Sse,
        thrown: ThrownTo::Caller,
        quantum: None,
        hosts: true,
    }
}

#[test]
fn a_site_yield_of_a_primary() {
    let fetch = fetch(&[0x0f, 0x18, 0x0f]); // prefetcht0 [rdi]
    let piece = assemble_yield(&YieldRequest { live: RSI | RDI, ..request(&fetch) });
    assert_eq!(text(&piece.hot), ["nop [rax+rax]"]);
    assert_eq!(piece.hot.bytes, [0x0f, 0x1f, 0x44, 0, 0]);
    let expected = [
        "mov rax, gs:[8]",
        "cmp rax, [rax]",
        "je",
        "dec qword ptr gs:[40h]",
        "jns",
        "prefetcht0 [rdi]",
        "mov [rax-50h], rsi",
        "mov [rax-48h], rdi",
        "mov [rax+10h], rsp",
        "lea",
        "mov [rax+8], rcx",
        "mov rax, [rax]",
        "mov gs:[8], rax",
        "jmp",
        "mov rsp, [rax+10h]",
        "mov rsi, [rax-50h]",
        "mov rdi, [rax-48h]",
        "jmp",
    ];
    let cold = text(&piece.cold);
    let cold: Vec<&str> =
        cold.iter().map(|told| if told.starts_with("jmp qword") { "jmp" } else { told }).collect();
    assert_eq!(cold, expected);
    let [listed] = &piece.yields[..] else { panic!("{:?}", piece.yields) };
    let after_jump = Spot { at: listed.jump.at + 3, ..listed.jump };
    assert_eq!((listed.resume, listed.jump.cold), (after_jump, true), "ff 60 08");
    assert_eq!((listed.switch.map(|switch| switch.at), &*listed.origins), (Some(0), &[0x1000][..]));
}

#[test]
fn a_site_yield_in_a_scavengers_loop() {
    let fetch = fetch(&[0x0f, 0x18, 0x08]); // prefetcht0 [rax]
    let looped = SunkLoop { first: 3, behind: 6, registers: RBX, base: 6 };
    let live = RegSet::general(RAX) | RDX | RBX;
    let piece = assemble_yield(&YieldRequest {
        live,
        held: RBX | STACK,
        base: Some(6),
        sunk: Some(looped),
        quantum: Some(1000),
        hosts: false,
        ..request(&fetch)
    });
    let before = hoisted_save(6, false, RBX | STACK);
    assert_eq!(text(&before.hot), ["mov rsi, gs:[8]", "mov [rsi-68h], rbx", "mov [rsi+10h], rsp"]);
    let expected = [
        "mov rcx, [rsi]",
        "cmp rcx, rsi",
        "je",
        "prefetcht0 [rax]",
        "mov [rsi-80h], rax",
        "mov [rsi-70h], rdx",
        "lea",
        "mov [rsi+8], rax",
        "mov rax, rcx",
        "mov gs:[8], rax",
        "jmp qword ptr [rax+8]",
        "test eax, 8",
        "lea",
        "lea",
        "mov rsi, rax",
        "mov rsp, [rax+10h]",
        "mov rdx, [rax-70h]",
        "mov rax, [rax-80h]",
    ];
    assert_eq!(text(&piece.hot), expected);
    assert!(piece.cold.bytes.is_empty() && !live.meets(RCX));
    let behind = sunk_restore(&looped);
    assert_eq!(text(&behind.hot), ["mov rbx, [rsi-68h]"]);
    let [listed] = &piece.yields[..] else { panic!("{:?}", piece.yields) };
    assert_eq!((listed.switch, listed.jump.cold), (None, false));
}

/// Without a register that holds the next context, that is loaded again when all is saved.
#[test]
fn a_site_yield_of_a_scavenger_without_a_dead_register() {
    let fetch = fetch(&[0x0f, 0x18, 0x08]); // prefetcht0 [rax]
    let all = (0..16)
        .filter(|&register| register != RSP)
        .fold(RegSet::EMPTY, |all, register| all | RegSet::general(register));
    let request = YieldRequest { live: all, quantum: Some(1000), hosts: false, ..request(&fetch) };
    let piece = assemble_yield(&request);
    let code = text(&piece.hot);
    let at =
        |what: &str| code.iter().position(|told| told == what).unwrap_or_else(|| panic!("{what}: {code:?}"));
    let asks = at("cmp rax, [rax]");
    assert_eq!((code[asks - 1].as_str(), code[asks + 1].as_str()), ("mov rax, gs:[8]", "je"));
    let switch = at("mov rax, [rax]");
    assert_eq!(
        code[switch - 1..switch + 3],
        ["mov [rax+8], rcx", "mov rax, [rax]", "mov gs:[8], rax", "jmp qword ptr [rax+8]"]
    );
    assert!(at("mov [rax-78h], rcx") < switch, "{code:?}");
    assert!(piece.cold.bytes.is_empty(), "its switch is in line");
}

/// The budget is a quantum where another context ran, and more where there is none.
#[test]
fn a_bound_yield() {
    let fetch = Fetch::default();
    let piece = assemble_yield(&YieldRequest {
        purpose: Purpose::Bound(7),
        live: RSI | RDI,
        quantum: Some(1000),
        hosts: false,
        ..request(&fetch)
    });
    assert_eq!(text(&piece.hot), ["sub dword ptr gs:[28h], 7", "js"]);
    let expected = [
        "mov rax, gs:[8]",
        "cmp rax, [rax]",
        "je",
        "mov [rax-50h], rsi",
        "mov [rax-48h], rdi",
        "mov [rax+10h], rsp",
        "lea",
        "mov [rax+8], rcx",
        "mov rax, [rax]",
        "mov gs:[8], rax",
        "jmp qword ptr [rax+8]",
        "mov dword ptr gs:[28h], 3E8h",
        "mov rsp, [rax+10h]",
        "mov rsi, [rax-50h]",
        "mov rdi, [rax-48h]",
        "jmp",
        "mov dword ptr gs:[28h], 0FA00h",
        "jmp",
    ];
    assert_eq!(text(&piece.cold), expected);
    assert!(piece.yields.is_empty(), "the mapping does not list it");
}
