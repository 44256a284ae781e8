//! Processes of a test, found by where they work: in the test's own folder.

use std::path::{Path, PathBuf};

/// The processes whose working directory is this folder or one in it.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let works_here =
        |process: &PathBuf| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(works_here).collect()
}

/// Their process ids.
pub fn pids_in(folder: &Path) -> Vec<String> {
    let name = |process: PathBuf| Some(process.file_name()?.to_string_lossy().into_owned());
    processes_in(folder).into_iter().filter_map(name).collect()
}

/// Their threads, a line for each: its state, where it waits in the kernel, and the command.
pub fn threads_in(folder: &Path) -> Vec<String> {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let mut lines = Vec::new();
    for process in processes_in(folder) {
        let command = read(process.join("cmdline")).replace('\0', " ");
        for thread in std::fs::read_dir(process.join("task")).into_iter().flatten().flatten() {
            let [stat, wait, call] = ["stat", "wchan", "syscall"].map(|file| read(thread.path().join(file)));
            lines.push(format!("{stat}; waits in {wait}, system call {call}; {command}"));
        }
    }
    lines
}
