//! Where functions of a Go program are, though it has neither symbols nor unwind table.

use gleaner_image::Module;
use std::process::Command;
use units::Svma;

/// As Go's linker leaves it (of version 1.26), as far as is looked at.
const SOURCE: &str = r#"
        .text
        .p2align 6
text:
main:   call leaf
        ret
        .p2align 5, 0xcc
leaf:   lea 1(%rax), %rax
        ret
mark:
        .globl _start
_start: jmp main
end:
        .section .gopclntab, "a"
        .p2align 5
header: .long 0xfffffff1
        .byte 0, 0, 1, 8
        .quad 4, 1, 0, names - header
names:  .asciz "main.main"
        .p2align 3
index:  .long main - text, 0, leaf - text, 0, mark - text, 0, mark - text, 0, end - text
end_index:
        .section .go.module, "aw"
        .p2align 5
module: .quad header, names
        .zero 112
        .quad index, 5, 5
        .zero 8
        .quad main, END, text
        .zero 64
"#;

fn units(source: &str, linked: &str) -> Vec<(u64, u32)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("go.s"), folder.path().join("go"));
    std::fs::write(&from, source).expect("a source");
    let done = Command::new("gcc").args(["-nostdlib", "-s", linked]).arg(&from).arg("-o").arg(&to).status();
    assert!(done.is_ok_and(|status| status.success()), "an assembler");
    let data = std::fs::read(to).expect("what was assembled");
    let module = Module::analyse(&data, None).expect("a sound file");
    let text = module.image.section(".text").expect("code").address;
    let known = |unit: &gleaner_image::code::code_units::Unit| (unit.start.0 - text, unit.size);
    assert!(module.unit_at(Svma(text)).is_none_or(|unit| !module.decoded[unit].insns.is_empty()));
    module.units.iter().map(known).collect()
}

#[test]
fn its_tables_say() {
    let sound = SOURCE.replace("END", "end");
    assert_eq!(units(&sound, "-no-pie"), [(0, 32), (32, 5), (37, 2)]);
    // Where they contradict each other, or are relocated, they are not believed.
    assert_eq!(units(&SOURCE.replace("END", "mark"), "-no-pie"), [(37, 2)]);
    assert!(!units(&sound, "-pie").contains(&(32, 5)));
}
