//! Modules of a crate use one another in one direction: what is understood first uses nothing of
//! what comes later. So there is no cycle among the files of a crate, but for those that a use in
//! `pending/cycles.txt` closes: `CRATE: from -> to # reason`, a use that is left out when cycles
//! are looked for.
//!
//! A module is a file. A use is a path by `crate::` or `super::`, in code outside tests; the
//! longest part of it that names a file is what is used. A module that names its own parts (`mod
//! part; use part::X`) does not use them in this sense, so parts may use what stands in the file
//! above them.

use crate::none;
use crate::pending::unlisted;
use crate::tree::{Text, texts};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Modules and the modules they use, both named as in `a::b`; the crate's own file is `crate`.
type Graph = BTreeMap<String, BTreeSet<String>>;

const TOP: &str = "crate";

static PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b((?:crate|super)\b(?:::super\b)*)::([a-zA-Z_{*])").expect("a pattern"));

/// The module that a file below `src/` is.
pub(crate) fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" || path == "main" { TOP.to_owned() } else { path.replace('/', "::") }
}

/// The code alone: no comments, no tests at its end.
pub(crate) fn code(text: &str) -> String {
    let mut lines = Vec::new();
    let all: Vec<&str> = text.lines().collect();
    for (number, line) in all.iter().enumerate() {
        let begins_tests = line.trim() == "#[cfg(test)]"
            && all[number + 1..].iter().take(2).any(|next| {
                next.trim_start_matches("pub(crate) ").starts_with("mod ") && next.ends_with('{')
            });
        if begins_tests {
            break;
        }
        lines.push(line.split("//").next().unwrap_or_default());
    }
    lines.join("\n")
}

/// All paths of a tree of names as in `a::{b, c::{d}}`, up to where it ends.
pub(crate) fn paths(tree: &str) -> Vec<Vec<String>> {
    let (mut found, mut prefix, mut open) = (Vec::new(), Vec::<String>::new(), Vec::<usize>::new());
    let mut word = String::new();
    let mut characters = tree.chars().peekable();
    loop {
        let next = characters.next();
        match next {
            Some(c) if c.is_alphanumeric() || c == '_' || c == '*' => word.push(c),
            Some(':') if characters.peek() == Some(&':') => {
                characters.next();
                prefix.push(std::mem::take(&mut word));
                // Generic arguments are no names.
                if !characters.peek().is_some_and(|c| c.is_alphanumeric() || "_{*".contains(*c)) {
                    found.push(prefix.clone());
                    return found;
                }
            }
            Some('{') => open.push(prefix.len()),
            Some(' ' | '\n') if word.is_empty() => {}
            Some(' ' | '\n') if !open.is_empty() => {
                // `a as b`: the rest, up to the comma, is a name of this file's own.
                while characters.peek().is_some_and(|c| !",}".contains(*c)) {
                    characters.next();
                }
            }
            end => {
                if !word.is_empty() {
                    let mut path = prefix.clone();
                    path.push(std::mem::take(&mut word));
                    found.push(path);
                }
                let Some(&base) = open.last() else { return found };
                prefix.truncate(base);
                match end {
                    Some(',') => {}
                    Some('}') => {
                        open.pop();
                        prefix.truncate(open.last().copied().unwrap_or(0));
                        if open.is_empty() {
                            return found;
                        }
                    }
                    _ => return found,
                }
            }
        }
    }
}

/// The modules that the code of `module` uses.
fn uses(module: &str, code: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let own: Vec<&str> = if module == TOP { Vec::new() } else { module.split("::").collect() };
    for start in PATH.captures_iter(code) {
        let ups = start[1].matches("super").count();
        let base = if ups == 0 {
            Vec::new()
        } else if ups <= own.len() {
            own[..own.len() - ups].iter().map(|&part| part.to_owned()).collect()
        } else {
            continue;
        };
        let tree = &code[start.get(2).expect("a name").start()..];
        for path in paths(tree) {
            let whole: Vec<String> = base.iter().cloned().chain(path).collect();
            let longest = (0..=whole.len()).rev().map(|count| whole[..count].join("::"));
            let named = longest.map(|name| if name.is_empty() { TOP.to_owned() } else { name });
            found.extend(named.into_iter().find(|name| modules.contains(name)));
        }
    }
    found.remove(module);
    found
}

fn graph(files: &[(String, String)]) -> Graph {
    let modules: BTreeSet<String> = files.iter().map(|(module, _)| module.clone()).collect();
    files.iter().map(|(module, text)| (module.clone(), uses(module, &code(text), &modules))).collect()
}

/// For each use that closes a cycle, the shortest one that it closes. Modules are gone through in
/// the order of their names, so that the answer does not change by itself.
fn cycles(graph: &Graph, left_out: impl Fn(&str, &str) -> bool) -> Vec<Vec<String>> {
    let (mut kept, mut cycles) = (Graph::new(), Vec::new());
    // Uses of what is below the same folder first: those are the ones to keep.
    let mut all: Vec<(&String, &String)> =
        graph.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))).collect();
    let depth = |name: &str| if name == TOP { 0 } else { 1 + name.matches("::").count() };
    all.sort_by_key(|(from, to)| (depth(to) < depth(from), *to == TOP, (*from).clone(), (*to).clone()));
    for (from, to) in all {
        if left_out(from, to) {
            continue;
        }
        if let Some(back) = way(&kept, to, from) {
            cycles.push(std::iter::once(from.clone()).chain(back).collect());
        } else {
            kept.entry(from.clone()).or_default().insert(to.clone());
        }
    }
    cycles
}

/// The shortest way between two modules, both named.
fn way(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ahead = std::collections::VecDeque::from([from]);
    while let Some(here) = ahead.pop_front() {
        if here == to {
            let mut way = vec![to.to_owned()];
            while way.last().is_some_and(|last| last != from) {
                way.push(before[way.last().expect("a module").as_str()].to_owned());
            }
            way.reverse();
            return Some(way);
        }
        for next in graph.get(here).into_iter().flatten() {
            if next != from && !before.contains_key(next.as_str()) {
                before.insert(next, here);
                ahead.push_back(next);
            }
        }
    }
    None
}

/// The files of each crate: modules with their texts.
fn crates(files: Vec<Text>) -> BTreeMap<String, Vec<(String, String)>> {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for file in files.into_iter().filter(|file| file.is("rs")) {
        let Some((name, path)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        crates.entry(name.to_owned()).or_default().push((module_of(path), file.text.clone()));
    }
    crates
}

#[test]
fn modules_use_one_another_in_one_direction() {
    let listed = include_str!("pending/cycles.txt");
    let listed: BTreeSet<&str> =
        listed.lines().map(|line| line.split(" # ").next().unwrap_or_default().trim()).collect();
    let mut offenders = BTreeMap::new();
    for (name, files) in crates(texts()) {
        let graph = graph(&files);
        let line = |from: &str, to: &str| format!("{name}: {from} -> {to}");
        // Listed uses that are there still, and close a cycle still.
        let regenerates = std::env::var_os("GLEANER_REGENERATE").is_some();
        for cycle in cycles(&graph, |from, to| !regenerates && listed.contains(line(from, to).as_str())) {
            let what = format!("crates/{name}: a cycle: {}", cycle.join(" -> "));
            offenders.insert(line(&cycle[0], &cycle[1]), vec![what]);
        }
    }
    none(&unlisted("cycles.txt", &offenders, true));
}

#[test]
fn cycles_are_seen() {
    let file = |module: &str, text: &str| (module.to_owned(), text.to_owned());
    let files = [
        file(TOP, "mod a;\nmod b;\npub use a::Thing;\n"),
        file("a", "use crate::b::{deep::{One, Two as Too}, Other};\nfn f() { crate::c::<u8>() }\n"),
        file("b", "mod deep;\n// crate::a\n"),
        file(
            "b::deep",
            "use super::Other;\nuse super::super::a;\n#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n",
        ),
        file("d", "use crate::{b, Thing};\n"),
    ];
    let graph = graph(&files);
    let of = |module: &str| graph[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("a"), ["b", "b::deep", TOP]);
    assert_eq!(of("b"), [""; 0]);
    assert_eq!(of("b::deep"), ["a", "b"]);
    assert_eq!(of("d"), ["b", TOP]);
    let found = cycles(&graph, |_, _| false);
    assert_eq!(found, [["b::deep", "a", "b::deep"].map(str::to_owned).to_vec()]);
    assert!(cycles(&graph, |from, to| from == "b::deep" && to == "a").is_empty());
    assert_eq!(module_of("a/mod.rs"), "a");
    assert_eq!(module_of("a/b.rs"), "a::b");
}
