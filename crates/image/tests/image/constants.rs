//! Constants in the segment of the code, as some linkers place them: relocations point to them, and
//! that makes none of them a function.

use crate::built::built;
use gleaner_image::Module;

const SOURCE: &str = r#"
    const char *const names[] = { "\303", "\220\303", "one", "another", "a third" };
    static int twice(int x) { return 2 * x; }
    int (*const pointers[])(int) = { twice };
"#;

/// As clang compiles a `switch` some of whose cases cannot be: their offset is zero, so they lead
/// to the table itself.
const SWITCH: &str = r"
        .globl chosen
        .type chosen, @function
    chosen:
        .cfi_startproc
        cmpl $3, %edi
        ja .Lnone
        movl %edi, %edi
        leaq .Ltable(%rip), %rdx
        movslq (%rdx,%rdi,4), %rax
        addq %rdx, %rax
        jmp *%rax
    .Lnone:
        xorl %eax, %eax
        ret
    .Lone:
        movl $1, %eax
        ret
        .cfi_endproc
        .size chosen, . - chosen
        .section .rodata
        .p2align 2
    .Ltable:
        .long .Lone - .Ltable, .Lnone - .Ltable, CASE, .Lone - .Ltable
        .section .note.GNU-stack
";

/// An address as a constant, in an instruction that names another one, too.
const STORED: &str = r"
        .globl _start
    _start:
        .cfi_startproc
        movq $taken, slot(%rip)
        call called
        jmp *slot(%rip)
        .cfi_endproc
    taken:
        .cfi_startproc
        ret
        .cfi_endproc
    called:
        .cfi_startproc
        ret
        .cfi_endproc
        .bss
    slot:
        .quad 0
        .section .note.GNU-stack
";

const SHARED: [&str; 3] = ["-shared", "-fPIC", "-Wl,-z,noseparate-code"];

#[test]
fn a_table_that_leads_to_data_is_none() {
    for (case, tables) in [(".Lnone - .Ltable", 1), ("0", 0)] {
        let data = built(&SWITCH.replace("CASE", case), "p.s", &[&SHARED[..], &["-nostdlib"]].concat());
        let module = Module::analyse(&data, None).expect("a sound file");
        let table = module.image.data_among_code();
        assert!(!table.is_empty(), "constants in an executable segment");
        let found: usize = module.decoded.iter().map(|decoded| decoded.tables.len()).sum();
        let open: usize = module.decoded.iter().map(|decoded| decoded.open_jumps.len()).sum();
        assert_eq!((found, open), (tables, 1 - tables), "{case}");
    }
}

#[test]
fn what_relocations_point_to_is_code_only_where_sections_hold_code() {
    let data =
        built(SOURCE, "p.c", &[&SHARED[..], &["-O1", "-fno-asynchronous-unwind-tables", "-s"]].concat());
    let module = Module::analyse(&data, None).expect("a sound file");
    let constants = module.image.data_among_code();
    let among = |address: u64| constants.iter().any(|&(start, end)| start <= address && address < end);
    let pointed: Vec<u64> = module.relocations.iter().map(|relocation| relocation.addend).collect();
    assert!(pointed.iter().filter(|&&to| among(to)).count() >= 5, "constants in an executable segment");
    assert!(module.units.iter().all(|unit| !among(unit.start.0)), "a constant was taken for a function");
    let code = |to: &&u64| **to != 0 && !among(**to) && module.image.is_code(units::Svma(**to));
    let functions: Vec<&u64> = pointed.iter().filter(code).collect();
    assert!(!functions.is_empty(), "a pointer to a function");
    for function in functions {
        assert!(module.units.iter().any(|unit| unit.start.0 == *function), "{function:#x} is a function");
    }
}

#[test]
fn an_address_that_is_stored_may_be_called_by_anybody() {
    let data = built(STORED, "p.s", &["-nostdlib", "-static", "-no-pie"]);
    let module = Module::analyse(&data, None).expect("a sound file");
    let known = gleaner_image::code::known_callers::of(&module);
    let of = |name: &str| {
        let unit = (0..module.units.len()).find(|&unit| module.name(unit) == Some(name.as_bytes()));
        known[unit.expect(name)]
    };
    assert_eq!((of("taken"), of("called")), (false, true));
}
