//! What a program said and how it ended, to be compared.

use std::process::Output;

/// What was written, as far as it is text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Its exit code, if it ended by itself, its output and its errors.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Errors without the note that the primary executed another program: it is told where that lives long enough to be seen, so not always.
pub fn without_executions(errors: &str) -> String {
    let told = "gleaner: harvesting to the end: the primary executed ";
    errors.split_inclusive('\n').filter(|line| !line.starts_with(told)).collect()
}
