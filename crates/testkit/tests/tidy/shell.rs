//! Rules for shell scripts: they parse, and they stop at the first failure; but for the workloads
//! of programs/real, whose failures are part of what is compared.

use crate::tree::{Text, texts};
use crate::{none, root};
use std::process::Command;

fn is_script(file: &Text) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    file.is("sh") || first.starts_with("#!") && (first.ends_with("sh") || first.contains("bash"))
}

#[test]
fn scripts_parse_and_stop_at_failures() {
    let mut complaints = Vec::new();
    let scripts: Vec<Text> = texts().into_iter().filter(is_script).collect();
    assert!(scripts.iter().any(|script| script.path == ".ci/run"));
    for script in scripts {
        let output = Command::new("bash").arg("-n").arg(root().join(&script.path)).output().expect("bash");
        if !output.status.success() {
            complaints.push(format!("{}: {}", script.path, String::from_utf8_lossy(&output.stderr).trim()));
        }
        let is_workload = script.path.starts_with("programs/real/");
        if !is_workload && !script.text.lines().any(|line| line.starts_with("set -") && line.contains('e')) {
            complaints.push(format!("{}: 'set -e' is missing", script.path));
        }
    }
    none(&complaints);
}
