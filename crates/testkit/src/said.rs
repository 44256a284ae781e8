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
