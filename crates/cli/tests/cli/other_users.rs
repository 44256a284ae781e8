//! What other users of the machine can do to a run: directories of theirs, and links that they
//! planted. Only root may give files away, to play another user: others skip these tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use testkit::{Place, text, without_summary};

/// Another user, without anything here.
const STRANGER: u32 = 4321;

/// A chase through a small list, so that there is a site; as `scavenger`, it says so.
const PROGRAM: &str = r#"
#include <stdio.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    gone_through = chase(ring, 1000000);
    puts(argc > 1 ? "scavenger" : "primary");
    return argc > 1 ? 0 : 7;
}
"#;

/// A place with a directory of another user's, or nothing where this user can make none.
fn place() -> Option<(Place, PathBuf)> {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    let theirs = place.at("theirs");
    fs::create_dir(&theirs).unwrap();
    if chown(&theirs, Some(STRANGER), None).is_err() {
        eprintln!("skipped: only root can give files away");
        return None;
    }
    Some((place, theirs))
}

fn harvest(place: &Place, variable: (&str, &Path), options: &[&str]) -> Output {
    let mut harvest = place.harvest(options);
    harvest.env(variable.0, variable.1).args(["--scavenger", "./p scavenger", "--", "./p"]).output().unwrap()
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

fn give(path: &Path) {
    lchown(path, Some(STRANGER), None).unwrap();
}

/// `sudo -E` keeps `HOME`: what root keeps below it, the user can exchange.
#[test]
fn no_cache_is_used_below_a_directory_of_another_user() {
    let Some((place, theirs)) = place() else { return };
    let line = |at: &Path, why: &str| {
        let at = at.display();
        format!(
            "gleaner: no cache of rewritten files: {at}: {why}; programs are rewritten for this run only\n"
        )
    };
    let refused = |cache: &Path, line: &str| {
        let output = harvest(&place, ("XDG_CACHE_HOME", cache), &[]);
        let said = without_summary(&text(&output.stderr));
        assert_eq!((output.status.code(), said.as_str()), (Some(7), line), "{}", cache.display());
        assert_eq!(text(&output.stdout), "primary\n");
    };
    let cache = theirs.join("home/.cache");
    refused(&cache, &line(&theirs, "another user owns it"));
    assert!(is_empty(&theirs), "nothing of root's is left there");
    // One that root made there earlier, and one that the owner put there.
    let ours = place.at("cache");
    harvest(&place, ("XDG_CACHE_HOME", &ours), &[]);
    assert!(!is_empty(&ours.join("gleaner/twins")), "a cache of our own is used");
    fs::create_dir(theirs.join("home")).unwrap();
    fs::rename(&ours, &cache).unwrap();
    refused(&cache, &line(&theirs, "another user owns it"));
    // Their link, which leads to a directory of ours.
    fs::rename(&cache, &ours).unwrap();
    let link = place.at("link");
    symlink(&ours, &link).unwrap();
    give(&link);
    refused(&link, &line(&link, "a symbolic link of another user"));
    // A directory that everybody may rename what is in.
    chown(&theirs, Some(0), None).unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o777)).unwrap();
    refused(&cache, &line(&theirs, "others may write to it"));
}

/// An entry that others left while they could is made anew.
#[test]
fn an_entry_of_another_user_is_not_executed() {
    let Some((place, _)) = place() else { return };
    let cache = place.at("cache");
    harvest(&place, ("XDG_CACHE_HOME", &cache), &[]);
    let evil = "#!/bin/sh\necho executed\n";
    let entries = || fs::read_dir(cache.join("gleaner/twins")).unwrap().map(|entry| entry.unwrap().path());
    let mut exchanged = 0;
    for program in entries().map(|entry| entry.join("p")).filter(|program| program.exists()) {
        fs::remove_file(&program).unwrap();
        fs::write(place.at("evil"), evil).unwrap();
        fs::set_permissions(place.at("evil"), Permissions::from_mode(0o755)).unwrap();
        symlink(place.at("evil"), &program).unwrap();
        give(&program);
        exchanged += 1;
    }
    assert!(exchanged > 0);
    let output = harvest(&place, ("XDG_CACHE_HOME", &cache), &[]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "primary\n"));
    assert_eq!(fs::read_to_string(place.at("evil")).unwrap(), evil);
}

#[test]
fn no_rewritten_file_lies_in_a_temporary_directory_of_another_user() {
    let Some((place, theirs)) = place() else { return };
    let output = harvest(&place, ("TMPDIR", &theirs), &["--no-cache"]);
    assert_eq!((output.status.code(), without_summary(&text(&output.stderr)).as_str()), (Some(7), ""));
    assert!(is_empty(&theirs));
}

/// In a directory like `/tmp`, and in one of the other user's own.
#[test]
fn planted_links_are_not_followed_by_the_output_of_scavengers() {
    let Some((place, theirs)) = place() else { return };
    let shared = place.at("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let (victim, victims) = (place.at("victim"), place.at("victims"));
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(&victims).unwrap();
    for (directory, whose) in [(&shared, "that everybody may write to"), (&theirs, "of another user")] {
        for (target, name, shown) in [(&victim, "out", "out"), (&victims, "dir/", "dir/")] {
            let link = directory.join(name.trim_end_matches('/'));
            symlink(target, &link).unwrap();
            give(&link);
            let out = directory.join(name);
            let output =
                harvest(&place, ("HOME", place.folder()), &["--scavenger-out", out.to_str().unwrap()]);
            let why = format!("a symbolic link of another user, in a directory {whose}\n");
            let said = text(&output.stderr);
            assert!(said.ends_with(&why) && said.lines().count() == 1, "{shown}: {said}");
            assert!(output.stdout.is_empty() && output.status.code() == Some(2), "{shown}: {output:?}");
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(is_empty(&victims));
    // Ours are followed, there as anywhere.
    symlink(&victim, shared.join("ours")).unwrap();
    let output = harvest(&place, ("HOME", place.folder()), &["--scavenger-out", "shared/ours"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    // Perhaps nothing: a short primary kills its scavengers before they say anything.
    assert_ne!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn nor_by_the_tour() {
    let Some((place, theirs)) = place() else { return };
    let victims = place.at("victims");
    fs::create_dir(&victims).unwrap();
    fs::write(victims.join("join.c"), "precious").unwrap();
    let link = theirs.join("tour");
    symlink(&victims, &link).unwrap();
    give(&link);
    for name in ["tour", "tour/"] {
        let mut tour = place.command(env!("CARGO_BIN_EXE_gleaner"));
        let output = tour.args(["tour", "--directory"]).arg(theirs.join(name)).output().unwrap();
        let said = text(&output.stderr);
        assert!(
            said.ends_with("a symbolic link of another user, in a directory of another user\n"),
            "{said}"
        );
        assert!(output.stdout.is_empty() && !output.status.success(), "{output:?}");
    }
    assert_eq!(fs::read_to_string(victims.join("join.c")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&victims).unwrap().count(), 1);
}
