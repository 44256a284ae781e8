//! A comparison as one HTML page without scripts, which needs no network and no other file.

use crate::comparison::{Against, Compared, Comparison};
use crate::text;
use crate::verdict::Verdict;
use std::fmt::Write;

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\"><head><meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Gleaner comparison</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse } td, th { padding: .15em .8em; text-align: left; border-bottom: 1px solid #ddd }
td.n { text-align: right; font-variant-numeric: tabular-nums }
.regressed { color: #b00020; font-weight: 600 } .improved { color: #00652e; font-weight: 600 }
.inconclusive { color: #777 } svg { vertical-align: middle }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } td, th { border-color: #444 }
.regressed { color: #ff7a85 } .improved { color: #6fd59a } .inconclusive { color: #999 } }
</style></head><body>
";

pub fn html(comparison: &Comparison) -> String {
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "<h1>Comparison of {} records</h1>", escaped(&comparison.kind));
    for against in &comparison.against {
        one(&mut page, comparison, against);
    }
    page.push_str("</body></html>\n");
    page
}

fn one(page: &mut String, comparison: &Comparison, against: &Against) {
    let [base, new] = [&comparison.base, &against.side].map(|side| escaped(&text::side(side)));
    let _ = writeln!(page, "<h2>{base} against {new}</h2>");
    let _ = writeln!(page, "<p><strong>Gate: {}</strong></p>", escaped(&text::gate(comparison, against)));
    page.push_str("<h3>Environment</h3>\n<ul>\n");
    for doubt in comparison.base.doubts.iter().chain(&against.side.doubts) {
        let _ = writeln!(page, "<li>{}</li>", escaped(doubt));
    }
    for difference in &against.environment {
        let [base, new] = [&difference.base, &difference.new].map(|said| escaped(&text::said(said)));
        let _ = writeln!(page, "<li>{}: {base} → {new}</li>", escaped(&difference.topic));
    }
    if against.environment.is_empty() {
        page.push_str("<li>no difference</li>\n");
    }
    page.push_str("</ul>\n");
    for (title, headline) in [("Headline figures", true), ("Other figures", false)] {
        let figures: Vec<&Compared> = against.figures.iter().filter(|f| f.headline == headline).collect();
        if !figures.is_empty() {
            table(page, title, &figures);
        }
    }
    let _ = writeln!(page, "<p>{}</p>", escaped(text::rest(against).trim_end()).replace('\n', "<br>"));
}

fn table(page: &mut String, title: &str, figures: &[&Compared]) {
    let _ = writeln!(
        page,
        "<h3>{title}</h3>\n<table><tr><th>figure<th>base<th>new<th>new/base<th><th>floor<th></tr>"
    );
    for figure in figures {
        let cells = text::row(figure).map(|cell| escaped(&cell));
        let [name, base, new, ratio, floor, verdict] = cells;
        let _ = writeln!(
            page,
            "<tr><td>{name}<td class=\"n\">{base}<td class=\"n\">{new}<td class=\"n\">{ratio}<td>{}<td class=\"n\">{floor}<td class=\"{}\">{verdict}</tr>",
            interval(figure),
            figure.verdict.word()
        );
    }
    page.push_str("</table>\n");
}

/// Half the width of an interval's picture, in pixels, and the factor that it stands for.
const HALF: f64 = 70.0;
const FACTOR: f64 = 1.5;

/// The interval on a scale of logarithms, a line where both sides are the same.
fn interval(figure: &Compared) -> String {
    let Some(ratio) = figure.adjusted.estimate() else { return String::new() };
    let at = |value: f64| HALF + (HALF - 2.0) * (value.ln() / FACTOR.ln()).clamp(-1.0, 1.0);
    let colour = match figure.verdict {
        Verdict::Regressed => "#d0364a",
        Verdict::Improved => "#1f9d55",
        Verdict::Equivalent | Verdict::Inconclusive => "#888",
    };
    let (lo, middle, hi) = (at(ratio.lo), at(ratio.value), at(ratio.hi));
    format!(
        "<svg width=\"140\" height=\"14\" role=\"img\" aria-label=\"interval\"><path d=\"M{HALF} 0V14\" stroke=\"#aaa\"/>\
         <path d=\"M{lo:.1} 7H{hi:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/><circle cx=\"{middle:.1}\" cy=\"7\" r=\"3\" fill=\"{colour}\"/></svg>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
