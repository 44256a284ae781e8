//! Pages of recorded and of hostile records: well formed, bound to no network, under their policy.

use gleaner_report::{self as room, Named, Options, report};
use records::AnyRecord;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

const FIXTURES: [&str; 10] = [
    "machine.v1.full-run-zen4-guest.json.gz",
    "machine.v1.interrupted.json",
    "plan.v1.assumed-prices.json",
    "profile.v1.call-chain.json",
    "profile.v1.clock-three-loops.json",
    "profile.v1.traced-join.json.gz",
    "reproduction.v1.three-claims.json",
    "run.v1.one-scavenger.json",
    "tour.v1.stopped.json",
    "machine.v1.interrupted.json", // twice: names must not clash
];

fn text_of(name: &str) -> String {
    let bytes = std::fs::read(testkit::root().join("crates/records/fixtures").join(name)).unwrap();
    let mut text = String::new();
    if Path::new(name).extension().is_some_and(|e| e == "gz") {
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text
}

fn named(name: &str, text: &str) -> Named {
    let mut body: serde_json::Value = serde_json::from_str(text).unwrap();
    let fields = body.as_object_mut().expect("an object");
    let mut header = serde_json::Map::new();
    for field in ["kind", "version", "gleaner", "created"] {
        header.insert(field.to_owned(), fields.remove(field).unwrap());
    }
    let header = serde_json::from_value(header.into()).unwrap();
    Named { name: name.to_owned(), record: AnyRecord { header, body } }
}

fn fixture(name: &str) -> Named {
    named(name, &text_of(name))
}

const VOID: [&str; 5] = ["meta", "br", "path", "rect", "image"];

/// Reads the page as XML is read: each element closed in its order, each attribute quoted and
/// unique, each `&` an entity. Gives names of elements with their attributes.
fn elements(html: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut rest = html.strip_prefix("<!DOCTYPE html>\n").unwrap_or(html);
    let (mut open, mut found): (Vec<String>, Vec<_>) = (Vec::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        rest = &rest[at + 1..];
        let end = end_of_tag(rest);
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in its order");
            continue;
        }
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "<{tag:.80}");
        assert!(!empty || VOID.contains(&name), "<{name}/>");
        found.push((name.to_owned(), attributes_of(attributes)));
        if !empty {
            open.push(name.to_owned());
        }
        if name == "script" || name == "style" {
            // What is in them is no markup.
            rest = &rest[rest.find(&format!("</{name}")).expect("it ends")..];
        }
    }
    assert_eq!((open.as_slice(), rest.trim()), ([].as_slice(), ""));
    found
}

/// The `>` outside quotes.
fn end_of_tag(text: &str) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return at,
            '<' => panic!("'<' within a tag: {text:.80}"),
            _ => {}
        }
    }
    panic!("a tag without an end: {text:.80}")
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let entity = text[at..].split(';').next().unwrap();
        assert!(["&amp", "&lt", "&gt", "&quot", "&#39"].contains(&entity), "{entity:.40}");
    }
    assert!(!text.contains('>'), "{text:.80}");
}

fn attributes_of(mut rest: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (name, behind) = rest.trim_start().split_once("=\"").unwrap_or_else(|| panic!("{rest:.80}"));
        let (value, behind) = behind.split_once('"').unwrap();
        check_text(value);
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name:.80}");
        assert!(all.iter().all(|(other, _)| other != name), "{name} twice");
        all.push((name.to_owned(), value.to_owned()));
        rest = behind;
    }
    all
}

/// What is between these, in all places.
fn between<'a>(html: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    html.split(begin).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
}

/// Base64 by its definition, apart from that of the page.
fn base64(bytes: &[u8]) -> String {
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let bits: Vec<u8> = bytes.iter().flat_map(|b| (0..8).rev().map(move |n| b >> n & 1)).collect();
    let digit = |six: &[u8]| {
        let value = (0..6).fold(0, |sum, n| sum * 2 + usize::from(six.get(n).copied().unwrap_or(0)));
        digits[value]
    };
    let mut text: String = bits.chunks(6).map(digit).collect();
    while text.len() % 4 != 0 {
        text.push('=');
    }
    text
}

/// All that must hold of any page.
fn check(html: &str) {
    let elements = elements(html);
    let mut ids = std::collections::BTreeSet::new();
    for (name, attributes) in &elements {
        for (attribute, value) in attributes {
            let refers = matches!(attribute.as_str(), "href" | "src" | "srcset" | "action" | "data");
            let inside = value.starts_with('#') || value.starts_with("data:");
            assert!(!refers || inside, "<{name} {attribute}=\"{value:.80}\"");
            assert!(!attribute.starts_with("on") && attribute != "style", "<{name} {attribute}");
            assert!(attribute != "id" || ids.insert(value.clone()), "id {value} twice");
        }
    }
    for (_, attributes) in &elements {
        let link = attributes.iter().find(|(name, value)| name == "href" && value.starts_with('#'));
        assert!(link.is_none_or(|(_, to)| ids.contains(&to[1..])), "{link:?}");
    }
    for number in ["NaN", "\"inf", " inf"] {
        let svgs = between(html, "<svg", "</svg>");
        assert!(svgs.iter().all(|svg| !svg.contains(number)), "{number}");
    }
    let style = between(html, "<style>", "</style>");
    let script = between(html, "<script>", "</script>");
    assert_eq!((style.len(), script.len()), (1, 1));
    let hash = |text: &str| format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())));
    let policy = between(html, "http-equiv=\"Content-Security-Policy\" content=\"", "\"")[0];
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(policy.contains(&format!("style-src {};", hash(style[0]))), "{policy}");
    assert!(policy.contains(&format!("script-src {};", hash(script[0]))), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    for block in between(html, "<script type=\"application/json\"", "</script>") {
        let json = block.split_once('>').unwrap().1;
        serde_json::from_str::<serde_json::Value>(json).expect("a block of JSON");
    }
}

#[test]
fn pages_are_well_formed_and_self_contained() {
    for name in FIXTURES {
        let made = report(&[fixture(name)], &Options::default());
        check(&made.html);
        let limit = 500_000;
        assert!(made.html.len() <= limit, "{name}: {}", made.html.len());
    }
    let all: Vec<_> = FIXTURES.iter().map(|name| fixture(name)).collect();
    let made = report(
        &all,
        &Options { share: true, hidden: vec!["nobody-in-particular".to_owned()], ..Options::default() },
    );
    check(&made.html);
    assert!(room::is_report(made.html.as_bytes()));
    let mut names: Vec<_> = made.figures.iter().map(|(name, _)| name).collect();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 20, "{names:?}");
}

#[test]
fn each_figure_is_a_file_of_its_own_too() {
    let made = report(&[fixture(FIXTURES[0])], &Options::default());
    for (name, svg) in &made.figures {
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
        assert!(svg.starts_with("<svg ") && svg.contains("xmlns="), "{name}");
        elements(svg);
    }
    for expected in
        ["latency", "tlb", "mlp-bursts", "rob", "stride-forward", "threads", "bandwidth", "windows"]
    {
        assert!(made.figures.iter().any(|(name, _)| *name == format!("r1-{expected}")), "{expected}");
    }
}

/// Puts this text in the place of every text that is free.
fn poison(value: &mut serde_json::Value, text: &str) {
    use serde_json::Value;
    const FREE: [&str; 20] = [
        "module",
        "function",
        "file",
        "instruction",
        "object",
        "name",
        "says",
        "what",
        "why",
        "text",
        "note",
        "detail",
        "meaning",
        "because",
        "filler",
        "arithmetic",
        "path",
        "unresolved",
        "would_help",
        "level_because",
    ];
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                if inner.is_string() && FREE.contains(&name.as_str()) {
                    *inner = text.into();
                } else {
                    poison(inner, text);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|inner| poison(inner, text)),
        _ => {}
    }
}

#[test]
fn hostile_names_do_no_harm() {
    let long = "w".repeat(20_000);
    let hostile = [
        "</script><script>alert(1)</script>",
        "\u{202e}lmth.x\" onload='alert(1)' ]]> <!-- &amp;",
        "\0\u{1b}[31m\n",
        &long,
    ];
    for name in FIXTURES {
        for text in hostile {
            let mut poisoned = fixture(name);
            poisoned.name = format!("/tmp/{text}.json");
            poison(&mut poisoned.record.body, text);
            let html = report(&[poisoned], &Options::default()).html;
            check(&html);
            assert!(!html.contains("<script>alert") && !html.contains("\u{202e}lmth"), "{name}");
        }
    }
}

/// Puts this number in the place of every figure and count.
fn exaggerate(value: &mut serde_json::Value, number: &serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let figure = ["value", "lo", "hi", "share", "below_ns", "min_ns"].contains(&name.as_str());
                let count =
                    ["samples", "stall", "count", "address", "size", "pages"].contains(&name.as_str());
                if inner.is_f64() && figure || inner.is_u64() && count && number.is_u64() {
                    *inner = number.clone();
                } else {
                    exaggerate(inner, number);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|inner| exaggerate(inner, number)),
        _ => {}
    }
}

#[test]
fn absurd_numbers_do_no_harm() {
    let numbers =
        [serde_json::json!(1e308), serde_json::json!(-1e308), serde_json::json!(0.0), u64::MAX.into()];
    for name in FIXTURES {
        for number in &numbers {
            let mut absurd = fixture(name);
            exaggerate(&mut absurd.record.body, number);
            check(&report(&[absurd], &Options::default()).html);
        }
    }
}

#[test]
fn what_is_missing_says_why() {
    let machine = report(&[fixture("machine.v1.interrupted.json")], &Options::default()).html;
    assert!(machine.contains("it was not asked for"));
    assert!(!machine.contains("<figure"), "never an empty plot");
    let full = report(&[fixture(FIXTURES[0])], &Options::default()).html;
    assert!(full.contains("Not possible on this host: "), "numa needs two nodes");
}

#[test]
fn a_verdict_says_first_what_is_missing() {
    let made = report(&[fixture(FIXTURES[0])], &Options::default()).html;
    let verdict = between(&made, "<div class=\"verdict ", "</div>")[0];
    let missing = verdict.find("<strong>Missing</strong>: numa (not possible on this host)");
    assert!(missing < verdict.find("<strong>Quiet</strong>") && missing.is_some(), "{verdict}");
}

#[test]
fn verdicts_of_several_records_come_first_and_contents_collapse() {
    let one = report(&[fixture(FIXTURES[0])], &Options::default()).html;
    assert!(!one.contains("id=\"verdicts\""));
    let names = [FIXTURES[0], "profile.v1.call-chain.json", "machine.v1.interrupted.json"];
    let html = report(&names.map(fixture), &Options::default()).html;
    check(&html);
    let (verdicts, first) = (html.find("<article id=\"verdicts\">"), html.find("<article id=\"r1\">"));
    assert!(verdicts.is_some() && verdicts < first);
    let article = between(&html, "<article id=\"verdicts\">", "</article>")[0];
    assert_eq!(article.matches("class=\"verdict ").count(), 3, "{article}");
    let contents = between(&html, "<nav", "</nav>")[0];
    assert_eq!(contents.matches("<li><details><summary>").count(), 3, "{contents}");
}

#[test]
fn a_machine_shows_what_the_model_makes_of_it() {
    let made = report(&[fixture(FIXTURES[0])], &Options::default());
    for expected in ["r1-model", "r1-model-residuals"] {
        assert!(made.figures.iter().any(|(name, _)| name == expected), "{expected}");
    }
    assert!(made.html.contains("Levels of the model") && made.html.contains("(modelled)"));
    assert!(made.html.contains("a step of chains side by side"));
}

#[test]
fn a_bandwidth_over_time_has_its_shares_and_functions_beside_it() {
    let made = report(&[fixture("profile.v1.traced-join.json.gz")], &Options::default());
    assert!(made.html.contains("data-brush=\"GB/s\""));
    let table =
        between(&made.html, "<caption>What memory reads and writes over time</caption>", "</table>")[0];
    // No record of the machine told its maximum, and that is said once.
    assert!(table.contains("mostly for") && !table.contains("of the maximum"));
    assert!(made.html.contains("How near that is to the maximum: no machine record tells the maximum"));
    let columns = table.matches("<th ").count();
    let rows: Vec<&str> = between(table, "<tr>", "</tr>")[1..].to_vec();
    assert!(rows.len() > 3 && rows.iter().all(|row| row.matches("<td").count() == columns), "{rows:?}");
}

#[test]
fn a_tour_tells_its_steps_and_leads_to_their_records() {
    let mut tour = fixture("tour.v1.stopped.json");
    let profile =
        Named { name: "gleaner-tour/profile.json".to_owned(), ..fixture("profile.v1.call-chain.json") };
    let html = report(&[tour.clone(), profile], &Options::default()).html;
    check(&html);
    assert!(html.contains("<title>Gleaner report: a program that waits for memory</title>"));
    let steps = tour.record.body["steps"].as_array_mut().unwrap();
    for step in steps.iter() {
        assert!(html.contains(step["title"].as_str().unwrap()), "{}", step["title"]);
    }
    assert!(html.contains("<a href=\"#r2\">All that was found in this step</a>"));
    assert!(html.contains("It was stopped before its end") && html.contains("Not possible here: "));
    // A step that could not be carried out says so in its place, and has no figure.
    let figures = html.matches("<figure").count();
    steps[2]["outcome"] =
        serde_json::json!({"is": "not_run", "why": "no FSGSBASE", "would_help": "Linux 5.9"});
    steps[2]["figures"] = serde_json::json!([]);
    steps[2]["says"] = serde_json::json!([]);
    let html = report(&[tour], &Options::default()).html;
    check(&html);
    assert!(html.contains("Not possible here: no FSGSBASE. What would help: Linux 5.9."));
    assert!(html.matches("<figure").count() < figures && !html.contains("#r2"));
}

#[test]
fn records_of_one_kind_stand_beside_each_other() {
    let profiles = ["profile.v1.call-chain.json", "profile.v1.clock-three-loops.json"].map(fixture);
    let html = report(&profiles, &Options::default()).html;
    check(&html);
    assert!(html.contains("Profiles side by side") && !html.contains("Machines side by side"));
    let machines = report(&[fixture(FIXTURES[0]), fixture(FIXTURES[1])], &Options::default()).html;
    assert!(machines.contains("<td>not measured</td>"), "the second one was interrupted");
    assert!(!report(&profiles[..1], &Options::default()).html.contains("side by side"));
}

#[test]
fn a_shared_page_names_nobody() {
    let mut profile = fixture("profile.v1.call-chain.json");
    poison(&mut profile.record.body, "/Users/judith/secret/a.c on build7");
    profile.name = "/Users/judith/p.json".to_owned();
    let options = Options { share: true, hidden: vec!["build7".to_owned()], ..Options::default() };
    let html = report(&[profile.clone()], &options).html;
    check(&html);
    assert!(!html.contains("judith") && !html.contains("build7"));
    assert!(html.contains("~/secret/a.c on …"));
    let packed = between(&html, "base64,", "\"")[0];
    assert!(!packed.is_empty());
    let open = report(&[profile], &Options::default()).html;
    assert!(open.contains("/Users/judith/secret/a.c"));
}
