//! The frame of the page: its policy, style, script, table of contents and records.

use crate::parts::{Out, list};
use crate::text::{base, base64, escape};
use crate::{Named, Unread, embed};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// How each page begins.
pub(crate) const BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"generator\" content=\"gleaner report\"/>";

fn hash(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())))
}

pub(crate) fn page(
    records: &[Named],
    outs: &[Out],
    beside: Option<&Out>,
    unread: &[Unread],
    shared: bool,
) -> String {
    let title = match records {
        [one] => format!("{} record {}", one.record.header.kind, base(&one.name)),
        [first, ..] if first.record.header.kind == "tour" => "a program that waits for memory".to_owned(),
        _ => format!("{} records", records.len()),
    };
    let mut out = format!(
        "{BEGIN}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; \
         script-src {}; img-src data:; base-uri 'none'; form-action 'none'\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta name=\"color-scheme\" content=\"light dark\"/><meta name=\"referrer\" content=\"no-referrer\"/>\
         <title>Gleaner report: {}</title><style>{STYLE}</style></head>\n<body>\n",
        hash(STYLE),
        hash(&script()),
        escape(&title)
    );
    out.push_str("<a class=\"skip\" href=\"#main\">To the figures</a><header><h1>Gleaner report</h1>");
    out.push_str("<div id=\"tools\" hidden=\"hidden\"></div></header>\n");
    out.push_str("<nav aria-label=\"Contents\"><details open=\"open\"><summary>Contents</summary><ol>");
    if !unread.is_empty() {
        out.push_str("<li><a href=\"#unread\">Not read</a></li>");
    }
    if let Some(part) = beside {
        out.push_str(&format!("<li><a href=\"#beside\">Side by side</a>{}</li>", sections(part)));
    }
    let verdicts = verdicts(records, outs);
    if !verdicts.is_empty() {
        out.push_str("<li><a href=\"#verdicts\">Verdicts</a></li>");
    }
    for (n, (named, part)) in records.iter().zip(outs).enumerate() {
        let link = format!("<a href=\"#r{}\">{}</a>", n + 1, heading(named));
        let sections = sections(part);
        // The contents of several records would fill the screen.
        if records.len() > 1 && !sections.is_empty() {
            out.push_str(&format!("<li><details><summary>{link}</summary>{sections}</details></li>"));
        } else {
            out.push_str(&format!("<li>{link}{sections}</li>"));
        }
    }
    out.push_str("</ol></details></nav>\n<main id=\"main\">\n");
    if !unread.is_empty() {
        let files = unread.iter().map(|file| {
            format!(
                "<p class=\"missing\"><bdi>{}</bdi>: {}.</p>\n",
                escape(base(&file.name)),
                escape(&file.why)
            )
        });
        let files = files.collect::<String>();
        out.push_str(&format!("<article id=\"unread\"><h2>Not read</h2>\n{files}</article>\n"));
    }
    out.push_str(&verdicts);
    if let Some(part) = beside {
        out.push_str(&format!("<article id=\"beside\"><h2>Side by side</h2>\n{}</article>\n", part.html));
    }
    for (n, (named, part)) in records.iter().zip(outs).enumerate() {
        let header = &named.record.header;
        out.push_str(&format!(
            "<article id=\"r{}\"><h2>{}</h2><p class=\"note\">Written by gleaner {} at {}. {}</p>\n{}</article>\n",
            n + 1,
            heading(named),
            escape(&header.gleaner),
            escape(&header.created),
            embed::link(named),
            part.html
        ));
    }
    out.push_str("</main>\n<footer><p>Brackets and bands are 95% intervals. A figure is measured unless it ");
    out.push_str(
        "says modelled or claimed; one that could not be had says why. This page loads nothing from ",
    );
    out.push_str("any network.");
    if shared {
        out.push_str(
            " Names of the host and of users that were known, and home directories, were left out of it and of \
             the records in it. Other names that are private may remain: look before you share it.",
        );
    }
    out.push_str("</p></footer>\n");
    for (n, named) in records.iter().enumerate() {
        out.push_str(&embed::block(named, n + 1));
    }
    out.push_str(&format!("<script>{}</script>\n</body></html>\n", script()));
    out
}

/// What all records come to, first, where there are several.
fn verdicts(records: &[Named], outs: &[Out]) -> String {
    if records.len() < 2 {
        return String::new();
    }
    let each = records.iter().zip(outs).enumerate().filter_map(|(n, (named, part))| {
        let verdict = &part.html[part.html.find(VERDICT)?..];
        let verdict = &verdict[..verdict.find(END)? + END.len()];
        Some(format!("<h3><a href=\"#r{}\">{}</a></h3>\n{verdict}\n", n + 1, heading(named)))
    });
    let each: String = each.collect();
    if each.is_empty() {
        return each;
    }
    format!("<article id=\"verdicts\"><h2>Verdicts</h2>\n{each}</article>\n")
}

/// How the verdict in a part begins, and how it ends: no element of this name is within it.
const VERDICT: &str = "<div class=\"verdict ";
const END: &str = "</div>";

/// Links to the sections of a part.
fn sections(part: &Out) -> String {
    let link = |(id, title): &(String, String)| format!("<a href=\"#{id}\">{}</a>", escape(title));
    list(&part.contents.iter().map(link).collect::<Vec<_>>())
}

fn heading(named: &Named) -> String {
    let kind = match named.record.header.kind.as_str() {
        "machine" => "Machine",
        "profile" => "Profile",
        "plan" => "Plan of a harvest",
        "recipe" => "Recipe",
        "reproduction" => "Reproduction",
        "run" => "Harvest",
        "tour" => "A program that waits for memory",
        other => other,
    };
    format!("{}: <bdi>{}</bdi>", escape(kind), escape(base(&named.name)))
}

/// The script without its comments and indentation: it is in every page.
fn script() -> String {
    let lines = SCRIPT.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A figure as a file of its own.
pub(crate) fn standalone(svg: &str) -> String {
    // The style has no `<` and no `&`, so it may stand within XML as it is.
    svg.replacen('>', &format!("><style>{STYLE}svg{{background:var(--paper)}}</style>"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_neither_ends_its_element() {
        assert!(SCRIPT.len() <= 20_000, "{}", SCRIPT.len());
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains('<') && !STYLE.contains('&'));
    }
}
