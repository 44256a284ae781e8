//! Pages of reproductions: ratios by verdict, and a document's figures beside this machine's.

mod fixtures;

use fixtures::fixture;
use gleaner_report::{Named, Options, report};
use serde_json::{Value, json};

fn figure(record: &Named, id: &str) -> Option<String> {
    let made = report(std::slice::from_ref(record), &Options::default());
    made.figures.into_iter().find(|(name, _)| name == id).map(|(_, svg)| svg)
}

fn recorded() -> Named {
    fixture("reproduction.v1.three-claims.json")
}

#[test]
fn claims_with_a_ratio_are_drawn_by_their_verdict() {
    let svg = figure(&recorded(), "r1-ratios").expect("a figure");
    // One is reproduced, one differs in shape, and the third has no ratio.
    assert_eq!(svg.matches("whisker interval").count(), 2, "{svg}");
    for (class, said) in [("s0", "plateau-l1: 1.00 [1.00, 1.12]"), ("s1", "plateau-l3: 0.59 [0.50, 0.63]")] {
        assert!(svg.contains(&format!("<g class=\"{class}\"><title>{said}</title>")), "{said}: {svg}");
    }
    for (name, known) in [("reproduced", true), ("shape differs", true), ("not run", false)] {
        assert_eq!(svg.contains(&format!(">{name}</text>")), known, "{name}");
    }
    assert!(!svg.contains("distant-node-slower"));
}

#[test]
fn without_any_ratio_the_page_says_so() {
    let mut record = recorded();
    for claim in record.record.body["claims"].as_array_mut().unwrap() {
        claim["ratio"] = json!({"unresolved": "no figure here"});
    }
    assert!(figure(&record, "r1-ratios").is_none());
    let html = report(&[record], &Options::default()).html;
    assert!(html.contains("No claim has a figure both in the document and here"));
    assert!(!html.contains("<figure") && html.contains("<td>plateau-l3</td>"), "the table stays");
}

fn curve(name: &str, points: &[(f64, f64)]) -> Value {
    let point = |(x, y): &(f64, f64)| json!({"x": x, "y": {"value": y, "lo": y, "hi": y, "unit": "ratio", "basis": "measured"}});
    json!({"name": name, "points": points.iter().map(point).collect::<Vec<_>>()})
}

#[test]
fn a_figure_of_the_document_stands_beside_this_machines() {
    let mut record = recorded();
    assert!(figure(&record, "r1-curves-1").is_none());
    let nothing = curve("nothing", &[]);
    let drawn = json!({
        "id": "../../gaps", "title": "Two overlap", "place": "figure <1>", "claims": ["plateau-l1"],
        "x": "gap", "y": "time", "x_unit": "bytes", "logarithmic": true,
        "paper": [curve("the <document>", &[(1024.0, 1.0), (4096.0, 2.0)])],
        "here": [curve("here", &[(1024.0, 1.5), (4096.0, 3.0)])],
    });
    let mut empty = drawn.clone();
    (empty["paper"], empty["here"]) = (json!([nothing]), json!([]));
    record.record.body["curves"] = json!([drawn, empty]);
    let svg = figure(&record, "r1-curves-1").expect("a figure");
    assert_eq!(svg.matches("<g class=\"series s").count(), 2);
    assert!(svg.contains("the &lt;document&gt;") && svg.contains(">4K</text>"), "{svg}");
    assert!(figure(&record, "r1-curves-2").is_none(), "never an empty plot");
    let html = report(&[record], &Options::default()).html;
    assert!(html.contains("Of the document: figure &lt;1&gt;. Claims: plateau-l1."));
    assert!(html.contains("Two overlap: the record has no points of it."));
}

#[test]
fn a_table_of_the_document_has_rows_of_both() {
    let mut record = recorded();
    let cell = json!({"value": 10.0, "lo": 9.0, "hi": 11.0, "unit": "count", "basis": "measured"});
    record.record.body["tables"] = json!([{
        "id": "summary", "title": "Cases", "place": "table <6.1>", "columns": ["effective <MLP>"],
        "rows": [
            {"name": "no restrictions", "here": false, "cells": [cell]},
            {"name": "thp pages <H0>", "here": true, "cells": [{"unresolved": "no such figure"}]},
        ],
        "note": "placements: needs <nodes>",
    }]);
    let html = report(&[record], &Options::default()).html;
    for text in [
        "Of the document: table &lt;6.1&gt;.",
        "effective &lt;MLP&gt;",
        "thp pages &lt;H0&gt;",
        "needs &lt;nodes&gt;",
    ] {
        assert!(html.contains(text), "{text}");
    }
}
