//! Pages in a real browser, Chromium without a window: no complaint on its console, its script has
//! run, every figure is there, and nothing is asked of a network. Without Chromium (Debian:
//! chromium) these tests say so and end.

mod fixtures;

use fixtures::fixture;
use gleaner_report::{Named, Options, report};
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

/// Selects a time on the plot of a traced profile as users do, and leaves what the page says then
/// in an element of its own.
const SELECTING: &str = "<script>
Element.prototype.setPointerCapture = () => {};
const figure = document.querySelector('svg[data-brush]').closest('figure');
const svg = figure.querySelector('svg'), region = svg.parentElement;
const shown = () => [...figure.querySelectorAll('tbody tr')].filter((row) => !row.hidden).length;
const said = () => figure.querySelector('.selected').textContent;
const all = shown(), out = [];
const press = (key, shiftKey) => region.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey }));
press('Home');
press('ArrowRight', true);
press('ArrowRight', true);
out.push('keys ' + shown(), said(), 'open ' + figure.querySelector('details').open);
press('Escape');
out.push('escape ' + (all - shown()));
const box = svg.getBoundingClientRect();
const point = (type, share) => svg.dispatchEvent(new PointerEvent(type, { pointerType: 'mouse',
  clientX: box.left + (58 + share * 518) / 600 * box.width, clientY: box.top + 50, bubbles: true }));
point('pointerdown', 0.25);
point('pointermove', 0.5);
point('pointerup', 0.75);
out.push('dragged ' + (shown() > 1 && shown() < all), 'shaded ' + (+figure.querySelector('.brush').getAttribute('width') > 50));
const [begin] = figure.querySelectorAll('input');
[...figure.querySelectorAll('button')].find((b) => b.textContent === 'Whole run').click();
begin.value = begin.max;
begin.dispatchEvent(new Event('input'));
out.push('slider ' + shown());
const told = document.createElement('p');
told.id = 'told';
told.textContent = out.join(' / ');
document.body.append(told);
</script>";

#[test]
fn a_time_is_selected_by_keys_pointer_and_slider() {
    let made = report(&[fixture("profile.v1.traced-join.json.gz")], &Options::default());
    // The page's own policy lets no other script run.
    let (before, policy) = made.html.split_once("<meta http-equiv=").unwrap();
    let (_, behind) = policy.split_once("/>").unwrap();
    let html = format!("{before}{}", behind.replacen("</body>", &format!("{SELECTING}</body>"), 1));
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("report.html");
    std::fs::write(&page, html).unwrap();
    let Some((dom, said)) = opened(&page) else { return };
    let told = dom.split("<p id=\"told\">").nth(1).unwrap_or_else(|| panic!("{said}"));
    let told = told.split("</p>").next().unwrap();
    for expected in [
        "keys 3 / Around ",
        "; mostly for ",
        "open true",
        "escape 0",
        "dragged true",
        "shaded true",
        "slider 1",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn a_traced_profile_opens_without_a_complaint() {
    tried(&["profile.v1.traced-join.json.gz"]);
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
