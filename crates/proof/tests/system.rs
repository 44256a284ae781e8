//! The programs and libraries of this system: each is rewritten and proven. Takes minutes, so it is run when asked for:
//! `cargo test --release -p gleaner-proof --test system -- --ignored`. `PROOF_FOLDERS` names other folders than the usual.

use rayon::prelude::*;
use std::path::{Path, PathBuf};

const LARGEST: u64 = 64 << 20;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() && entry.metadata().is_ok_and(|metadata| metadata.len() < LARGEST) {
            found.push(entry.path());
        }
    }
}

#[test]
#[ignore = "minutes"]
fn whatever_can_be_rewritten_is_proven() {
    let folders = std::env::var("PROOF_FOLDERS").unwrap_or_else(|_| "/usr/bin:/usr/sbin:/usr/lib".to_owned());
    let mut paths = Vec::new();
    for folder in folders.split(':') {
        files(Path::new(folder), &mut paths);
    }
    let results: Vec<(PathBuf, Result<usize, String>)> = paths
        .into_par_iter()
        .filter_map(|path| {
            let original = std::fs::read(&path).ok().filter(|bytes| bytes.starts_with(b"\x7fELF\x02\x01"))?;
            // What the rewriter refuses needs no proof: there is no file.
            let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).ok()?;
            let proven = gleaner_proof::check(&original, &rewritten.bytes);
            Some((path, proven.map(|counts| counts.instructions).map_err(|refusal| refusal.to_string())))
        })
        .collect();
    let wrong: Vec<String> = results
        .iter()
        .filter_map(|(path, result)| result.as_ref().err().map(|why| format!("{}: {why}", path.display())))
        .collect();
    let instructions: usize = results.iter().filter_map(|(_, result)| result.as_ref().ok()).sum();
    println!("{} files, {instructions} instructions", results.len());
    assert!(!results.is_empty(), "no programs in {folders}");
    assert!(wrong.is_empty(), "{} of {} not proven:\n{}", wrong.len(), results.len(), wrong.join("\n"));
}
