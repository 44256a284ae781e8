//! Headlines in Prometheus' text format, for `node_exporter`'s textfile collector or a push
//! gateway. Base units, as is the custom there; the ends of the 95% interval are series of their
//! own.

use super::Source;
use super::headlines::{HEADLINES, Headline};
use super::results::{ResultRow, results};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is written, and what is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauges {
    pub text: String,
    /// Indices of records that are not in it, each with that of the later record whose values their
    /// series have.
    pub superseded: Vec<(usize, usize)>,
}

/// The latest record of each kind, host and command, as gauges.
pub fn gauges(sources: &[Source]) -> Gauges {
    let latest = latest(sources);
    let superseded = (0..sources.len()).filter_map(|index| {
        let by = latest[&labels_of(&sources[index])];
        (by != index).then_some((index, by))
    });
    let superseded = superseded.collect();
    let latest: Vec<&Source> = latest.into_values().map(|index| &sources[index]).collect();
    Gauges { text: text(&latest), superseded }
}

fn text(latest: &[&Source]) -> String {
    let mut families = Families::default();
    for source in latest {
        let labels = labels_of(source);
        families.add("record_time_seconds", "when the record was written", &labels, source.seconds());
        if let Some(grade) = source.record.body.pointer("/run/grade/verdict").and_then(Value::as_str) {
            let help = "1 if other work disturbed the measurement";
            families.add("noisy", help, &labels, f64::from(grade == "noisy"));
        }
    }
    for source in latest {
        let (labels, results) = (labels_of(source), results(source));
        for headline in HEADLINES {
            let rows = results
                .iter()
                .filter(|r| (r.experiment, metric(r)) == (headline.experiment, headline.metric));
            for row in rows {
                families.headline(headline, &labels, row);
            }
        }
    }
    families.text()
}

fn metric<'a>(row: &'a ResultRow<'_>) -> &'a str {
    if row.found.metric.is_empty() { "value" } else { &row.found.metric }
}

/// Two records of one host would be two values of one series.
fn latest(sources: &[Source]) -> BTreeMap<Labels, usize> {
    let mut latest = BTreeMap::new();
    for (index, source) in sources.iter().enumerate() {
        let there = latest.entry(labels_of(source)).or_insert(index);
        if sources[*there].seconds() < source.seconds() {
            *there = index;
        }
    }
    latest
}

type Labels = Vec<(String, String)>;

/// Without a host's name there is one host, whose name Prometheus knows.
fn labels_of(source: &Source) -> Labels {
    let mut labels = vec![("kind".to_owned(), source.kind().to_owned())];
    labels.extend(source.host().map(|host| ("host".to_owned(), host.to_owned())));
    let mut places = ["/program/command", "/primary/command"].into_iter();
    let command = places.find_map(|at| source.record.body.pointer(at)?.as_array());
    let words = command.map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    labels.extend(words.map(|command| ("command".to_owned(), command)));
    labels
}

/// Series by name: all of one name stand together, as the format demands.
#[derive(Default)]
struct Families {
    order: Vec<String>,
    by_name: BTreeMap<String, (String, Vec<String>)>,
}

impl Families {
    fn add(&mut self, name: &str, help: &str, labels: &[(String, String)], value: f64) {
        let name = format!("gleaner_{name}");
        let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{}\"", escaped(v))).collect();
        let line = format!("{name}{{{}}} {value}", labels.join(","));
        if !self.by_name.contains_key(&name) {
            self.order.push(name.clone());
            self.by_name.insert(name.clone(), (help.to_owned(), Vec::new()));
        }
        if let Some((_, lines)) = self.by_name.get_mut(&name) {
            lines.push(line);
        }
    }

    fn headline(&mut self, headline: &Headline, labels: &[(String, String)], row: &ResultRow<'_>) {
        let quantity = row.found.quantity;
        let Some(unit) = quantity.get("unit").and_then(Value::as_str) else { return };
        let (suffix, scale) = base(unit);
        let mut labels = labels.to_vec();
        for name in headline.labels {
            let value = row.found.parameters.get(*name);
            let value = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            labels
                .extend(value.map(|value| (name.rsplit('.').next_back().unwrap_or(name).to_owned(), value)));
        }
        for (field, end, what) in [
            ("value", "", ""),
            ("lo", "_low", ", lower end of the 95% interval"),
            ("hi", "_high", ", upper end of the 95% interval"),
        ] {
            if let Some(value) = quantity.get(field).and_then(Value::as_f64) {
                let name = format!("{}{suffix}{end}", headline.name);
                self.add(&name, &format!("{}{what}", headline.help), &labels, value * scale);
            }
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for name in &self.order {
            let (help, lines) = &self.by_name[name];
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n{}\n", lines.join("\n")));
        }
        text
    }
}

/// The ending of a series' name, and the factor to the base unit.
fn base(unit: &str) -> (&'static str, f64) {
    match unit {
        "ns" => ("_seconds", 1e-9),
        "us" => ("_seconds", 1e-6),
        "s" => ("_seconds", 1.0),
        "bytes" => ("_bytes", 1.0),
        "bytes/s" => ("_bytes_per_second", 1.0),
        "Hz" => ("_hertz", 1.0),
        "cycles" => ("_cycles", 1.0),
        "ticks" => ("_ticks", 1.0),
        "ppm" => ("_ratio", 1e-6),
        "ratio" => ("_ratio", 1.0),
        _ => ("", 1.0),
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
