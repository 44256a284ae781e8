//! Constants in the segment of the code, as some linkers place them: relocations point to them, and that makes none of them
//! a function.

use gleaner_image::Module;
use std::process::Command;

const SOURCE: &str = r#"
    const char *const names[] = { "\303", "\220\303", "one", "another", "a third" };
    static int twice(int x) { return 2 * x; }
    int (*const pointers[])(int) = { twice };
"#;

#[test]
fn what_relocations_point_to_is_code_only_where_sections_hold_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, to) = (folder.path().join("p.c"), folder.path().join("p.so"));
    std::fs::write(&source, SOURCE).expect("a source");
    let options =
        ["-O1", "-shared", "-fPIC", "-fno-asynchronous-unwind-tables", "-Wl,-z,noseparate-code", "-s"];
    let done = Command::new("gcc").args(options).arg(&source).arg("-o").arg(&to).status();
    assert!(done.is_ok_and(|status| status.success()), "a compiler");
    let data = std::fs::read(to).expect("what was compiled");
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
