//! YAML of LLVM's `MemProf`, for `llvm-profdata merge --memprof-version=4`: how often each variable
//! was read, and what was allocated at which calls (`heap_records.rs`), so that the compiler can
//! place hot and cold data apart.
//! <https://github.com/llvm/llvm-project/blob/main/llvm/include/llvm/ProfileData/MemProfYAML.h>
//!
//! The record knows variables with a symbol, and counts samples in which the core waited for them;
//! these are the access counts.
//!
//! LLVM finds a variable by its linkage name. The record has names as programmers write them, which
//! are the same for C; others (`a::b` of C++ or Rust) are left out, and a comment in the file says
//! how many.

use crate::ExportError;
use crate::clean::clean;
use crate::heap_records::{HeapRecords, is_linkage_name};
use crate::stacks::command;
use records::Document;
use records::profile::{MemoryObject, Profile};
use std::collections::BTreeMap;

pub(crate) fn text(document: &Document<Profile>) -> Result<String, ExportError> {
    let profile = &document.body;
    // LLVM refuses a symbol that comes twice: those of one name in several modules are one.
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut left_out = 0;
    for object in &profile.objects {
        let Some(name) = variable(object) else { continue };
        let share = object.stall.value().unwrap_or(0.0).clamp(0.0, 1.0);
        let samples = (share * profile.sampling.samples as f64).round() as u64;
        if !is_linkage_name(name) {
            left_out += 1;
        } else if samples > 0 {
            *counts.entry(name).or_default() += samples;
        }
    }
    let heap = HeapRecords::of(profile);
    if counts.is_empty() && heap.is_empty() {
        return Err(ExportError::NoVariables);
    }
    let mut by_count: Vec<(&str, u64)> = counts.into_iter().collect();
    by_count.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    // Comments stand behind the first line: by that the reader knows the format.
    let mut text = format!(
        "---\n# gleaner {}: {}\n# AccessCount: samples in which the core waited for the variable\n",
        clean(&document.header.gleaner),
        command(profile)
    );
    if left_out > 0 {
        text += &format!("# left out: {left_out} variables whose linkage name the record does not have\n");
    }
    text += &heap.text();
    if !by_count.is_empty() {
        text += "DataAccessProfiles:\n  SampledRecords:\n";
    }
    for (name, count) in by_count {
        text += &format!("    - Symbol:          {name}\n      AccessCount:     {count}\n");
    }
    Ok(text + "...\n")
}

/// The name of a variable, which stands before that of its module; none for areas of memory.
fn variable(object: &MemoryObject) -> Option<&str> {
    let areas = ["anonymous memory (mmap)", "heap (brk)", "stack"];
    if object.site.is_some() || areas.contains(&object.name.as_str()) {
        return None;
    }
    let (name, _module) = object.name.strip_suffix(')')?.rsplit_once(" (")?;
    (!name.starts_with("data of ") && !name.starts_with("file ")).then_some(name)
}
