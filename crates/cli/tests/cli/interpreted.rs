//! `gleaner profile` of Python and Ruby: the lines of the programs in `programs/scripts` that wait
//! are marked in them, and what the interpreter waits for is put down to those.

use crate::made::{is_there, marked, profiled, program};
use records::profile::Profile;
use std::process::Output;
use testkit::{Place, text};

/// Each Python that there is and that keeps its place where it is known.
fn pythons() -> Vec<&'static str> {
    const KNOWN: &str = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))";
    let all = ["python3", "python3.11", "python3.12", "python3.13", "python3.14"];
    let found: Vec<_> = all.into_iter().filter(|python| is_there(&[python, "-c", KNOWN])).collect();
    // The first one may be another's name.
    if found.len() > 1 { found[1..].to_vec() } else { found }
}

fn place() -> Place {
    Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"))
}

fn waits_where_marked(name: &str, output: &Output, profile: &Profile) {
    let told = text(&output.stderr);
    let marked = marked(name);
    let is_of_it = |file: &str| file.ends_with(name);
    // What it calls of Python's own modules has lines of its own.
    let most = profile.scripts.iter().find(|line| is_of_it(&line.file));
    let most = most.unwrap_or_else(|| panic!("{name}: {told}"));
    assert!(marked.contains(&most.line), "{name}: {told}");
    let stall = |only: &[u32]| -> f64 {
        let lines = profile.scripts.iter().filter(|line| only.is_empty() || only.contains(&line.line));
        lines.filter(|line| is_of_it(&line.file)).filter_map(|line| line.stall.value()).sum()
    };
    assert!(stall(&marked) * 3.0 >= stall(&[]) * 2.0, "{name}: {told}");
    // Most stacks have a line; those of a sort are deeper than what is copied.
    let with_line: u64 = profile.scripts.iter().map(|line| line.samples).sum();
    assert!(with_line * 10 >= profile.calls.samples * 5, "{name}: {with_line} lines\n{told}");
}

#[test]
fn the_lines_of_python_that_wait_are_named() {
    let place = place();
    for python in pythons() {
        for name in ["join.py", "gather.py", "graph.py", "keys.py", "members.py", "words.py"] {
            let path = program(name);
            let command = [python, path.to_str().unwrap()];
            let Some((output, profile)) = profiled(&place, &["--no-allocations"], &command) else { return };
            waits_where_marked(name, &output, &profile);
            if name == "join.py" {
                let line = &profile.scripts[0];
                assert_eq!((line.language.as_str(), line.function.as_str()), ("Python", "join"));
                assert_eq!(line.data.as_deref(), Some("the table of a dict"), "{line:?}");
                let told = text(&output.stderr);
                assert!(told.contains("line 8 of join.py waits"), "{told}");
            }
        }
    }
}

#[test]
fn the_lines_of_ruby_that_wait_are_named() {
    const KNOWN: &str = "exit RUBY_VERSION.start_with?('3.1.')";
    if !is_there(&["ruby", "-e", KNOWN]) {
        return;
    }
    let place = place();
    for name in ["join.rb", "graph.rb"] {
        let path = program(name);
        let command = ["ruby", path.to_str().unwrap()];
        let Some((output, profile)) = profiled(&place, &["--no-allocations"], &command) else { return };
        waits_where_marked(name, &output, &profile);
        assert!(profile.scripts.iter().all(|line| line.language == "Ruby"), "{:?}", profile.scripts);
        let data = if name == "join.rb" { "the table of a hash" } else { "objects" };
        assert_eq!(profile.scripts[0].data.as_deref(), Some(data), "{:?}", profile.scripts);
    }
}

#[test]
fn lines_of_scripts_are_frames_of_the_tree() {
    let place = place();
    let Some(python) = pythons().first().copied() else { return };
    let path = program("join.py");
    let command = [python, path.to_str().unwrap()];
    let Some((output, profile)) = profiled(&place, &["--no-allocations"], &command) else { return };
    let tree = &profile.calls;
    let is_line = |node: &usize| {
        let frame = &tree.frames[tree.nodes[*node].frame];
        (frame.function.as_deref(), frame.line) == (Some("join"), Some(8))
    };
    let lines: Vec<usize> = (0..tree.nodes.len()).filter(is_line).collect();
    assert!(!lines.is_empty(), "{}", text(&output.stderr));
    let below = |node: usize| std::iter::successors(Some(node), |&node| tree.nodes[node].caller);
    let stalled = |within: &dyn Fn(usize) -> bool| -> u64 {
        (0..tree.nodes.len()).filter(|&node| within(node)).map(|node| tree.nodes[node].stall).sum()
    };
    let in_line = stalled(&|node| below(node).any(|caller| lines.contains(&caller)));
    assert!(in_line * 2 > stalled(&|_| true), "{in_line}: {}", text(&output.stderr));
    // Other tools see them as any other frame.
    let mut export = place.command(env!("CARGO_BIN_EXE_gleaner"));
    let folded = export.args(["export", "profile.json", "--format", "folded", "-o", "-"]).output().unwrap();
    let folded = text(&folded.stdout);
    assert!(folded.lines().any(|line| line.contains("join")), "{folded}");
}
