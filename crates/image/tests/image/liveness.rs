//! What hand-written code may do with registers, and compilers never would: nothing of it may be
//! taken for dead.

use crate::built::assembled;
use gleaner_image::Module;
use gleaner_image::code::groups::RelyOn;
use gleaner_image::code::insn::Flow;
use gleaner_image::code::regs::{R11, RDI, RDX, RSI, RegSet};
use gleaner_image::liveness::{Knowledge, Liveness};

const SOURCE: &str = r"
    .text
    .macro function name
    .globl \name
    .type \name, @function
    \name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm

    # gives rdi back as it was
    function keeps
    push %rdi
    .cfi_adjust_cfa_offset 8
    xor %edi, %edi
    pop %rdi
    .cfi_adjust_cfa_offset -8
    ret
    end keeps

    function relies
    mov $5, %edi
    call keeps
    mov %edi, %eax
    ret
    end relies

    # returns to elsewhere, as setcontext does
    function hands_over
    mov $7, %esi
    pop %rdx
    .cfi_adjust_cfa_offset -8
    push (%rdi)
    ret
    end hands_over

    # goes on in another function, whose return is none to the caller
    function falls
    mov $7, %esi
    nop
    end falls
    function behind
    xor %eax, %eax
    ret
    end behind

    # the kernel leaves r9 alone, and so does this
    function asks
    mov $39, %eax
    syscall
    ret
    end asks

    # ends with a call that comes back, into what lies behind
    function leads
    push %rbx
    .cfi_adjust_cfa_offset 8
    call asks
    end leads
    function runs_on
    .cfi_adjust_cfa_offset 8
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    end runs_on
    function follows
    mov $5, %esi
    call leads
    mov %esi, %eax
    ret
    end follows

    # ends with a call that does not come back, as nothing of its frame lies behind
    function gives_up
    push %rbx
    .cfi_adjust_cfa_offset 8
    call other@PLT
    end gives_up
    .hidden gives_up
    function despairs
    movd %edi, %xmm9
    call gives_up
    movd %xmm9, %eax
    ret
    end despairs

    # by another convention, a call by a pointer keeps registers
    function goes_by_another
    push %rbx
    .cfi_adjust_cfa_offset 8
    movd %esi, %xmm9
    mov %esi, %r10d
    call *(%rdi)
    movd %xmm9, %eax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    end goes_by_another

    # a name that programs may use as they like
    function err
    lea 1(%rdi), %eax
    ret
    end err
    function blames
    mov $5, %esi
    call err
    mov %esi, %eax
    ret
    end blames

    # goes on in the middle of another function, which never writes r10; that one's callers know
    function enters
    xor %r10d, %r10d
    test %r10d, %r10d
    test %edi, %edi
    jne middle
    xor %esi, %esi
    ret
    end enters
    function entered
    lea 1(%rdi), %eax
    middle:
    mov %edx, %r11d
    test %r11d, %r11d
    ret
    end entered

    # nobody writes what nobody reads: some convention returns it
    function gives_more
    mov %edx, %r11d
    xor %eax, %eax
    ret
    end gives_more

    # goes on in code without unwind entry, behind some function that has none either
    function departs
    mov $5, %esi
    jmp unlisted
    end departs
    .type bare, @function
    bare:
    ret
    unlisted:
    xor %esi, %esi
    ret

    # puts back vector registers, and no others
    function restores
    fxrstor64 (%rdi)
    ret
    end restores

    # a trap changes nothing
    function traps
    test %edi, %edi
    je 1f
    ud2
1:  ret
    end traps
";

fn at(module: &Module<'_>, live: &Liveness, name: &str, wanted: impl Fn(Flow) -> bool) -> RegSet {
    let symbol = module.symbols.all().iter().find(|symbol| symbol.name == name.as_bytes()).expect("a symbol");
    let unit = module.unit_at(symbol.address).expect("a unit");
    let index =
        module.decoded[unit].insns.iter().rposition(|insn| wanted(insn.flow)).expect("an instruction");
    live.before[unit][index]
}

#[test]
fn registers_of_hand_written_code_stay_alive() {
    let data = assembled(SOURCE);
    let module = Module::analyse(&data, None).expect("a sound file");
    let live = Liveness::of(&module, &RelyOn::EVERYTHING);
    let general = RegSet::general;
    let returns = |flow| flow == Flow::Return;
    assert!(at(&module, &live, "keeps", returns).contains(general(RDI)), "it may be kept on purpose");
    assert!(at(&module, &live, "relies", |flow| flow == Flow::Call32).contains(general(RDI)), "it is kept");
    assert!(at(&module, &live, "hands_over", returns).contains(general(RSI) | general(RDX)), "handed over");
    assert!(at(&module, &live, "falls", |flow| flow == Flow::Next).contains(general(RSI)), "handed over");
    assert!(at(&module, &live, "asks", returns).contains(general(9)), "nobody wrote it");
    let calls = |flow| flow == Flow::Call32;
    assert!(at(&module, &live, "follows", calls).contains(general(RSI)), "what is called runs on");
    assert!(!at(&module, &live, "despairs", calls).contains(RegSet::xmm(9)), "what is called does not");
    let by_pointer = |flow| flow == Flow::CallIndirect;
    let kept = at(&module, &live, "goes_by_another", by_pointer);
    assert!(kept.contains(!RegSet::ARITHMETIC_FLAGS), "it may be of any convention");
    assert!(!kept.meets(RegSet::ARITHMETIC_FLAGS), "nobody passes anything in flags");
    let live_for_callers = Liveness::with(&module, Knowledge::OfCallers, &RelyOn::EVERYTHING);
    let kept = at(&module, &live_for_callers, "goes_by_another", by_pointer);
    assert!(kept.contains(RegSet::GENERAL | RegSet::xmm(9)), "in any general register");
    assert!(!kept.contains(RegSet::xmm(10)), "nobody wrote it");
    assert!(at(&module, &live, "blames", calls).contains(general(RSI)), "it is another err");
    assert!(at(&module, &live, "entered", returns).contains(general(10)), "only others write it");
    assert!(!at(&module, &live, "entered", returns).contains(general(R11)), "it writes that itself");
    assert!(at(&module, &live, "enters", returns).contains(general(R11)), "only the other writes it");
    assert!(at(&module, &live, "gives_more", returns).contains(general(R11)), "it is a result");
    let jumps = |flow| matches!(flow, Flow::Jump8 | Flow::Jump32);
    assert!(at(&module, &live, "departs", jumps).contains(general(RSI)), "nobody can check what that does");
    assert!(at(&module, &live, "restores", returns).contains(general(RSI)), "nobody wrote it");
    assert!(at(&module, &live, "traps", returns).contains(general(R11)), "nobody wrote it");
    assert!(!at(&module, &live, "relies", returns).contains(general(RDI)), "all that it was for is done");
}
