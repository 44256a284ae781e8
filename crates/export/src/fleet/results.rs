//! `results`: a row for each figure of each record.

use super::columns::{float, int, text};
use super::figures::{self, Found};
use super::{Cell, Row, Source, Table};
use serde_json::Value;

pub(super) const TABLE: Table = Table {
    name: "results",
    about: "A row for each figure of each record. Loads and objects of profiles have tables of their own, \
            and sites of plans and runs are left out. An experiment that gave nothing has one row, whose \
            metric is `outcome`.",
    own: &[
        text("kind", "the record's: `machine`, `profile`, `plan`, `run`, `reproduction`"),
        text("experiment", "the part of the record: for machines an experiment, `levels` or `run`"),
        text("metric", "the fields that lead to the figure: `curves.points.latency.ns`"),
        text(
            "parameters",
            "what tells figures of one metric apart, as JSON: `{\"size\":1024}`; `{}` where nothing does",
        ),
        float("value", "the figure"),
        float("lo", "the lower end of its 95% interval"),
        float("hi", "the upper end"),
        int("n", "blocks or samples behind it, where they are counted"),
        text("unit", "`ns`, `us`, `s`, `cycles`, `ticks`, `bytes`, `bytes/s`, `Hz`, `ppm`, `count`, `ratio`"),
        text("basis", "`measured`, `modelled` or `claimed`"),
        text(
            "flags",
            "words with commas between them: `disturbed` (other work ran in every block), `other_pages` \
              (memory had other pages than were asked for), `noisy` and `fair` (the run's grade), `interrupted` \
              (the run was stopped), `unresolved`, `not_possible`, `failed`; empty where there is none",
        ),
        text("why", "why there is no value"),
    ],
    rows,
};

/// Parts that have tables of their own, or as many rows as a program has loads.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("machine", &["host"]),
    ("profile", &["loads", "objects", "code", "calls"]),
    ("plan", &["sites", "candidates"]),
    ("run", &["sites", "switched_off"]),
];

/// A figure as this table has it.
pub(super) struct ResultRow<'a> {
    pub(super) experiment: &'a str,
    pub(super) found: Found<'a>,
}

/// All figures of a record, with the experiment that each belongs to.
pub(super) fn results(source: &Source) -> Vec<ResultRow<'_>> {
    let left_out =
        LEFT_OUT.iter().find(|(kind, _)| *kind == source.kind()).map_or(&[][..], |(_, names)| *names);
    let mut all = Vec::new();
    let parts = source.record.body.as_object().into_iter().flatten();
    for (name, part) in parts.filter(|(name, _)| !left_out.contains(&name.as_str())) {
        if name == "experiments" {
            for (experiment, outcome) in part.as_object().into_iter().flatten() {
                let found = outcome.get("result").map(figures::of).unwrap_or_default();
                all.extend(found.into_iter().map(|found| ResultRow { experiment, found }));
            }
        } else {
            all.extend(figures::of(part).into_iter().map(|found| ResultRow { experiment: name, found }));
        }
    }
    all
}

fn rows(source: &Source) -> Vec<Row> {
    let of_run = flags_of_run(&source.record.body);
    let figures = results(source).into_iter().map(|result| row(source.kind(), &result, &of_run));
    figures.chain(without_result(source, &of_run)).collect()
}

fn row(kind: &str, ResultRow { experiment, found }: &ResultRow<'_>, of_run: &[&str]) -> Row {
    let quantity = found.quantity;
    let number = |name: &str| Cell::from(quantity.get(name).and_then(Value::as_f64));
    let words = |name: &str| Cell::from(quantity.get(name).and_then(Value::as_str));
    let mut flags = of_run.to_vec();
    for (flag, set) in [
        ("disturbed", quantity.contains_key("disturbed")),
        ("other_pages", found.other_pages),
        ("unresolved", quantity.contains_key("unresolved")),
    ] {
        flags.extend(set.then_some(flag));
    }
    let metric = if found.metric.is_empty() { "value" } else { &found.metric };
    vec![
        kind.into(),
        (*experiment).into(),
        metric.into(),
        Value::Object(found.parameters.clone()).to_string().into(),
        number("value"),
        number("lo"),
        number("hi"),
        found.n.into(),
        words("unit"),
        words("basis"),
        flags.join(",").into(),
        words("unresolved"),
    ]
}

/// A row for each experiment that gave nothing.
fn without_result(source: &Source, of_run: &[&str]) -> Vec<Row> {
    let experiments = source.record.body.get("experiments").and_then(Value::as_object);
    let mut rows = Vec::new();
    for (experiment, outcome) in experiments.into_iter().flatten() {
        let status = outcome.get("status").and_then(Value::as_str).unwrap_or_default();
        if outcome.get("result").is_some_and(|result| !result.is_null()) || status == "done" {
            continue;
        }
        let mut flags = of_run.to_vec();
        if !flags.contains(&status) {
            flags.push(status);
        }
        let null = || Cell::Null;
        let why = Cell::from(outcome.get("why").and_then(Value::as_str));
        let named: [Cell; 4] =
            [source.kind().into(), experiment.as_str().into(), "outcome".into(), "{}".into()];
        let empty = [null(), null(), null(), null(), null(), null()];
        rows.push(named.into_iter().chain(empty).chain([flags.join(",").into(), why]).collect());
    }
    rows
}

fn flags_of_run(body: &Value) -> Vec<&str> {
    let grade = body.pointer("/run/grade/verdict").and_then(Value::as_str);
    let stopped = body.pointer("/run/interrupted").and_then(Value::as_bool) == Some(true);
    let grade = grade.filter(|grade| *grade != "quiet");
    grade.into_iter().chain(stopped.then_some("interrupted")).collect()
}
