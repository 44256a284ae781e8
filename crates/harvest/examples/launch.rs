//! Launches a harvest of files that are twins already; see the module for its arguments.

#[path = "../tests/runtime/launcher.rs"]
mod launcher;

fn main() -> std::process::ExitCode {
    launcher::run(std::env::args().skip(1).collect())
}
