//! Each control of a page, by the keys and the pointer of a real browser, and what is told of the
//! page to screen readers. Without Chromium these tests say so and end.

mod devtools;
mod fixtures;

use devtools::Browser;
use fixtures::fixture;
use gleaner_report::{Options, report};
use std::io::Read;

/// Plots and bars of a machine; a flame graph; a time to be selected.
const RECORDS: [&str; 3] = [
    "machine.v1.full-run-zen4-guest.json.gz",
    "profile.v1.call-chain.json",
    "profile.v1.traced-join.json.gz",
];

const LATENCY: &str = "document.getElementById('r1-latency')";
const FLAME: &str = "document.getElementById('r2-flame-time')";

fn opened() -> Option<Browser> {
    Browser::open(&report(&RECORDS.map(fixture), &Options::default()).html)
}

/// The button of these words within an element.
fn button(within: &str, words: &str) -> String {
    format!("[...{within}.querySelectorAll('button')].find((b) => b.textContent === '{words}')")
}

const BACKGROUND: &str = "getComputedStyle(document.body).backgroundColor";

#[test]
fn the_theme_follows_the_desktop_until_it_is_switched() {
    let Some(mut browser) = opened() else { return };
    browser.prefers("light");
    let light = browser.text(BACKGROUND);
    browser.prefers("dark");
    let dark = browser.text(BACKGROUND);
    assert_ne!(light, dark);
    let switch = button("document", "Dark or light");
    browser.click(&switch);
    assert_eq!(browser.text(BACKGROUND), light, "switched on a dark desktop");
    browser.prefers("light");
    browser.click(&switch);
    assert_eq!(browser.text(BACKGROUND), dark, "switched on a light desktop");
    browser.check_quiet();
}

#[test]
fn intervals_are_switched_off_and_on() {
    let Some(mut browser) = opened() else { return };
    let switch = button("document", "Intervals");
    let shown = "[...document.querySelectorAll('svg .band, svg .interval')]
        .filter((e) => getComputedStyle(e).display !== 'none').length";
    let all = browser.value(shown).as_u64().unwrap();
    assert!(all > 20, "{all}");
    // Bars have whiskers, plots have bands: both go.
    assert!(browser.holds("document.querySelectorAll('svg .interval').length > 3"));
    for (left, pressed) in [(0, "false"), (all, "true")] {
        browser.click(&switch);
        assert_eq!(browser.value(shown).as_u64(), Some(left));
        assert_eq!(browser.text(&format!("{switch}.getAttribute('aria-pressed')")), pressed);
    }
    browser.check_quiet();
}

#[test]
fn tables_open_and_close_and_are_sorted_by_a_click_on_a_head() {
    let Some(mut browser) = opened() else { return };
    let open = "document.querySelectorAll('main details[open]').length";
    let all = browser.value("document.querySelectorAll('main details').length");
    assert_eq!(browser.value(open), 0);
    browser.click(&button("document", "Open all tables"));
    assert_eq!(browser.value(open), all);
    let table = format!("{LATENCY}.querySelector('table')");
    let column = |n: u32| {
        format!(
            "[...{table}.tBodies[0].rows].map((r) => r.cells[{n}])
             .map((c) => c.dataset.v === undefined ? parseFloat(c.textContent) : +c.dataset.v)
             .filter((v) => !Number.isNaN(v))"
        )
    };
    for n in [0, 1] {
        let head = format!("{table}.querySelectorAll('th')[{n}]");
        for (order, sign) in [("descending", ">="), ("ascending", "<=")] {
            browser.click(&format!("{head}.firstChild"));
            assert_eq!(browser.text(&format!("{head}.getAttribute('aria-sort')")), order);
            let sorted = format!("{}.every((v, k, all) => k === 0 || all[k - 1] {sign} v)", column(n));
            assert!(browser.holds(&sorted), "column {n}, {order}: {}", browser.value(&column(n)));
        }
        assert_eq!(browser.value(&format!("{table}.querySelectorAll('[aria-sort]').length")), 1);
    }
    assert!(browser.holds(&format!("{}.length > 10", column(0))));
    browser.click(&button("document", "Close all tables"));
    assert_eq!(browser.value(open), 0);
    browser.check_quiet();
}

#[test]
fn an_axis_becomes_linear_and_logarithmic_again() {
    let Some(mut browser) = opened() else { return };
    let switch = button(LATENCY, "Logarithmic");
    let ticks = format!("[...{LATENCY}.querySelectorAll('.yg text')].map((t) => t.textContent).join(' ')");
    // How far the second value of the axis stands from where it would be on a linear one.
    let bent = format!(
        "(() => {{ const t = [...{LATENCY}.querySelectorAll('.yg text')]
           .map((t) => [+t.textContent, +t.getAttribute('y')]);
         const [a, m, z] = [t[0], t[1], t[t.length - 1]];
         return (m[1] - a[1]) / (z[1] - a[1]) - (m[0] - a[0]) / (z[0] - a[0]); }})()"
    );
    let line = format!("{LATENCY}.querySelector('.line').getAttribute('d')");
    let (before, drawn) = (browser.text(&ticks), browser.text(&line));
    assert!(browser.value(&bent).as_f64().unwrap() > 0.1, "logarithmic at first");
    browser.click(&switch);
    assert!(browser.value(&bent).as_f64().unwrap().abs() < 0.01, "linear");
    assert_ne!(browser.text(&line), drawn);
    assert_eq!(browser.text(&format!("{switch}.getAttribute('aria-pressed')")), "false");
    browser.click(&switch);
    assert_eq!(browser.text(&ticks), before);
    browser.check_quiet();
}

#[test]
fn the_crosshair_reads_the_table_by_pointer_and_by_keys() {
    let Some(mut browser) = opened() else { return };
    let tip = format!("{LATENCY}.querySelector('.tip')");
    let hidden = format!("{tip}.hidden && !{LATENCY}.querySelector('.cross').hasAttribute('d')");
    assert!(browser.holds(&hidden));
    // The row whose x the tip names has each of the figures that it lists.
    let agrees = format!(
        "(() => {{ const [x, ...figures] = [...{tip}.children].map((e) => e.textContent);
         const row = [...{LATENCY}.querySelectorAll('tbody tr')].find((r) => r.cells[0].textContent === x);
         const cells = [...row.cells].map((c) => c.textContent);
         return figures.length > 0 && figures.every((f) => cells.includes(f.slice(f.lastIndexOf(': ') + 2))); }})()"
    );
    let svg = format!("{LATENCY}.querySelector('svg')");
    let named = format!("{tip}.firstChild.textContent");
    browser.hover(&svg, (0.3, 0.3));
    assert!(
        !browser.holds(&hidden) && browser.holds(&agrees),
        "{}",
        browser.text(&format!("{tip}.textContent"))
    );
    let left = browser.text(&named);
    browser.hover(&svg, (0.7, 0.3));
    assert!(browser.holds(&agrees));
    assert_ne!(browser.text(&named), left, "it follows the pointer");
    browser.hover("document.querySelector('h1')", (0.5, 0.5));
    assert!(browser.holds(&hidden));
    browser.value(&format!("{svg}.parentElement.focus()"));
    let rows = format!("{LATENCY}.querySelectorAll('tbody tr')");
    for (key, code, row) in [("Home", 36, "0"), ("ArrowRight", 39, "1"), ("End", 35, "rows.length - 1")] {
        browser.key(key, code);
        let first = format!("((rows) => rows[{row}].cells[0].textContent)([...{rows}])");
        assert_eq!(browser.text(&named), browser.text(&first), "{key}");
        assert!(browser.holds(&agrees), "{key}");
    }
    browser.key("Escape", 27);
    assert!(browser.holds(&hidden));
    browser.check_quiet();
}

#[test]
fn a_time_is_selected_by_dragging_and_by_a_slider() {
    let Some(mut browser) = opened() else { return };
    let figure = "document.querySelector('svg[data-brush]').closest('figure')";
    let shown = format!("[...{figure}.querySelectorAll('tbody tr')].filter((r) => !r.hidden).length");
    let all = browser.value(&shown).as_u64().unwrap();
    browser.drag(&format!("{figure}.querySelector('svg')"), (0.4, 0.3), (0.7, 0.3));
    let some = browser.value(&shown).as_u64().unwrap();
    assert!(0 < some && some < all, "{some} of {all}");
    assert!(browser.text(&format!("{figure}.querySelector('.selected').textContent")).starts_with("Around "));
    browser.click(&button(figure, "Whole run"));
    assert_eq!(browser.value(&shown).as_u64(), Some(all));
    browser.value(&format!("{figure}.querySelector('input').focus()"));
    browser.key("ArrowRight", 39);
    assert_eq!(browser.value(&shown).as_u64(), Some(all - 1));
    browser.check_quiet();
}

#[test]
fn a_flame_graph_zooms_by_click_and_by_keys() {
    let Some(mut browser) = opened() else { return };
    let frames = format!("[...{FLAME}.querySelectorAll('.f')]");
    let wide = |frame: &str| format!("+{frame}.querySelector('rect').getAttribute('width')");
    let narrow =
        format!("{frames}.filter((f) => {} < 500)[0]", "+f.querySelector('rect').getAttribute('width')");
    browser.value(&format!("globalThis.narrow = {narrow}"));
    let before = browser.value(&wide("narrow")).as_f64().unwrap();
    let hidden = format!("{frames}.filter((f) => f.getAttribute('display') === 'none').length");
    browser.click("narrow.querySelector('rect')");
    assert!(browser.value(&wide("narrow")).as_f64().unwrap() > 950.0);
    assert!(browser.value(&hidden).as_u64() > Some(0), "what stands beside it is hidden");
    browser.click(&button(FLAME, "Whole graph"));
    assert!((browser.value(&wide("narrow")).as_f64().unwrap() - before).abs() < 1.0);
    assert_eq!(browser.value(&hidden), 0);
    browser.value("narrow.focus()");
    browser.key("Enter", 13);
    assert!(browser.value(&wide("narrow")).as_f64().unwrap() > 950.0);
    browser.key("Escape", 27);
    assert_eq!(browser.value(&hidden), 0);
    let first = format!("{FLAME}.querySelector('.f[tabindex=\"0\"]')");
    browser.value(&format!("{first}.focus()"));
    browser.key("ArrowUp", 38);
    assert!(
        browser.holds(&format!(
            "{frames}.includes(document.activeElement) && document.activeElement !== {first}"
        ))
    );
    browser.check_quiet();
}

#[test]
fn a_flame_graph_finds_functions() {
    let Some(mut browser) = opened() else { return };
    let frames = format!("[...{FLAME}.querySelectorAll('.f')]");
    let search = format!("{FLAME}.closest('figure').querySelector('input[type=search]')");
    let marked = format!("{frames}.filter((f) => f.classList.contains('found')).length");
    let told = format!("{FLAME}.closest('figure').querySelector('[role=status]').textContent");
    let find = |browser: &mut Browser, text: &str| {
        browser.value(&format!("{search}.value = {text:?}, {search}.dispatchEvent(new Event('input'))"));
    };
    let all = browser.value(&format!("{frames}.length")).as_u64().unwrap();
    let root = browser.value(&format!(
        "{frames}.map((f) => [f, +f.querySelector('rect').getAttribute('width')]).sort((a, b) => b[1] - a[1])[0][0]\
         .querySelector('title').textContent.split(/[: ]/)[0].toUpperCase()"
    ));
    find(&mut browser, root.as_str().unwrap());
    let found = browser.value(&marked).as_u64().unwrap();
    assert!((1..=all).contains(&found), "{found} of {all}");
    let says = browser.value(&told);
    assert!(says.as_str().unwrap().starts_with(&format!("{found} frames, ")), "{says}");
    find(&mut browser, "no such function");
    assert_eq!(browser.value(&marked), 0);
    assert_eq!(browser.value(&told), "0 frames, 0.0% of the samples");
    find(&mut browser, "");
    assert_eq!(browser.value(&told), "");
    browser.check_quiet();
}

#[test]
fn a_record_is_saved_from_its_page() {
    let Some(mut browser) = opened() else { return };
    let (name, bytes) = browser.saved("document.querySelector('#r2 a[download]')");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kept = fixture(RECORDS[1]).record;
    assert_eq!((&*name, &saved["kind"]), ("profile.v1.call-chain.json.gz", &"profile".into()));
    assert_eq!(saved["objects"], kept.body["objects"]);
    browser.check_quiet();
}

#[test]
fn screen_readers_are_told_of_each_control_and_figure() {
    let made = report(&RECORDS.map(fixture), &Options::default());
    let Some(mut browser) = Browser::open(&made.html) else { return };
    let closed = browser.accessible();
    assert!(closed.iter().any(|it| it.role == "navigation" && it.name == "Contents"));
    browser.click(&button("document", "Open all tables"));
    let all = browser.accessible();
    let of = |role: &str| all.iter().filter(|it| it.role == role).collect::<Vec<_>>();
    for role in ["button", "link", "slider", "image", "region", "table", "figure", "heading", "columnheader"]
    {
        let found = of(role);
        assert!(!found.is_empty(), "{role}");
        let nameless = found.iter().filter(|it| it.name.trim().is_empty()).count();
        assert_eq!(nameless, 0, "{role} without a name");
    }
    assert_eq!(of("main").len(), 1);
    let mut pictures: Vec<String> = of("image").into_iter().map(|it| it.name.clone()).collect();
    let mut titles: Vec<String> = made.figures.iter().map(|(_, svg)| title(svg)).collect();
    pictures.sort();
    titles.sort();
    assert_eq!(pictures, titles, "each figure has its text");
    for name in ["Dark or light", "Intervals", "Close all tables", "Logarithmic", "Whole graph", "Whole run"]
    {
        assert!(of("button").iter().any(|it| it.name == name), "{name}");
    }
    let intervals = of("button").into_iter().find(|it| it.name == "Intervals").unwrap();
    let pressed = |it: &str| it.contains("\"pressed\"") && it.contains("\"true\"");
    assert!(intervals.properties.iter().any(|it| pressed(it)), "{intervals:?}");
    let sliders: Vec<&str> = of("slider").iter().map(|it| &*it.name).collect();
    assert_eq!(sliders, ["Begin of the time shown", "End of the time shown"]);
    browser.check_quiet();
}

/// The text of a picture, as a reader hears it.
fn title(svg: &str) -> String {
    let title = svg.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
    title
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn a_narrow_screen_shows_the_page_without_a_sideways_scroll() {
    let Some(mut browser) = opened() else { return };
    let phone = serde_json::json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true});
    browser.ask("Emulation.setDeviceMetricsOverride", &phone);
    browser.click(&button("document", "Open all tables"));
    assert!(browser.holds("innerWidth <= 400"));
    let wide = browser.value("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth");
    assert_eq!(wide, 0);
    // Plots fit without one of their own; tables that do not say so by a shadow.
    let fits = "[...document.querySelectorAll('svg.plot')].every((e) => e.getBoundingClientRect().width <= innerWidth)";
    assert!(browser.holds(fits));
    let hint = "getComputedStyle(document.querySelector('.scroll')).backgroundAttachment";
    assert!(browser.holds(&format!("{hint}.includes('local') && {hint}.includes('scroll')")));
    browser.check_quiet();
}
