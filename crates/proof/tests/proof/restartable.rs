//! A unit that a descriptor of restartable sequences names must have no twin.

use gleaner_proof::{Refusal, Rule, check};
use std::process::Command;

/// A table of such descriptors by all but its name: the rewriter sees nothing in it.
const PROGRAM: &str = r#"
    int other(int n) { return n * 3 + 1; }
    __attribute__((section("__rseq_cx"), used)) static int (*table[4])(int) = { 0, other, 0, 0 };
    int main(int n, char **a) { return other(n) - 4; }
"#;

fn compile(options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&from, PROGRAM).expect("a file");
    let done = Command::new("cc").arg(&from).args(options).args(["-O1", "-w", "-o"]).arg(&to).output();
    assert!(done.expect("a compiler").status.success());
    std::fs::read(to).expect("what was compiled")
}

/// The same file with its section named as the kernel's convention has it.
fn named(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let name = b"__rseq_cx\0";
    let places: Vec<usize> =
        (0..file.len() - name.len()).filter(|&at| file[at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    for at in places {
        file[at + 8] = b's';
    }
    file
}

#[test]
fn has_no_twin() {
    for options in [&["-fPIE", "-pie"][..], &["-fno-pie", "-no-pie"]] {
        let original = compile(options);
        let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
        check(&original, &rewritten).expect("right as it is");
        let (original, rewritten) = (named(&original), named(&rewritten));
        let Err(Refusal::Wrong { violations, .. }) = check(&original, &rewritten) else {
            panic!("{options:?}: accepted")
        };
        assert!(violations.iter().all(|violation| violation.rule == Rule::Mapping), "{violations:?}");
        let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
        check(&original, &rewritten).expect("right without a twin of it");
    }
}
