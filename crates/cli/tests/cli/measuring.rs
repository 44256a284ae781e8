//! How `measure` behaves towards others: shells, other measurements, and the harvest that uses its
//! record.
//!
//! To add a case: a test that measures the clock, which takes a second. No speed is looked at.

use records::machine::Machine;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{said, wait_for};

fn measure(cache: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["measure", "--quick"]).args(args).stdin(Stdio::null()).env("XDG_CACHE_HOME", cache);
    command
}

/// The signals of a set in `/proc/PID/status`, as bits of which the lowest is signal 1.
fn signals(pid: u32, set: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{set}:")));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

#[test]
fn ignored_signals_stay_ignored() {
    const HUP: u64 = 1 << 0;
    const INT: u64 = 1 << 1;
    const TERM: u64 = 1 << 14;
    // As nohup does, and a shell with what a script puts into the background.
    let line = "trap '' HUP INT; exec \"$G\" measure latency --quick -q --json";
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("G", env!("CARGO_BIN_EXE_gleaner")).stdin(Stdio::null());
    let mut child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while signals(child.id(), "SigCgt") & TERM == 0 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (caught, ignored) = (signals(child.id(), "SigCgt"), signals(child.id(), "SigIgn"));
    assert!(testkit::kill("HUP", &child.id().to_string()) && testkit::kill("INT", &child.id().to_string()));
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none(), "it ended by a signal that it was to ignore");
    assert!(testkit::kill("TERM", &child.id().to_string()));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!((caught & TERM, caught & (HUP | INT), ignored & (HUP | INT)), (TERM, 0, HUP | INT));
}

#[test]
fn the_record_is_left_where_a_harvest_looks_for_it() {
    let cache = tempfile::tempdir().unwrap();
    let path = cache.path().join("gleaner/machine.json");
    let remark = format!("wrote {}, which gleaner harvest uses", path.display());
    let (code, _, errors) = said(&measure(cache.path(), &["latency", "clock"]).output().unwrap());
    assert_eq!(code, Some(0), "{errors}");
    // Where other programs leave nothing of the curve, there is nothing to be left.
    let left = errors.lines().any(|line| line == remark);
    assert!(left || errors.contains("no level of caches and memory was resolved"), "{errors}");
    assert_eq!(path.exists(), left);
    if !left {
        return;
    }
    let first = records::read::<Machine>(&path).unwrap();
    assert!(first.body.levels.len() >= 2);

    // A run without levels does not take its place, nor an empty one.
    for place in [cache.path(), tempfile::tempdir().unwrap().path()] {
        let (code, _, errors) = said(&measure(place, &["clock"]).output().unwrap());
        assert_eq!(code, Some(0), "{errors}");
        let remark = "no record is left for gleaner harvest: it has no levels of caches and memory";
        assert!(errors.lines().any(|line| line.starts_with(remark)), "{errors}");
    }
    assert_eq!(records::read::<Machine>(&path).unwrap(), first);

    // Nor does one that names another file.
    let other = cache.path().join("other.json");
    let output = measure(cache.path(), &["clock", "-o", other.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(records::read::<Machine>(&path).unwrap(), first);
}

#[test]
fn a_cpu_on_which_another_measures_is_left_to_it() {
    let allowed = std::thread::available_parallelism().unwrap().get();
    let last = last_cpu();
    // As another measurement claims it; until then one of the tests beside this one may.
    let name = SocketAddr::from_abstract_name(format!("gleaner/measure/cpu/{last}")).unwrap();
    let claim = || UnixListener::bind_addr(&name).ok();
    let _claim = wait_for("the claim on the CPU", Duration::from_secs(120), claim);
    let cache = tempfile::tempdir().unwrap();
    let output = measure(cache.path(), &["clock", "--cpu", &last.to_string(), "--json"]).output().unwrap();
    let (code, _, errors) = said(&output);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains(&format!("another gleaner measures on CPU {last}")), "{errors}");
    if allowed < 2 {
        return;
    }
    let (code, json, errors) = said(&measure(cache.path(), &["clock", "--json"]).output().unwrap());
    assert_eq!(code, Some(0), "{errors}");
    let machine = records::parse::<Machine>(json.as_bytes()).unwrap().body;
    let alone = !errors.contains("another gleaner measures on CPU");
    assert!(!alone || machine.run.cpu != last, "{errors}");
}

fn last_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.rsplit([',', '-']).next().unwrap().parse().unwrap()
}
