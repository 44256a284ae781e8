//! Rooms: who may use whom, and where `unsafe` may stand, as the table in ARCHITECTURE.md says.

use crate::{none, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use toml::{Table, Value};

#[derive(Debug, Default)]
struct Room {
    may_use: BTreeSet<String>,
    everything: bool,
    unsafe_allowed: bool,
    pure: bool,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Planned,
    Built,
}

type Rooms = BTreeMap<String, Room>;

/// Edges that exist for tests only, and are no part of what the table allows.
const FOR_TESTS: &[(&str, &str)] = &[("twin", "proof"), ("proof", "twin"), ("proof", "image")];

/// The rows ``| `room` ⚠ | … | `a`, `b` | built |``.
fn table(architecture: &str) -> Rooms {
    let mut rooms = Rooms::new();
    for line in architecture.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, holds, uses, state] = cells[..] else { panic!("four cells are needed: {line}") };
        let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let room = Room {
            may_use: quoted(uses).into_iter().collect(),
            everything: uses == "everything",
            unsafe_allowed: name.contains('⚠'),
            pure: holds.ends_with("; pure"),
            state: match state {
                "built" => State::Built,
                "planned" => State::Planned,
                other => panic!("'{other}' is neither built nor planned: {line}"),
            },
        };
        rooms.insert(quoted(name).remove(0), room);
    }
    rooms
}

/// Whether the arrows from `room` lead to `to`, in one step or several.
fn reaches(rooms: &Rooms, room: &str, to: &str) -> bool {
    let (mut seen, mut ahead) = (BTreeSet::new(), vec![room]);
    while let Some(here) = ahead.pop() {
        let Some(entry) = rooms.get(here).filter(|_| seen.insert(here)) else { continue };
        if entry.may_use.contains(to) || (entry.everything && to != "cli") {
            return true;
        }
        ahead.extend(entry.may_use.iter().map(String::as_str));
    }
    false
}

fn complaints_about(rooms: &Rooms, name: &str, manifest: &Table) -> Vec<String> {
    let Some(room) = rooms.get(name) else {
        return vec![format!("crates/{name} has no row in ARCHITECTURE.md")];
    };
    let mut complaints = Vec::new();
    if room.state == State::Planned {
        complaints.push(format!("crates/{name} exists, but ARCHITECTURE.md calls it planned"));
    }
    for (section, for_tests) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        for used in manifest.get(section).and_then(Value::as_table).into_iter().flat_map(Table::keys) {
            let is_room = root().join("crates").join(used).is_dir();
            let test_edge = for_tests && (used == "testkit" || FOR_TESTS.contains(&(name, used)));
            if !is_room || test_edge {
                continue;
            }
            if used == "testkit" {
                complaints.push(format!("crates/{name}: testkit is for [dev-dependencies] only"));
            } else if !reaches(rooms, name, used) {
                complaints
                    .push(format!("crates/{name} may not use {used}; see the table in ARCHITECTURE.md"));
            }
        }
    }
    complaints
}

fn rooms() -> Rooms {
    table(&fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md"))
}

/// The names of those that are called pure.
pub(crate) fn pure() -> Vec<String> {
    rooms()
        .into_iter()
        .filter(|(_, room)| room.pure && room.state == State::Built)
        .map(|(name, _)| name)
        .collect()
}

fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates");
    let mut names: Vec<_> = entries
        .map(|e| e.expect("an entry").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn arrows_only_point_down() {
    let (rooms, crates) = (rooms(), crates());
    let mut complaints = Vec::new();
    for name in &crates {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let manifest: Table = fs::read_to_string(path).expect("a manifest").parse().expect("TOML");
        complaints.extend(complaints_about(&rooms, name, &manifest));
    }
    for (name, room) in &rooms {
        if room.state == State::Built && !crates.contains(name) {
            complaints.push(format!("ARCHITECTURE.md calls {name} built, but crates/{name} is not there"));
        }
        if room.may_use.iter().any(|used| !rooms.contains_key(used)) {
            complaints.push(format!("ARCHITECTURE.md lets {name} use a room that has no row"));
        }
        if reaches(&rooms, name, name) && !room.everything {
            complaints.push(format!("ARCHITECTURE.md: the arrows from {name} lead back to it"));
        }
    }
    none(&complaints);
}

#[test]
fn unsafe_is_forbidden_outside_its_rooms() {
    let rooms = rooms();
    let mut complaints = Vec::new();
    for name in crates().iter().filter(|name| rooms.get(*name).is_some_and(|room| !room.unsafe_allowed)) {
        for file in ["lib.rs", "main.rs"] {
            let path = root().join("crates").join(name).join("src").join(file);
            if fs::read_to_string(path).is_ok_and(|text| !text.contains("#![forbid(unsafe_code)]")) {
                complaints.push(format!("crates/{name}/src/{file}: #![forbid(unsafe_code)] is missing"));
            }
        }
    }
    none(&complaints);
}

#[test]
fn forbidden_edges_are_seen() {
    let rooms = table(
        "| `lab` ⚠ | x | `kernels`, `host` | built |\n| `kernels` | x; pure | `units` | built |\n| `units` | x | nothing | built |\n\
         | `cli` | x | everything | built |\n| `host` | x | `units` | planned |\n",
    );
    assert!(rooms["lab"].unsafe_allowed && !rooms["kernels"].unsafe_allowed);
    assert!(rooms["kernels"].pure && !rooms["lab"].pure);
    let about = |name: &str, manifest: &str| complaints_about(&rooms, name, &manifest.parse().unwrap());
    assert!(about("lab", "[dependencies]\nkernels = 1\nunits = 1\nserde = 1").is_empty());
    assert_eq!(about("units", "[dependencies]\nkernels = 1").len(), 1);
    assert_eq!(about("kernels", "[build-dependencies]\nlab = 1").len(), 1);
    assert_eq!(about("kernels", "[dependencies]\ntestkit = 1").len(), 1);
    assert!(about("kernels", "[dev-dependencies]\ntestkit = 1").is_empty());
    assert_eq!(about("kernels", "[dev-dependencies]\nlab = 1").len(), 1);
    assert_eq!(about("cli", "[dependencies]\nlab = 1").len(), 0);
    assert_eq!(about("host", "").len(), 1, "planned, yet there");
    assert_eq!(about("attic", "").len(), 1, "no row");
}
