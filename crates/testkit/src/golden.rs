//! Texts that are generated, committed, and must be current: schemas, man pages, completions, help.
//!
//! `make regenerate` runs the tests with `GLEANER_REGENERATE=1`; then they write instead of
//! comparing.

use crate::root;
use std::fs;
use std::path::Path;

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

/// Fails unless the committed directory holds exactly the files of `generated`, names and contents.
pub fn golden_files(directory: &str, generated: &Path) {
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir)
            .map(|entries| entries.map(|e| e.expect("an entry").file_name()).collect())
            .unwrap_or_default();
        names.sort();
        names
    };
    let committed = root().join(directory);
    let wanted = names(generated);
    assert!(!wanted.is_empty(), "nothing was generated for {directory}");
    for name in names(&committed).iter().filter(|name| !wanted.contains(name)) {
        assert!(regenerating(), "{directory}/{} is no longer generated", name.to_string_lossy());
        fs::remove_file(committed.join(name)).expect("a file nobody generates any more");
    }
    for name in wanted {
        let bytes = fs::read(generated.join(&name)).expect("what was generated");
        golden_bytes(&format!("{directory}/{}", name.to_string_lossy()), &bytes);
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
