//! What a program said and how it ended, to be compared.

use std::process::Output;

/// What was written, as far as it is text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Its exit code, if it ended by itself, its output and its errors; of a harvest, without the
/// summary and the progress, which have figures.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), without_summary(&text(&output.stderr)))
}

/// Errors without the summary of a harvest, and without the progress of its preparation: what costs
/// are measured, where there is no record of them, and which programs are rewritten.
pub fn without_summary(errors: &str) -> String {
    let is_progress = |line: &str| {
        let what = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        ["analysing ", "rewriting ", "proving ", "costs"]
            .iter()
            .any(|step| what.starts_with(&format!("%  {step}")))
            || line.starts_with("gleaner: measuring what misses and yields cost")
            || line.trim_end().ends_with(": the costs of a common machine are assumed")
    };
    let (mut kept, mut in_summary) = (String::new(), false);
    for line in errors.split_inclusive('\n') {
        in_summary |= line.starts_with("harvest: ");
        if !in_summary && !is_progress(line) {
            kept.push_str(line);
        }
        in_summary &= !line.starts_with("  next: ");
    }
    kept
}

/// Errors without the note that the primary executed or became another program: it is told where
/// that lives long enough to be seen, so not always.
pub fn without_executions(errors: &str) -> String {
    let told = ["executed", "replaced itself with"]
        .map(|what| format!("gleaner: harvesting to the end: the primary {what} "));
    errors.split_inclusive('\n').filter(|line| !told.iter().any(|begin| line.starts_with(begin))).collect()
}
