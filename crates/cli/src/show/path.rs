//! Paths into a record: `.levels[0].latency.cycles.value`, the subset of jq's that names one place.
//!
//! A field is `.name` or `["name"]`, an element `[0]`, or `[-1]` counted from the end.

use crate::failure::Refusal;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
}

/// The value at this path, or what there is instead.
pub(super) fn find<'a>(root: &'a Value, path: &str) -> Result<&'a Value, Refusal> {
    let steps = parse(path).map_err(|why| {
        Refusal::wrong_use(format!("path '{path}'"), why)
            .would_help("write for example .levels[0].latency.cycles.value")
    })?;
    let mut here = root;
    let mut so_far = String::new();
    for step in &steps {
        let place = if so_far.is_empty() { "." } else { &so_far };
        here = take(here, step)
            .map_err(|why| Refusal::wrong_use(format!("nothing at {path}: at {place}"), why))?;
        match step {
            Step::Field(name) if is_plain(name) => so_far += &format!(".{name}"),
            Step::Field(name) => so_far += &format!("[{name:?}]"),
            Step::Index(index) => so_far += &format!("[{index}]"),
        }
    }
    Ok(here)
}

fn take<'a>(here: &'a Value, step: &Step) -> Result<&'a Value, String> {
    match (here, step) {
        (Value::Object(fields), Step::Field(name)) => fields.get(name).ok_or_else(|| {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            let similar =
                similar_to(name, &names).map(|s| format!("did you mean '{s}'? ")).unwrap_or_default();
            format!("no field '{name}'; {similar}{}", list(&names))
        }),
        (Value::Array(elements), Step::Index(index)) => {
            let count = elements.len() as i64;
            let at = if *index < 0 { index + count } else { *index };
            usize::try_from(at).ok().and_then(|at| elements.get(at)).ok_or_else(|| match count {
                0 => "this list is empty".to_owned(),
                1 => "there is one element, [0]".to_owned(),
                _ => format!("there are {count} elements, [0] to [{}]", count - 1),
            })
        }
        (Value::Array(elements), Step::Field(name)) => Err(format!(
            "this is a list of {}, not something with a field '{name}'; choose by [0]",
            elements.len()
        )),
        (Value::Object(fields), Step::Index(_)) => {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            Err(format!("this has fields, not elements; {}", list(&names)))
        }
        (leaf, _) => Err(format!("this is {leaf}, and nothing is below it")),
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) }
}

/// The name most like this one, if any is.
fn similar_to<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    names
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), *candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn parse(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    if rest == "." {
        return Ok(steps);
    }
    if !rest.starts_with(['.', '[']) {
        return Err("it begins with neither '.' nor '['".to_owned());
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (step, end) = bracket(after)?;
            steps.push(step);
            rest = end;
            continue;
        }
        let Some(after) = rest.strip_prefix('.') else {
            return Err(format!("'{rest}' follows where '.' or '[' should"));
        };
        rest = after;
        if rest.starts_with('[') {
            continue; // jq's `.["name"]`
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        if !is_plain(name) {
            return Err(if name.is_empty() {
                "a name is missing after '.'".to_owned()
            } else {
                format!("'{name}' is not a plain name; write [\"{name}\"]")
            });
        }
        steps.push(Step::Field(name.to_owned()));
        rest = &rest[end..];
    }
    Ok(steps)
}

/// What stands after `[`, and what comes after its `]`.
fn bracket(text: &str) -> Result<(Step, &str), String> {
    if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let Some(Ok(name)) = values.next() else { return Err("a quoted name does not end".to_owned()) };
        let rest = &text[values.byte_offset()..];
        let rest = rest.strip_prefix(']').ok_or("']' is missing")?;
        return Ok((Step::Field(name), rest));
    }
    let (index, rest) = text.split_once(']').ok_or("']' is missing")?;
    let index = index.parse().map_err(|_| format!("'{index}' is no index"))?;
    Ok((Step::Index(index), rest))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Value {
        json!({
            "levels": [
                {"name": "L1", "latency": {"cycles": {"value": 4.0}}},
                {"name": "L2", "latency": {"cycles": {"value": 14.0}}},
            ],
            "odd": {"a.b": 1, "say \"]\"": 2},
            "none": [],
        })
    }

    fn at(path: &str) -> Result<Value, String> {
        find(&record(), path).cloned().map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn fields_and_indices() {
        assert_eq!(at(".levels[0].latency.cycles.value"), Ok(json!(4.0)));
        assert_eq!(at(".levels[-1].name"), Ok(json!("L2")));
        assert_eq!(at(r#".odd["a.b"]"#), Ok(json!(1)));
        assert_eq!(at(r#".["odd"].["say \"]\""]"#), Ok(json!(2)));
        assert_eq!(at("."), Ok(record()));
    }

    #[test]
    fn what_is_not_there_names_what_is() {
        for (path, expected) in [
            (
                ".levels[0].latncy.cycles",
                "nothing at .levels[0].latncy.cycles: at .levels[0]: no field 'latncy'; did you mean 'latency'? \
                 there are name, latency",
            ),
            (".levels[2]", "nothing at .levels[2]: at .levels: there are 2 elements, [0] to [1]"),
            (".levels[-3]", "nothing at .levels[-3]: at .levels: there are 2 elements, [0] to [1]"),
            (".none[0]", "nothing at .none[0]: at .none: this list is empty"),
            (
                ".levels.name",
                "nothing at .levels.name: at .levels: this is a list of 2, not something with a field 'name'; \
                 choose by [0]",
            ),
            ("[0]", "nothing at [0]: at .: this has fields, not elements; there are levels, odd, none"),
            (
                ".levels[0].name.x",
                "nothing at .levels[0].name.x: at .levels[0].name: this is \"L1\", and nothing is below it",
            ),
        ] {
            assert_eq!(at(path).unwrap_err(), expected);
        }
    }

    #[test]
    fn what_is_no_path_says_where() {
        let example = "; write for example .levels[0].latency.cycles.value";
        for (path, why) in [
            ("levels", "it begins with neither '.' nor '['"),
            ("", "it begins with neither '.' nor '['"),
            (".levels[", "']' is missing"),
            (".levels[x]", "'x' is no index"),
            (".levels[99999999999999999999]", "'99999999999999999999' is no index"),
            (".levels[0]name", "'name' follows where '.' or '[' should"),
            (".levels..name", "a name is missing after '.'"),
            (".a-b", "'a-b' is not a plain name; write [\"a-b\"]"),
            (".[\"a", "a quoted name does not end"),
        ] {
            assert_eq!(at(path).unwrap_err(), format!("path '{path}': {why}{example}"));
        }
    }
}
