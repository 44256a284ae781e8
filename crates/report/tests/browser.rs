//! Pages in a real browser, Chromium without a window: no complaint on its console, its script has
//! run, every figure is there, and nothing is asked of a network. Without Chromium (Debian:
//! chromium) these tests say so and end.

use gleaner_report::{Named, Options, report};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The document as it is once its script has run, and what the browser said meanwhile.
fn opened(page: &Path) -> Option<(String, String)> {
    let found = |name: &&&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    let browser = BROWSERS.iter().find(found)?;
    let place = tempfile::tempdir().unwrap();
    let (dom, said) = (place.path().join("dom"), place.path().join("said"));
    let status = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--timeout=60000", "--dump-dom"])
        // What asks a network is refused, and the console tells of it.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run"])
        .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", place.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&dom).unwrap())
        .stderr(std::fs::File::create(&said).unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "{status}: {}", std::fs::read_to_string(&said).unwrap());
    Some((std::fs::read_to_string(dom).unwrap(), std::fs::read_to_string(said).unwrap()))
}

fn fixture(name: &str) -> Named {
    let bytes = std::fs::read(testkit::root().join("crates/records/fixtures").join(name)).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("record.json");
    if Path::new(name).extension().is_some_and(|end| end == "gz") {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        std::fs::write(&path, text).unwrap();
    } else {
        std::fs::write(&path, bytes).unwrap();
    }
    Named { name: name.to_owned(), record: records::read_any(&path).unwrap() }
}

fn tried(names: &[&str]) {
    let records: Vec<Named> = names.iter().map(|name| fixture(name)).collect();
    let made = report(&records, &Options::default());
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("report.html");
    std::fs::write(&page, &made.html).unwrap();
    let Some((dom, said)) = opened(&page) else {
        eprintln!("skipped: none of {BROWSERS:?} is there (Debian: apt install chromium)");
        return;
    };
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(complaints.is_empty(), "{names:?}: {complaints:#?}");
    assert!(!dom.contains("id=\"tools\" hidden"), "the script has not run");
    assert!(dom.contains("<button"), "no control was made");
    assert_eq!(dom.matches("<figure").count(), made.figures.len(), "{names:?}");
    for (name, _) in &made.figures {
        assert!(dom.contains(&format!("<figure id=\"{name}\"")), "{name}");
    }
}

#[test]
fn a_machine_opens_without_a_complaint() {
    tried(&["machine.v1.full-run-zen4-guest.json.gz"]);
}

#[test]
fn several_records_open_on_one_page() {
    tried(&["profile.v1.call-chain.json", "run.v1.one-scavenger.json", "plan.v1.assumed-prices.json"]);
}

#[test]
fn a_tour_opens_with_its_story_first() {
    tried(&["tour.v1.stopped.json", "machine.v1.interrupted.json", "profile.v1.call-chain.json"]);
}
