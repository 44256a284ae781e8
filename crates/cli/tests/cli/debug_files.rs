//! Debug information that lies elsewhere: what debuginfod's client has kept, and what it fetches.

use records::profile::Profile;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{Place, text};

/// Chases through a small list for half a second.
const PROGRAM: &str = r"
#include <time.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(void) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    void **p = ring;
    while (clock() < CLOCKS_PER_SEC / 2) p = chase(p, 1000000);
    gone_through = p;
    return 0;
}
";

/// A program without names, its debug information beside it, and its build id.
fn stripped() -> Option<(Place, String)> {
    let place = Place::uncompiled(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "p", &["-g", "-Wl,--build-id=sha1"]), "a C compiler");
    let done = |program: &str, arguments: &[&str]| {
        let mut command = place.command(program);
        command.args(arguments).stderr(Stdio::null());
        command.output().ok().filter(|output| output.status.success())
    };
    let told = done("readelf", &["--notes", "p"])?;
    let told = text(&told.stdout);
    let id = told.split("Build ID: ").nth(1)?.split_whitespace().next()?.to_owned();
    done("objcopy", &["--only-keep-debug", "p", "p.debug"])?;
    done("strip", &["p"])?;
    Some((place, id))
}

/// Functions and lines.
type Loads = Vec<(Option<String>, Option<u32>)>;

/// The functions and lines of the loads, and what was said.
fn loads(place: &Place, set: &[(&str, &str)]) -> (Loads, String) {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["profile", "--no-allocations", "-o", "p.json", "--", "./p"]);
    for name in ["DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH"] {
        command.env_remove(name);
    }
    let output = command.envs(set.iter().copied()).output().unwrap();
    if output.status.code() == Some(3) {
        return (Vec::new(), text(&output.stderr));
    }
    let profile = records::read::<Profile>(&place.at("p.json")).unwrap().body;
    let own = profile.loads.into_iter().filter(|load| load.module.ends_with("/p"));
    (own.map(|load| (load.function, load.line)).collect(), text(&output.stderr))
}

fn is_named(loads: &[(Option<String>, Option<u32>)]) -> bool {
    let is_chase =
        |function: &Option<String>| function.as_ref().is_some_and(|name| name.starts_with("chase"));
    loads.iter().any(|(function, line)| is_chase(function) && *line == Some(5))
}

#[test]
fn what_debuginfod_has_kept_is_read() {
    let Some((place, id)) = stripped() else {
        eprintln!("skipped: no binutils");
        return;
    };
    let (without, said) = loads(&place, &[]);
    if without.is_empty() {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(!is_named(&without), "{without:?}");
    let kept = place.at("cache/debuginfod_client").join(&id);
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::copy(place.at("p.debug"), kept.join("debuginfo")).unwrap();
    let (with, said) = loads(&place, &[]);
    assert!(is_named(&with), "{with:?} {said}");
    // What is of another build is left alone.
    std::fs::copy("/proc/self/exe", kept.join("debuginfo")).unwrap();
    assert!(!is_named(&loads(&place, &[]).0));
}

#[test]
fn debuginfod_s_client_is_asked_where_servers_are_named() {
    let Some((place, id)) = stripped() else {
        eprintln!("skipped: no binutils");
        return;
    };
    if Command::new("debuginfod-find").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no debuginfod-find");
        return;
    }
    let served = place.at("served/buildid").join(&id);
    std::fs::create_dir_all(&served).unwrap();
    std::fs::copy(place.at("p.debug"), served.join("debuginfo")).unwrap();
    let server = format!("file://{}", Path::new(&place.at("served")).display());
    let (named, said) = loads(&place, &[("DEBUGINFOD_URLS", &server)]);
    if named.is_empty() {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(is_named(&named), "{named:?} {said}");
    // One that has nothing leaves the profile as it is.
    std::fs::remove_dir_all(place.at("cache")).unwrap();
    let (without, _) = loads(&place, &[("DEBUGINFOD_URLS", "file:///nonexistent")]);
    assert!(!without.is_empty() && !is_named(&without), "{without:?}");
}
