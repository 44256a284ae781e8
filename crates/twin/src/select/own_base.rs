//! Programs that set the GS base by an instruction: no yield would find its area behind that. (By a
//! system call they do so through libc, which the runtime sees.)

use image::Module;

/// Whether any instruction of the module does.
pub(crate) fn sets_gs(module: &Module<'_>) -> bool {
    (0..module.units.len()).any(|unit| {
        let code = module.code(unit);
        module.decoded[unit].insns.iter().any(|insn| writes_gs(insn.bytes(code)))
    })
}

/// `wrgsbase`, and what loads the segment register; looked at byte by byte, since this is asked of
/// every instruction.
fn writes_gs(bytes: &[u8]) -> bool {
    const GS: u8 = 5;
    let prefixes = bytes.iter().take_while(|byte| matches!(byte, 0x40..=0x4f | 0x66 | 0xf2 | 0xf3)).count();
    let repeats = bytes[..prefixes].contains(&0xf3);
    match bytes[prefixes..] {
        [0x0f, 0xae, 0xd8..=0xdf] => repeats,
        [0x0f, 0xa9] | [0x0f, 0xb5, ..] => true,
        [0x8e, modrm, ..] => modrm >> 3 & 7 == GS,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::writes_gs;

    #[test]
    fn one_of_each() {
        for (bytes, name) in [
            (&[0xf3, 0x48, 0x0f, 0xae, 0xdf][..], "wrgsbase rdi"),
            (&[0xf3, 0x41, 0x0f, 0xae, 0xd8], "wrgsbase r8d"),
            (&[0x0f, 0xa9], "pop gs"),
            (&[0x48, 0x0f, 0xb5, 0x07], "lgs rax, [rdi]"),
            (&[0x8e, 0xe8], "mov gs, eax"),
            (&[0x8e, 0x6c, 0x24, 8], "mov gs, [rsp + 8]"),
        ] {
            assert!(writes_gs(bytes), "{name}");
        }
        for (bytes, name) in [
            (&[0xf3, 0x48, 0x0f, 0xae, 0xd7][..], "wrfsbase rdi"),
            (&[0xf3, 0x48, 0x0f, 0xae, 0xcf], "rdgsbase rdi"),
            (&[0x0f, 0xae, 0x1c, 0x24], "stmxcsr [rsp]"),
            (&[0x8e, 0xe0], "mov fs, eax"),
            (&[0x8c, 0xe8], "mov eax, gs"),
            (&[0x0f, 0xa8], "push gs"),
            (&[0x65, 0x8b, 0x04, 0x25, 0, 0, 0, 0], "mov eax, gs:[0]"),
        ] {
            assert!(!writes_gs(bytes), "{name}");
        }
    }
}
