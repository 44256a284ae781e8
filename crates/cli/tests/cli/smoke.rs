//! Each verb once, as a user would call it: a few seconds, for `make check`. What else verbs do is
//! tried by the other modules.
//!
//! To add a verb: its test here, and its name in [`VERBS`].

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Place, text, wait_until};

/// What is tried here: each verb of `gleaner --help`.
const VERBS: [&str; 20] = [
    "tour",
    "doctor",
    "measure",
    "probe",
    "profile",
    "top",
    "speed",
    "run",
    "harvest",
    "twin",
    "proof",
    "annotate",
    "show",
    "export",
    "sites",
    "report",
    "model",
    "compare",
    "predict",
    "reproduce",
];

/// Chases through a small list, so that there is a site, and ends with 7.
const PROGRAM: &str = r#"
#include <stdio.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(void) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    gone_through = chase(ring, 3000000);
    puts("chased");
    return 7;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn gleaner(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(arguments);
    command
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn each_verb_is_tried() {
    let help = done(&gleaner(&place(), &["--help"]).output().unwrap());
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = commands.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let verbs: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    // `help` is clap's own; terminal.rs asks it for each verb.
    assert_eq!(verbs.split_last(), Some((&"help", &VERBS[..])));
}

/// All of it takes two minutes and more; the beginning is enough here.
#[test]
fn tour() {
    let place = place();
    let mut child = gleaner(&place, &["tour", "--directory", "tour"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told: Vec<String> = lines.take_while(|line| !line.starts_with("   $ gleaner measure")).collect();
    assert!(told[0].starts_with("A program that waits for memory"), "{told:?}");
    assert!(testkit::kill("INT", &child.id().to_string()));
    wait_until("the tour ends by SIGINT", Duration::from_secs(60), || child.try_wait().unwrap().is_some());
    assert!(place.at("tour/join").is_file() && !place.at("tour/report.html").exists());
}

#[test]
fn doctor() {
    let told = done(&gleaner(&place(), &["doctor"]).output().unwrap());
    assert!(told.contains("harvest"), "{told}");
}

#[test]
fn measure_and_show() {
    let place = place();
    let measure = ["measure", "clock", "--quick", "-q", "-o", "machine.json"];
    done(&gleaner(&place, &measure).output().unwrap());
    assert!(!done(&gleaner(&place, &["show", "machine.json"]).output().unwrap()).is_empty());
}

#[test]
fn probe() {
    let place = place();
    let probe = ["probe", "--budget", "3s", "--max-memory", "128M", "-q", "-o", "probe.json"];
    let told = done(&gleaner(&place, &probe).output().unwrap());
    assert!(told.contains("prefetch_gain") && told.contains("slow or missing DIMM"), "{told}");
    let rows = ["export", "--format", "jsonl", "probe.json"];
    assert!(done(&gleaner(&place, &rows).output().unwrap()).contains("\"memory_latency.ns\""));
}

#[test]
fn speed_and_run() {
    let place = place();
    let cached = |arguments: &[&str]| {
        let mut command = gleaner(&place, arguments);
        command.env("XDG_CACHE_HOME", place.at("cache")).output().unwrap()
    };
    let told = done(&cached(&["speed", "-q", "--", "./p"]));
    assert!(told.starts_with("leave ./p as it is"), "{told}");
    let ran = cached(&["run", "--", "./p"]);
    assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(7), "chased\n".to_owned()));
}

#[test]
fn top() {
    let place = place();
    let output = gleaner(&place, &["top", "--batch", "-n", "1", "--interval", "500ms"]).output().unwrap();
    match output.status.code() {
        Some(0) => assert!(text(&output.stdout).contains("gleaner itself"), "{}", text(&output.stdout)),
        Some(3) => assert!(text(&output.stderr).contains("CAP_PERFMON")),
        _ => panic!("{}", text(&output.stderr)),
    }
}

#[test]
fn profile_and_annotate() {
    let place = place();
    let output = gleaner(&place, &["profile", "-o", "profile.json", "--", "./p"]).output().unwrap();
    match output.status.code() {
        Some(1) => {
            let profile = records::read::<records::profile::Profile>(&place.at("profile.json"));
            let ended = profile.expect("a record").body.program.ended;
            assert_eq!(ended, records::profile::ProgramEnd::Exited { code: 7 });
            let told = done(&gleaner(&place, &["annotate", "profile.json"]).output().unwrap());
            assert!(told.contains("of CPU time"), "{told}");
        }
        Some(3) => assert!(text(&output.stderr).contains("perf_event")),
        _ => panic!("{}", text(&output.stderr)),
    }
}

#[test]
fn export() {
    let record = testkit::root().join("crates/records/fixtures/profile.v1.call-chain.json");
    let record = record.to_str().expect("a path that is text");
    let export = ["export", "--format", "folded", record];
    assert!(done(&gleaner(&place(), &export).output().unwrap()).contains(";main;serve;lookup "));
}

#[test]
fn sites() {
    let place = place();
    let told = done(&gleaner(&place, &["sites", "p"]).output().unwrap());
    let in_chase = |row: &&str| row.contains(",load,chain,chase");
    assert!(
        told.starts_with("build_id,file,from_offset,") && told.lines().any(|row| in_chase(&row)),
        "{told}"
    );
}

#[test]
fn report() {
    let record = testkit::root().join("crates/records/fixtures/profile.v1.call-chain.json");
    let record = record.to_str().expect("a path that is text");
    assert!(done(&gleaner(&place(), &["report", "-o", "-", record]).output().unwrap()).contains("<svg "));
}

/// Puts the record of a whole run there.
fn recorded_machine(place: &Place) {
    let whole = testkit::root().join("crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz");
    let record = Command::new("gzip").arg("-dc").arg(whole).output().unwrap();
    std::fs::write(place.at("machine.json"), record.stdout).unwrap();
}

#[test]
fn reproduce() {
    let place = place();
    recorded_machine(&place);
    let list = done(&gleaner(&place, &["reproduce"]).output().unwrap());
    assert!(list.contains("lat_mem_rd") && list.contains("--quick"), "{list}");
    let claims = done(&gleaner(&place, &["reproduce", "mlp", "--list"]).output().unwrap());
    assert!(claims.contains("we observe a cliff and the number of cycles doubles"), "{claims}");
    let run = ["reproduce", "mlp", "--machine", "machine.json", "-o", "mlp.json"];
    let told = done(&gleaner(&place, &run).output().unwrap());
    assert!(told.contains("cliff-doubles") && told.contains(" reproduced"), "{told}");
    let record = records::read::<records::reproduction::Reproduction>(&place.at("mlp.json"));
    let claims = record.expect("a record").body.claims;
    assert!(told.contains(&format!("{} claims", claims.len())), "{told}");
    let json = done(
        &gleaner(&place, &["reproduce", "lat_mem_rd", "--machine", "machine.json", "--json"])
            .output()
            .unwrap(),
    );
    assert!(records::parse::<records::reproduction::Reproduction>(json.as_bytes()).is_ok(), "{json}");
}

#[test]
fn model() {
    let (place, fixtures) = (place(), testkit::root().join("crates/records/fixtures"));
    recorded_machine(&place);
    let text = done(&gleaner(&place, &["model", "machine.json"]).output().unwrap());
    assert!(text.contains("windows, 4K pages") && text.contains("areas held back"), "{text}");
    let json = done(&gleaner(&place, &["model", "--json", "machine.json"]).output().unwrap());
    let fits = serde_json::from_str::<serde_json::Value>(&json).unwrap();
    assert!(fits["fits"][0]["levels"][0]["cost"]["value"].as_f64().unwrap() > 0.0, "{json}");
    // Another record has nothing to fit, and says what would have.
    let partial = fixtures.join("machine.v1.interrupted.json");
    let output = gleaner(&place, &["model", partial.to_str().unwrap()]).output().unwrap();
    assert!(
        output.status.success() && testkit::text(&output.stderr).contains("nothing to fit"),
        "{output:?}"
    );
}

#[test]
fn compare() {
    let place = place();
    for n in ["1", "2"] {
        let output = format!("{n}.json");
        done(&gleaner(&place, &["measure", "clock", "--quick", "-q", "-o", &output]).output().unwrap());
    }
    let told = done(&gleaner(&place, &["compare", "1.json", "2.json"]).output().unwrap());
    assert!(told.contains("core clock") && told.contains("Gate: insufficient"), "{told}");
}

#[test]
fn predict() {
    let place = place();
    recorded_machine(&place);
    let pattern = "chase(64M); rand(1M, n=1K) || seq(2G); stride(256, 16M); window(4K, 1M)";
    let predict = |more: &[&str]| {
        let arguments = [&["predict", "--machine", "machine.json", pattern], more].concat();
        done(&gleaner(&place, &arguments).output().unwrap())
    };
    let told = predict(&[]);
    assert!(told.contains("in all") && told.contains("DRAM") && told.contains("\nnext: "), "{told}");
    let value = serde_json::from_str::<serde_json::Value>(&predict(&["--json"])).unwrap();
    let bounds = ["lo", "value", "hi"].map(|bound| value["time"][bound].as_f64().unwrap());
    assert!(bounds.is_sorted() && bounds[0] > 0.0, "{bounds:?}");
    assert_eq!(
        (value["time"]["unit"].as_str(), value["parts"][1]["accesses"].as_f64()),
        (Some("ns"), Some(1e3))
    );
    assert_eq!(value["levels"][0]["level"], "L1");
    // Another machine, here the same.
    let other = serde_json::from_str::<serde_json::Value>(&predict(&["--json", "--on", "machine.json"]));
    assert_eq!(other.unwrap()["on"]["times_as_long"]["value"].as_f64(), Some(1.0));
    // Two runs, here the same, and how much they differ.
    let runs = predict(&["--machine", "machine.json"]);
    assert!(runs.contains("by 2 runs, of which the slowest says 0% more"), "{runs}");
    // The place of an error in the pattern is told.
    let output =
        gleaner(&place, &["predict", "--machine", "machine.json", "chase(64)); seq"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("at ')' (column 10)"), "{}", text(&output.stderr));
}

#[test]
fn twin_and_proof() {
    let place = place();
    done(&gleaner(&place, &["twin", "--identity", "-q", "-o", "twin", "p"]).output().unwrap());
    done(&gleaner(&place, &["proof", "p", "twin"]).output().unwrap());
    let output = place.command(place.at("twin")).output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("chased\n", Some(7)));
}

#[test]
fn harvest() {
    let place = place();
    let options = ["-q", "--scavenger", "./p", "--scavenger-out", "said", "--record", "run.json"];
    let output = place.harvest(&[&options[..], &["--", "./p"]].concat()).output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("chased\n", Some(7)));
    let run = records::read::<records::run::Run>(&place.at("run.json")).expect("a record").body;
    assert_eq!(run.scavengers.len(), 1);
}
