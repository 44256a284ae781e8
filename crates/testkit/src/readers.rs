//! Programs of others that read what Gleaner writes: below `target/readers`, or where
//! `GLEANER_READERS` says. `scripts/test.sh` installs them.

use crate::{root, text};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file among the readers, if it is installed.
pub fn of_readers(path: &str) -> Option<PathBuf> {
    let readers = std::env::var_os("GLEANER_READERS").map(PathBuf::from);
    let file = readers.unwrap_or_else(|| root().join("target/readers")).join(path);
    file.exists().then_some(file)
}

/// Python with its readers, if it is installed; else the test says that it is skipped.
pub fn python_reader() -> Option<PathBuf> {
    let python = of_readers("python/bin/python");
    if python.is_none() {
        eprintln!("skipped: no readers in Python here (scripts/test.sh installs them)");
    }
    python
}

/// What in a JSON document does not fit a JSON Schema, a line each, as Python's jsonschema says.
#[track_caller]
pub fn schema_faults(python: &Path, schema: &str, document: &str) -> Vec<String> {
    const SCRIPT: &str = "
import json, sys, jsonschema
schema, document = map(json.loads, sys.stdin.read().split('\\0'))
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
for fault in validator(schema).iter_errors(document):
    print(fault.json_path, fault.message.replace('\\n', ' ')[:300])
";
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("Python starts");
    let input = format!("{schema}\0{document}");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("Python reads");
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}
