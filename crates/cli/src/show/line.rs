//! Small values in one line.
//!
//! To show another small shape so (as quantities are): a case in [`known_shape`].

use crate::plain::escaped;
use serde_json::{Map, Value};
use units::Quantity;

/// Lists and small structures that fit into this many characters stay on one line.
const LINE: usize = 90;

/// The value in one line, if it fits and is readable so.
pub(super) fn one_line(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if text.is_empty() => Some("(empty)".to_owned()),
        Value::String(text) => Some(escaped(text)),
        Value::Array(elements) if elements.is_empty() => Some("(none)".to_owned()),
        Value::Object(fields) if fields.is_empty() => Some("(none)".to_owned()),
        Value::Array(elements) => {
            let scalar = |v: &Value| !v.is_array() && !v.is_object();
            if !elements.iter().all(scalar) {
                return None;
            }
            short(elements.iter().filter_map(one_line))
        }
        Value::Object(fields) => known_shape(fields).or_else(|| {
            let flat = |v: &Value| match v {
                Value::Array(_) => false,
                Value::Object(fields) => known_shape(fields).is_some(),
                _ => true,
            };
            if fields.len() > 4 || !fields.values().all(flat) {
                return None;
            }
            short(fields.iter().filter_map(|(name, v)| Some(format!("{} {}", escaped(name), one_line(v)?))))
        }),
    }
}

fn short(parts: impl Iterator<Item = String>) -> Option<String> {
    let line = parts.collect::<Vec<_>>().join(", ");
    (line.chars().count() <= LINE).then_some(line)
}

/// Quantities, facts that are not known, and abilities.
fn known_shape(fields: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(escaped);
    if fields.contains_key("unit") || fields.contains_key("unresolved") {
        let quantity: Quantity = serde_json::from_value(Value::Object(fields.clone())).ok()?;
        return Some(escaped(&quantity.to_string()));
    }
    if fields.len() == 1 {
        return text("unknown").map(|why| format!("unknown: {why}"));
    }
    match fields.get("can").and_then(Value::as_str)? {
        "yes" => Some(format!("yes: {}", text("detail")?)),
        "no" => Some(format!("no: {}; {}", text("why")?, text("would_help")?)),
        "unknown" => Some(format!("unknown: {}", text("why")?)),
        _ => None,
    }
}
