//! Tests of docs/reproduce.md: each command of its ledger is one that this binary or this tree has,
//! and each claim of a document stands there.

use crate::Cli;
use ::reproduce::ledger;
use clap::Parser as _;
use std::fs;

/// One line of the ledger: what it is about, what is here, and how far.
struct Row {
    of: String,
    here: String,
    state: String,
}

fn read(path: &str) -> String {
    fs::read_to_string(testkit::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The part of a page below this title.
fn below<'a>(page: &'a str, title: &str, level: &str) -> &'a str {
    let begin = page.find(&format!("\n{level} {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
    let rest = &page[begin + 1..];
    let end = |mark: &str| rest[1..].find(&format!("\n{mark} ")).map_or(rest.len(), |at| at + 1);
    &rest[..if level == "##" { end("##") } else { end("##").min(end("###")) }]
}

fn rows(section: &str) -> Vec<Row> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let table = section.lines().filter(|line| line.starts_with('|')).skip(2);
    table
        .map(|line| match cells(line).as_slice() {
            [of, _, here, state] => Row { of: of.clone(), here: here.clone(), state: state.clone() },
            other => panic!("{} cells: {line}", other.len()),
        })
        .collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Words as a shell makes them, as far as the ledger's commands need it.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in command.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// What is wrong with a command; none for what is no command.
fn fault(command: &str) -> Option<String> {
    let words = words(command);
    let there = |path: &str| testkit::root().join(path).is_file();
    let no = |what: &str| Some(format!("{command}: {what}"));
    match words.first().map(String::as_str)? {
        "gleaner" => Cli::try_parse_from(&words).err().and_then(|error| no(&error.to_string())),
        "bench/beside" => {
            let Some(case) = words.get(1) else { return no("no case") };
            let (file, variant) = case.split_once('.').unwrap_or((case, ""));
            let path = format!("bench/cases/{file}.toml");
            if !there(&path) {
                return no("there is no such case");
            }
            let known = variant.is_empty() || read(&path).contains(&format!("[variants.{variant}]"));
            if known { None } else { no("the case has no such variant") }
        }
        "make" => {
            let target = words.get(1).cloned().unwrap_or_default();
            if read("Makefile").contains(&format!("\n{target}:")) { None } else { no("no such target") }
        }
        path if path.contains('/') && !path.starts_with('.') => {
            if there(path) {
                None
            } else {
                no("there is no such file")
            }
        }
        _ => None,
    }
}

fn is_command(text: &str) -> bool {
    ["gleaner ", "bench/", "make ", "scripts/"].iter().any(|begin| text.starts_with(begin))
}

#[test]
fn each_command_of_the_ledger_is_one() {
    let page = read("docs/reproduce.md");
    let mut faults = Vec::new();
    for document in ledger::DOCUMENTS {
        let found = rows(below(below(&page, "Ledger", "##"), document.name, "###"));
        assert!(found.len() >= 10, "{}: {} rows", document.name, found.len());
        for row in found {
            let commands: Vec<&str> = quoted(&row.here).filter(|text| is_command(text)).collect();
            faults.extend(commands.iter().filter_map(|command| fault(command)));
            let state = row.state.split([':', ',', ';']).next().unwrap_or_default();
            match state {
                "done" | "in part" if commands.is_empty() => faults.push(format!("{}: no command", row.of)),
                "done" | "in part" | "needs" => {}
                "not built" if row.here.is_empty() => {}
                "not built" => faults.push(format!("{}: not built, but done by {}", row.of, row.here)),
                other => faults.push(format!("{}: what is '{other}'?", row.of)),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_claim_stands_in_the_ledger() {
    let page = read("docs/reproduce.md");
    for document in ledger::DOCUMENTS {
        let found = rows(below(below(&page, "Ledger", "##"), document.name, "###"));
        let named: Vec<&str> = found.iter().flat_map(|row| quoted(&row.here)).collect();
        let missing: Vec<&str> =
            document.claims.iter().map(|claim| claim.id).filter(|id| !named.contains(id)).collect();
        assert!(missing.is_empty(), "{}: no row has {missing:?}", document.name);
    }
}

#[test]
fn commands_that_are_none_are_seen() {
    assert_eq!(fault("gleaner harvest --max-absence 10us --scavengers '8 x ./a 1' -- ./b 2"), None);
    assert_eq!(fault("bench/beside harvest.own"), None);
    for wrong in [
        "gleaner measure nothing",
        "gleaner mesure",
        "bench/beside none",
        "bench/beside harvest.none",
        "bench/none.sh",
        "make none",
    ] {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
}
