//! Every figure of a record, found where it stands: an object with a value, its interval and a
//! unit, or the reason why there is none. So a new experiment has its rows without a line here.
//!
//! ```text
//! "curves": [{"pattern": "random", "points": [{"size": 1024, "latency": {"ns": …
//! metric: curves.points.latency.ns      parameters: pattern=random, size=1024
//! ```

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A figure with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found<'a> {
    /// The names of the fields that lead to it, without the places in lists.
    pub(super) metric: String,
    /// What tells elements of the same list apart.
    pub(super) parameters: Map<String, Value>,
    /// The blocks or samples behind it, where they are counted beside it.
    pub(super) n: Option<i64>,
    /// Memory had other pages than were asked for.
    pub(super) other_pages: bool,
    pub(super) quantity: &'a Map<String, Value>,
}

/// Fields of list elements that are outcomes themselves, or remarks: these tell nothing apart.
const OUTCOMES: &[&str] = &[
    "as_asked",
    "blocks",
    "calls",
    "claimed",
    "combination",
    "detail",
    "level_because",
    "meaning",
    "note",
    "probes",
    "runs_out",
    "samples",
    "setting",
    "shared",
    "then",
    "threads_seen",
    "verdict",
    "voided",
    "why",
    "would_help",
];

/// Below this share of the pages that were asked for, a figure is of other pages.
const ENOUGH_PAGES: f64 = 0.9;

/// All figures below this value, in their order.
pub(super) fn of(root: &Value) -> Vec<Found<'_>> {
    let mut walk = Walk { path: Vec::new(), found: Vec::new() };
    walk.value(root, &BTreeMap::new(), false, Beside::default());
    walk.found
}

/// Whether an object is a quantity.
pub(super) fn is_quantity(fields: &Map<String, Value>) -> bool {
    let resolved = ["value", "lo", "hi", "unit"].iter().all(|name| fields.contains_key(*name));
    resolved || (fields.len() == 1 && fields.get("unresolved").is_some_and(Value::is_string))
}

struct Walk<'a> {
    path: Vec<&'a str>,
    found: Vec<Found<'a>>,
}

/// What stands beside a figure.
#[derive(Clone, Copy, Default)]
struct Beside {
    n: Option<i64>,
    other_pages: bool,
}

type Parameters = BTreeMap<String, Value>;

impl<'a> Walk<'a> {
    /// `element`: the value is an element of a list, so that its fields tell it apart.
    fn value(&mut self, value: &'a Value, parameters: &Parameters, element: bool, beside: Beside) {
        match value {
            Value::Array(elements) => {
                for (nth, each) in elements.iter().enumerate() {
                    // Figures without anything around them have their place alone.
                    let mut parameters = parameters.clone();
                    if each.as_object().is_some_and(is_quantity) {
                        parameters.insert("nth".to_owned(), nth.into());
                    }
                    self.value(each, &parameters, true, beside);
                }
            }
            Value::Object(fields) if is_quantity(fields) => self.found.push(Found {
                metric: self.path.join("."),
                parameters: parameters.clone().into_iter().collect(),
                n: beside.n,
                other_pages: beside.other_pages,
                quantity: fields,
            }),
            Value::Object(fields) => {
                let mut parameters = parameters.clone();
                if element {
                    self.add_parameters(fields, &mut parameters);
                }
                let beside = beside_in(fields, beside);
                for (name, field) in fields {
                    self.path.push(name);
                    self.value(field, &parameters, false, beside);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn add_parameters(&self, fields: &Map<String, Value>, parameters: &mut Parameters) {
        for (name, value) in fields.iter().filter(|(name, _)| !OUTCOMES.contains(&name.as_str())) {
            let mut add = |name: &str, value: &Value| {
                // A list inside another may have a field of the same name.
                let taken = parameters.contains_key(name);
                let list = self.path.last().filter(|_| taken);
                let name = list.map_or_else(|| name.to_owned(), |list| format!("{list}.{name}"));
                parameters.insert(name, value.clone());
            };
            match value {
                Value::Object(inner) => flat(name, inner, &mut add),
                Value::Array(pair) if is_pair(pair) => add(name, value),
                value if tells_apart(value) => add(name, value),
                _ => {}
            }
        }
    }
}

/// Fields of an object that holds no figures: `{"asked": "4K"}` as `pages.asked`.
fn flat(name: &str, fields: &Map<String, Value>, add: &mut impl FnMut(&str, &Value)) {
    if is_quantity(fields) {
        return;
    }
    for (inner, value) in fields.iter().filter(|(inner, _)| !OUTCOMES.contains(&inner.as_str())) {
        match value {
            Value::Object(fields) => flat(&format!("{name}.{inner}"), fields, add),
            value if tells_apart(value) => add(&format!("{name}.{inner}"), value),
            _ => {}
        }
    }
}

/// Names, counts and switches; numbers with a point are outcomes.
fn tells_apart(value: &Value) -> bool {
    value.is_string() || value.is_boolean() || value.is_i64() || value.is_u64()
}

/// Two CPUs, between which something was measured.
fn is_pair(values: &[Value]) -> bool {
    values.len() == 2 && values.iter().all(Value::is_u64)
}

fn beside_in(fields: &Map<String, Value>, above: Beside) -> Beside {
    let counted = ["blocks", "samples", "probes"].iter().find_map(|name| fields.get(*name)?.as_i64());
    let pages = fields.get("pages");
    let share = pages.and_then(|pages| pages.get("share")).and_then(Value::as_f64);
    let other_pages = share.map_or(above.other_pages, |share| share < ENOUGH_PAGES);
    Beside { n: counted.or(above.n), other_pages }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_figure_has_its_place_and_what_tells_it_apart() {
        let quantity = json!({"value": 4.0, "lo": 3.9, "hi": 4.1, "unit": "ns", "basis": "measured"});
        let record = json!({
            "line": 64,
            "kinds": [{
                "pages": {"asked": "2M", "share": 0.5},
                "size": 1,
                "note": "a remark",
                "points": [
                    {"size": 1024, "probe": {"run": {"lines": 8}}, "cpus": [0, 1], "blocks": 7, "p05": 1.5,
                     "latency": {"ns": quantity.clone(), "cycles": {"unresolved": "too noisy"}}},
                ],
            }],
        });
        let found = of(&record);
        let metrics: Vec<&str> = found.iter().map(|f| f.metric.as_str()).collect();
        assert_eq!(metrics, ["kinds.points.latency.ns", "kinds.points.latency.cycles"]);
        let parameters = json!({
            "pages.asked": "2M", "size": 1, "points.size": 1024, "probe.run.lines": 8, "cpus": [0, 1],
        });
        assert_eq!(Value::Object(found[0].parameters.clone()), parameters);
        assert_eq!((found[0].n, found[0].other_pages), (Some(7), true));
        assert_eq!(found[1].quantity["unresolved"], "too noisy");
        let passes = json!({"passes": [quantity.clone(), quantity]});
        let places: Vec<Value> = of(&passes).into_iter().map(|f| Value::Object(f.parameters)).collect();
        assert_eq!(places, [json!({"nth": 0}), json!({"nth": 1})]);
    }
}
