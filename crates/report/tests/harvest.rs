//! Pages of harvests: throughput against latency, where each program was, and what scavengers left
//! their twins for.

mod fixtures;

use fixtures::fixture;
use gleaner_report::{Named, Options, report};
use serde_json::{Value, json};

fn exact(value: f64, unit: &str) -> Value {
    around(value, value, value, unit)
}

fn around(value: f64, lo: f64, hi: f64, unit: &str) -> Value {
    json!({"value": value, "lo": lo, "hi": hi, "unit": unit, "basis": "measured"})
}

/// The recorded harvest with a slowdown and work of all, so that it has a point.
fn harvest(name: &str, allowed: f64, slowdown: f64, work: f64) -> Named {
    let mut run = fixture("run.v1.one-scavenger.json");
    name.clone_into(&mut run.name);
    let body = &mut run.record.body;
    body["bounds"]["max_slowdown"] = exact(allowed, "ratio");
    body["slowdown"] = json!({
        "share": around(slowdown, slowdown - 0.01, slowdown + 0.01, "ratio"),
        "watched": exact(4.0, "s"),
        "with_guests": exact(3.0, "s"),
        "samples": 12,
    });
    body["work"] = around(work, work - 0.1, work + 0.1, "ratio");
    run
}

fn page(runs: &[Named]) -> String {
    report(runs, &Options::default()).html
}

/// The figure of this id, to its end.
fn figure<'a>(html: &'a str, id: &str) -> &'a str {
    let (_, behind) = html.split_once(&format!("<figure id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"));
    behind.split("</figure>").next().unwrap()
}

#[test]
fn a_harvest_has_its_point_and_its_bound() {
    let html = page(&[harvest("/tmp/run.json", 0.05, 0.04, 1.62)]);
    let figure = figure(&html, "r1-throughput");
    assert!(figure.contains("1.62 times the work of one program on a CPU, for a slowdown of 4%"));
    assert!(figure.contains("allowed: 5%") && figure.contains("A  chase beside chase, 5% allowed"));
    assert_eq!(figure.matches("whisker interval").count(), 1);
    assert!(figure.contains("<td>A</td>") && figure.contains("1.62 [1.52, 1.72]"), "{figure}");
}

#[test]
fn harvests_of_the_same_programs_are_a_line_from_the_tightest_bound_on() {
    let loose = harvest("loose.json", 0.5, 0.3, 2.4);
    let tight = harvest("tight.json", 0.05, 0.04, 1.6);
    let mut other = harvest("other.json", 0.1, 0.08, 1.2);
    other.record.body["scavengers"][0]["command"] = json!(["/opt/bench/scan"]);
    let html = page(&[loose, tight, other]);
    let figure = figure(&html, "beside-throughput");
    let places = ["A  2: tight.json", "B  1: loose.json", "C  3: other.json"].map(|name| figure.find(name));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    let svg = figure.split("</svg>").next().unwrap();
    assert_eq!(svg.matches("class=\"line\"").count(), 1, "two of the same pair are joined");
    for allowed in ["allowed: 5%", "allowed: 10%", "allowed: 50%"] {
        assert!(svg.contains(allowed), "{allowed}");
    }
}

#[test]
fn a_harvest_without_figures_has_no_point_and_says_why() {
    let mut blind = harvest("blind.json", 0.05, 0.04, 1.6);
    blind.record.body["work"] = json!({"unresolved": "no guest <ran>"});
    let html = page(&[blind.clone()]);
    assert!(!html.contains("r1-throughput\""));
    assert!(html.contains("blind.json has no point: the work of all: no guest &lt;ran&gt;."));
    let both = page(&[harvest("seen.json", 0.05, 0.04, 1.6), blind]);
    assert!(figure(&both, "beside-throughput").contains("seen.json"));
    assert!(both.contains("2: blind.json has no point"));
}

#[test]
fn programs_stand_where_they_spent_their_time() {
    let mut run = harvest("run.json", 0.05, 0.04, 1.6);
    let times = &mut run.record.body["scavengers"][0]["times"];
    *times = json!({
        "aboard": exact(3.0, "s"), "at_home": exact(1.5, "s"), "running": exact(0.5, "s"),
        "waiting": exact(0.25, "s"), "lent": exact(0.1, "s"),
    });
    let html = page(&[run.clone()]);
    let drawn = figure(&html, "r1-ran");
    for said in [
        "the primary without guests: 1 s",
        "the primary with guests aboard: 3 s",
        "a guest aboard the primary, or aboard another thread: 3 s",
        "at home, on a CPU: 0.5 s",
        "waiting for a CPU at home; threads: to go aboard or return: 0.25 s",
        "at home otherwise: asleep, or not known: 0.75 s",
    ] {
        assert!(drawn.contains(&format!("<title>{said}</title>")), "{said}: {drawn}");
    }
    // Letters without a gap, each in the legend.
    let known: String = ('A'..='Z').filter(|c| drawn.contains(&format!(">{c}  "))).collect();
    assert_eq!(known, "ABCDEFG");
    // Times that nobody took are no part.
    run.record.body["scavengers"][0]["times"]["at_home"] = json!({"unresolved": "it never left"});
    run.record.body["slowdown"]["watched"] = json!({"unresolved": "nothing was watched"});
    let html = page(&[run]);
    let drawn = figure(&html, "r1-ran");
    assert!(!drawn.contains("at home, on a CPU:") && !drawn.contains("the primary without guests:"));
}

#[test]
fn what_a_scavenger_went_home_for_is_listed() {
    let mut run = harvest("run.json", 0.05, 0.04, 1.6);
    assert!(!page(&[run.clone()]).contains("Where scavengers left their twins"));
    run.record.body["scavengers"][0]["leaves"] = json!([
        {"file": "/usr/lib/libc.so.6", "function": "write", "address": 4096, "offset": 16,
         "instruction": "syscall <1>", "count": 7000},
        {"file": "/opt/bench/chase", "address": 8192, "offset": 0, "instruction": "call rax", "count": 12},
    ]);
    let html = page(&[run]);
    let (_, table) = html.split_once("<caption>Where scavengers left their twins, and went home").unwrap();
    let table = table.split("</table>").next().unwrap();
    for cell in
        ["7000", "chase 1", "write", "libc.so.6+0x1000", "syscall &lt;1&gt;", "chase+0x2000", "call rax"]
    {
        assert!(table.contains(cell), "{cell}: {table}");
    }
}
