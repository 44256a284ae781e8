//! `gleaner twin --plan`: a file is rewritten as the plan says that names it, and no other one is.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What is tested is the program's own: its libraries have no twins, and costs are not measured.
const HARVEST: [&str; 4] = ["harvest", "--libraries", "none", "--assume-costs"];

/// Its chase holds little that is live, and what it adds to each step changes nowhere: there is
/// something for each part of a plan to spare.
const PROGRAM: &str = r"
#include <stdlib.h>
#include <unistd.h>
static long ring[64];
__attribute__((noinline)) static long chase(const char *base, long at, long n) {
    do at = *(const long *)(base + at); while (--n);
    return at;
}
int main(void) {
    for (int i = 0; i < 64; i++) ring[i] = (i + 5) % 64 * sizeof *ring;
    char said[] = { NAME[0], ' ', 'A' + chase((const char *)ring, 0, 1000) / sizeof *ring, '\n' };
    write(1, said, sizeof said);
    exit(0);
}
";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.compile("p");
        place
    }
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    fn compile(&self, name: &str) {
        std::fs::write(self.at("p.c"), PROGRAM).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-w", "-Wl,--build-id"]).arg(format!("-DNAME=\"{name}\""));
        compiler.arg("-o").arg(self.at(name)).arg(self.at("p.c"));
        assert!(compiler.status().expect("a C compiler").success());
    }
    fn gleaner(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.at("cache")).output().unwrap()
    }
    fn alone(&self) -> Vec<u8> {
        Command::new(self.at("p")).output().unwrap().stdout
    }
    fn plan(&self, scavengers: &[&str]) {
        let mut arguments = [&HARVEST[..], &["--dry-run", "--record", "plan.json"]].concat();
        arguments.extend(scavengers.iter().flat_map(|name| ["--scavenger", name]));
        arguments.extend(["--", "./p"]);
        let made = self.gleaner(&arguments);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    fn refused(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let told = self.gleaner(&[&["twin", "--plan", "plan.json", "-o", "out"], arguments].concat());
        assert!(!self.at("out").exists(), "an output");
        let said = String::from_utf8(told.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        (told.status.code(), said.trim_end().to_owned())
    }
}

fn mode(file: &Path) -> u32 {
    let data = std::fs::read(file).unwrap();
    let image = image::Image::parse(&data).unwrap();
    let note = image.notes().find(|(owner, kind, _)| *owner == b"Gleaner\0" && *kind == 1);
    u32::from_le_bytes(note.expect("a rewritten file").2[4..8].try_into().unwrap())
}

#[test]
fn a_file_is_rewritten_as_its_plan_says() {
    let place = Place::new();
    place.plan(&[]);
    let told = place.gleaner(&["twin", "--json", "--plan", "plan.json", "-o", "out", "p"]);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let coverage: serde_json::Value = serde_json::from_slice(&told.stdout).expect("nothing but JSON");
    let plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("plan.json")).unwrap()).unwrap();
    let planned = plan["modules"][0]["sites"].as_array().unwrap().len();
    assert!(planned > 0, "the chase is worth a site");
    assert_eq!(coverage["harvest"]["sites"], planned);
    assert_eq!(coverage["harvest"]["bounds"], 0, "bounds are for scavengers");
    assert_eq!(mode(&place.at("out")), 3);
}

/// Each is another file then, which does the same; where all registers are saved, a longer one.
#[test]
fn parts_can_be_left_out() {
    let place = Place::new();
    let planned = |without: &[&str]| {
        let wanted = ["--dry-run", "--record", "plan.json", "--scavengers", "4 x ./p"];
        let made = place.gleaner(&[&HARVEST, &wanted[..], without, &["--", "./p"]].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let told = place.gleaner(&["twin", "--plan", "plan.json", "--role", "scavenger", "-o", "out", "p"]);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        (std::fs::read(place.at("out")).unwrap(), String::from_utf8(made.stdout).unwrap())
    };
    let (whole, _) = planned(&[]);
    let mut files = vec![whole];
    for (part, words) in [
        ("bounds", "bounds"),
        ("live-registers", "live registers"),
        ("hoisted-saves", "hoisted saves"),
        ("sunk-restores", "sunk restores"),
        ("load-store-balance", "load-store balance"),
    ] {
        let (file, explained) = planned(&["--without", part]);
        assert!(explained.contains(&format!("without      {words}; ")), "{explained}");
        let plan = records::read::<records::plan::Plan>(&place.at("plan.json")).unwrap().body;
        assert_eq!(plan.without.iter().map(|part| part.words()).collect::<Vec<_>>(), [words]);
        assert!(part != "live-registers" || file.len() > files[0].len());
        assert!(!files.contains(&file), "{part}");
        files.push(file);

        let scavengers = ["--without", part, "--scavenger", "./p", "--record", "run.json"];
        let ran = place.gleaner(&[&HARVEST, &scavengers[..], &["--", "./p"]].concat());
        assert_eq!((ran.status.code(), &*ran.stdout), (Some(0), &*place.alone()), "{part}");
        let run = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
        assert_eq!(run.without, plan.without);
    }
}

/// Their names of earlier versions: on the command line, and in plans.
#[test]
fn parts_keep_their_old_names() {
    let place = Place::new();
    for (old, new, recorded) in [
        ("saving-ahead", "hoisted-saves", "saving_ahead"),
        ("left-in-slots", "sunk-restores", "left_in_slots"),
        ("stored-again", "load-store-balance", "stored_again"),
    ] {
        for name in [old, new] {
            let wanted = ["--dry-run", "--without", name, "--record", "plan.json"];
            let made = place.gleaner(&[&HARVEST, &wanted[..], &["--scavenger", "./p", "--", "./p"]].concat());
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let plan: serde_json::Value =
                serde_json::from_slice(&std::fs::read(place.at("plan.json")).unwrap()).unwrap();
            assert_eq!(plan["without"], serde_json::json!([recorded]), "{name}");
        }
    }
}

#[test]
fn a_file_of_both_roles_needs_to_be_told_which() {
    let place = Place::new();
    place.plan(&["./p"]);
    let why = "gleaner: p: in the plan as primary and as scavenger; say which is meant; --role does";
    assert_eq!(place.refused(&["p"]), (Some(2), why.to_owned()));
    for (role, number) in [("primary", 3), ("scavenger", 4)] {
        let told = place.gleaner(&["twin", "--plan", "plan.json", "--role", role, "-o", role, "p"]);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        assert_eq!(mode(&place.at(role)), number);
    }
}

/// Plans of versions that had siblings are read, and not followed.
#[test]
fn a_plan_for_a_parked_role_is_refused() {
    let place = Place::new();
    place.plan(&[]);
    let mut plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("plan.json")).unwrap()).unwrap();
    plan["modules"][0]["role"] = "sibling".into();
    std::fs::write(place.at("plan.json"), plan.to_string()).unwrap();
    let why = "gleaner: p: planned as a sibling, a role that is parked since version 0.1.0";
    assert_eq!(place.refused(&["p"]), (Some(2), why.to_owned()));
}

/// Those of versions that had yields in busy-waits are followed without them.
#[test]
fn a_plan_with_busy_waits_is_followed_without_them() {
    let place = Place::new();
    place.plan(&[]);
    let mut plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("plan.json")).unwrap()).unwrap();
    let site = &plan["modules"][0]["sites"][0];
    let mut wait = serde_json::json!({"waits_for": "clock"});
    for part in ["address", "instruction", "offset", "loop_depth", "live"] {
        wait[part] = site[part].clone();
    }
    plan["modules"][0]["spins"] = serde_json::json!([wait]);
    std::fs::write(place.at("older.json"), plan.to_string()).unwrap();
    let arguments = ["--plan", "older.json", "--dry-run", "--record", "newer.json", "--", "./p"];
    let followed = place.gleaner(&[&["harvest", "--libraries", "none"], &arguments[..]].concat());
    assert!(followed.status.success(), "{}", String::from_utf8_lossy(&followed.stderr));
    let newer: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.at("newer.json")).unwrap()).unwrap();
    assert_eq!(newer["modules"][0].get("spins"), None);
    assert_eq!(newer["modules"][0]["sites"], plan["modules"][0]["sites"]);
    for from in ["plan", "older"] {
        let plan = format!("{from}.json");
        let told = place.gleaner(&["twin", "--plan", &plan, "-o", from, "p"]);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    }
    assert_eq!(std::fs::read(place.at("older")).unwrap(), std::fs::read(place.at("plan")).unwrap());
}

#[test]
fn other_files_are_refused() {
    let place = Place::new();
    place.plan(&[]);
    place.compile("other");
    let (code, said) = place.refused(&["other"]);
    assert_eq!(code, Some(2));
    assert!(said.starts_with("gleaner: other: not in the plan, which is for /"), "{said}");
    assert!(said.ends_with("/p as primary"), "{said}");
    let (code, said) = place.refused(&["--role", "scavenger", "p"]);
    assert!(code == Some(2) && said.contains("not in the plan"), "{said}");
    // The same build, stripped since.
    assert!(Command::new("strip").arg(place.at("p")).status().unwrap().success());
    let why = "gleaner: p: not as it was planned for: the same build id, but other contents";
    assert_eq!(place.refused(&["p"]), (Some(2), why.to_owned()));
    std::fs::write(place.at("p"), "no program").unwrap();
    assert_eq!(place.refused(&["p"]).0, Some(2));
    std::fs::write(place.at("plan.json"), "{").unwrap();
    assert_eq!(place.refused(&["other"]).0, Some(2));
}
