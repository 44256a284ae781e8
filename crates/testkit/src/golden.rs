//! Texts that are generated, committed, and must be current: schemas, help.
//!
//! `make regenerate` runs the tests with `GLEANER_REGENERATE=1`; then they write instead of
//! comparing.

use crate::root;
use std::fs;

/// Fails unless the committed file holds this text. The path counts from the repository's top.
pub fn golden(path: &str, text: &str) {
    golden_bytes(path, text.as_bytes());
}

/// The same for what need not be text.
pub fn golden_bytes(path: &str, bytes: &[u8]) {
    let file = root().join(path);
    if regenerating() {
        fs::create_dir_all(file.parent().expect("a file lies in a directory")).expect("its directory");
        fs::write(&file, bytes).expect("the generated file");
        return;
    }
    let Ok(committed) = fs::read(&file) else {
        panic!("{path} is generated, but not there; `make regenerate` writes it");
    };
    if committed != bytes {
        let differ = first_difference(&committed, bytes);
        panic!(
            "{path} is not what is generated now; see whether that is meant, then `make regenerate`\n{differ}"
        );
    }
}

fn regenerating() -> bool {
    std::env::var_os("GLEANER_REGENERATE").is_some_and(|v| v == "1")
}

fn first_difference(committed: &[u8], generated: &[u8]) -> String {
    let (a, b) = (String::from_utf8_lossy(committed), String::from_utf8_lossy(generated));
    let (mut a, mut b) = (a.lines(), b.lines());
    for number in 1.. {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (None, None) => break,
            (x, y) => {
                let show = |line: Option<&str>| line.map_or("(end)".to_owned(), |l| format!("{l:?}"));
                return format!("line {number}\n  committed: {}\n  generated: {}", show(x), show(y));
            }
        }
    }
    "they differ in line ends only".to_owned()
}
