//! Computed jumps to labels: accepted as they are made, and rejected where a twin would be entered
//! at another place, or with something else than the program left.

use super::assembled::{assembled, at};
use gleaner_proof::check;

/// An interpreter of 64 operations, each of which does its work and jumps to the next one by a
/// table in the data that the program may change; the last one returns. The program's place is in
/// r12, the table in rbx.
fn interpreter(work: &str, jump: &str) -> String {
    let next = format!("movzbl (%r12), %eax; inc %r12; {jump}");
    let operation = |number: usize| format!("L{number}: {work}; {next}\n");
    let label = |number: usize| format!(".quad L{number}\n");
    let operations: String = (0..64).map(operation).collect();
    let labels: String = (0..65).map(label).collect();
    format!(
        ".text\n.globl f\n.type f, @function\nf: .cfi_startproc\n\
         push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3, -16\n\
         push %r12; .cfi_def_cfa_offset 24; .cfi_offset 12, -24\n\
         push %rbp; .cfi_def_cfa_offset 32; .cfi_offset 6, -32\n\
         mov %rdi, %r12; lea table(%rip), %rbx\n{next}\n{operations}\
         L64: mov %ebp, %eax; pop %rbp; .cfi_def_cfa_offset 24; pop %r12; .cfi_def_cfa_offset 16\n\
         pop %rbx; .cfi_def_cfa_offset 8; ret\n.cfi_endproc\n.size f, .-f\n\
         .data\n.balign 8\ntable:\n{labels}"
    )
}

fn rewritten(original: &[u8], guest: bool) -> Vec<u8> {
    let sites = twin::Sites {
        which: twin::SiteChoice::EveryLoad(twin::LoadReach::All),
        width: twin::VectorWidth::Sse,
        knowledge: twin::Knowledge::OfCallers,
        save_all_at: [].into(),
        optimisations: twin::Optimisations::ALL,
    };
    let mode = if guest {
        twin::Mode::Scavenger(&sites, twin::Bounds::default())
    } else {
        twin::Mode::Primary(&sites)
    };
    twin::rewrite(original, None, mode).expect("rewritten").bytes
}

/// Address and place in the file of the label table.
fn label_table(file: &[u8]) -> (u64, usize) {
    let module = image::Module::analyse(file, None).expect("an ELF file");
    let mut notes = module.image.notes();
    let (_, _, contents) =
        notes.find(|(owner, kind, _)| twin_format::Note::is_ours(owner, *kind)).expect("a note");
    let note = twin_format::Note::decode(contents).expect("it can be read");
    let mapping = note.mapping(file).and_then(twin_format::Mapping::decode).expect("a mapping");
    let [table] = mapping.label_tables[..] else { panic!("one table") };
    assert_eq!(mapping.labels.len(), 65);
    let place = module.image.file_offset(units::Svma(table.at)).expect("in the file");
    (table.at, place.0 as usize)
}

/// `movsxd rcx, dword [rax + rcx*4]`
const LOOKUP: &[u8] = &[0x48, 0x63, 0x0c, 0x88];

#[test]
fn jumps_to_labels() {
    let by_memory = "jmp *(%rbx,%rax,8)";
    // Behind the call, what it clobbers means nothing; a yield there does not save it.
    for (work, jump) in [
        ("add %eax, %ebp", by_memory),
        ("add %eax, %ebp", "mov (%rbx,%rax,8), %rax; jmp *%rax"),
        ("call getpid@PLT; add %eax, %ebp", by_memory),
    ] {
        let original = assembled(&interpreter(work, jump));
        for guest in [true, false] {
            let right = rewritten(&original, guest);
            if let Err(refusal) = check(&original, &right) {
                panic!("{work}; {jump}, guest: {guest}: {refusal}");
            }
            let lookups = at(&right, LOOKUP);
            assert_eq!(lookups.len(), 65, "one for each jump");
            let is_wrong = |place: usize, bytes: &[u8], what: &str| {
                let mut wrong = right.clone();
                assert_ne!(&wrong[place..place + bytes.len()], bytes, "{what}");
                wrong[place..place + bytes.len()].copy_from_slice(bytes);
                assert!(check(&original, &wrong).is_err(), "{jump}, guest: {guest}: {what}");
            };
            code_is_checked(&right, lookups[3], is_wrong);
            if jump == by_memory {
                // `mov rcx, [rbx + rax*8]`, with `cs` in the place of what is before it.
                let load = lookups[3] - 64
                    + *at(&right[lookups[3] - 64..lookups[3]], &[0x48, 0x8b, 0x0c, 0xc3]).last().unwrap();
                is_wrong(load, &[0x65, 0x8b], "relative to another segment");
            }
            table_is_checked(&right, is_wrong);
        }
    }
}

/// Around the lookup of a jump: each instruction changed in a way that would go unnoticed.
fn code_is_checked(file: &[u8], lookup: usize, is_wrong: impl Fn(usize, &[u8], &str)) {
    let before = |bytes: &[u8]| {
        let found = at(&file[lookup - 64..lookup], bytes);
        lookup - 64 + *found.last().unwrap_or_else(|| panic!("no {bytes:x?} before"))
    };
    let behind = |bytes: &[u8]| lookup + at(&file[lookup..lookup + 64], bytes)[0];
    let cmp = before(&[0x48, 0x81, 0xf9]);
    let size = u32::from_le_bytes(file[cmp + 3..cmp + 7].try_into().expect("four bytes"));
    is_wrong(cmp + 3, &(size + 1).to_le_bytes(), "a word more than the table has");
    is_wrong(before(&[0x73]), &[0x72], "only what is outside of the unit");
    is_wrong(before(&[0x73]), &[0xeb], "never");
    is_wrong(before(&[0x48, 0x29, 0xc1]), &[0x48, 0x29, 0xc8], "the other way round");
    let unit = before(&[0x48, 0x8d, 0x05]);
    is_wrong(unit + 3, &[file[unit + 3].wrapping_add(4)], "another table");
    is_wrong(lookup + 3, &[0xc8], "words of eight bytes");
    is_wrong(behind(&[0x74]), &[0x75], "where there is no label");
    is_wrong(behind(&[0x48, 0x8d, 0x4c, 0x08, 0]) + 4, &[1], "one byte behind the label");
    // The word that the flags are in, rcx's, and rax's.
    is_wrong(behind(&[0x65, 0x48, 0x8b, 0x04, 0x25, 0x18]) + 5, &[0x10], "flags of something else");
    is_wrong(behind(&[0x04, 0x7f, 0x9e]) + 2, &[0x90], "the comparison's flags");
    is_wrong(behind(&[0x65, 0x48, 0x8b, 0x0c, 0x25, 0x20]) + 5, &[0x10], "rax in rcx");
    is_wrong(behind(&[0x65, 0x48, 0x8b, 0x04, 0x25, 0x10]) + 5, &[0x20], "rcx in rax");
    is_wrong(behind(&[0x65, 0xff, 0x24, 0x25, 0x18]) + 4, &[0x10], "to what rax holds");
}

fn table_is_checked(file: &[u8], is_wrong: impl Fn(usize, &[u8], &str)) {
    let (_, place) = label_table(file);
    let words = (place..).step_by(4);
    let word = |at: usize| i32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let labels: Vec<usize> = words.take(2000).filter(|&at| at + 4 <= file.len() && word(at) != 0).collect();
    let (first, second) = (labels[0], labels[1]);
    is_wrong(first, &(word(first) + 1).to_le_bytes(), "into the midst of the label's twin");
    is_wrong(first, &word(second).to_le_bytes(), "another label's twin");
    is_wrong(first + 4, &word(first).to_le_bytes(), "what is no label");
}
