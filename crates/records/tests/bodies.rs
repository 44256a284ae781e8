//! Bodies of records are read as `serde_json` reads them: the committed records, and each of them
//! with one of its values replaced or left out. A list in place of a structure is refused, where
//! `serde_json` takes its elements for the fields in their order.

use gleaner_records::{Misfit, Record, machine, plan, profile, read_any, recipe, reproduction, run, tour};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::path::Path;

/// One step from a value to one inside it.
#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Element(usize),
}

/// Ways to every value inside this one.
fn ways(value: &Value, at: &mut Vec<Step>, all: &mut Vec<Vec<Step>>) {
    let inside: Vec<(Step, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, v)| (Step::Field(name.clone()), v)).collect(),
        Value::Array(elements) => elements.iter().enumerate().map(|(n, v)| (Step::Element(n), v)).collect(),
        _ => Vec::new(),
    };
    for (step, value) in inside {
        at.push(step);
        all.push(at.clone());
        ways(value, at, all);
        at.pop();
    }
}

fn go<'a>(mut value: &'a mut Value, way: &[Step]) -> &'a mut Value {
    for step in way {
        value = match step {
            Step::Field(name) => &mut value[name],
            Step::Element(index) => &mut value[index],
        };
    }
    value
}

fn leave_out(body: &mut Value, way: &[Step]) {
    let (last, before) = way.split_last().expect("a way has a step");
    match (go(body, before), last) {
        (Value::Object(fields), Step::Field(name)) => drop(fields.shift_remove(name)),
        (Value::Array(elements), Step::Element(index)) => drop(elements.remove(*index)),
        (value, step) => unreachable!("{step:?} of {value}"),
    }
}

/// A list where a structure should be: `serde_json` takes its elements for the fields.
fn is_list(misfit: &Misfit) -> bool {
    misfit.what.starts_with("invalid type: sequence, expected ")
}

/// Whether it was read. Both readers agree on that, and on what.
fn compare<R: Record + DeserializeOwned + PartialEq + Debug>(body: &Value, what: &str) -> bool {
    match (R::from_body(body), serde_json::from_value::<R>(body.clone())) {
        (Ok(own), Ok(theirs)) => {
            assert!(own == theirs, "{what}");
            true
        }
        (Err(_), Err(_)) => false,
        (Err(own), Ok(_)) if is_list(&own) => false,
        (own, theirs) => panic!("{what}: {:?}, by serde_json {:?}", own.err(), theirs.err()),
    }
}

fn compare_all<R: Record + DeserializeOwned + PartialEq + Debug>(body: &Value, file: &str) -> (usize, usize) {
    assert!(compare::<R>(body, file));
    let mut all = Vec::new();
    ways(body, &mut Vec::new(), &mut all);
    let (mut read, mut refused) = (0, 0);
    // A large record has the same kinds of values again and again.
    let step = all.len() / 500 + 1;
    for way in all.iter().step_by(step) {
        let others = [json!(null), json!(true), json!(-1), json!(0.5), json!("x"), json!([]), json!({})];
        let replaced = others.into_iter().map(|other| {
            let mut body = body.clone();
            *go(&mut body, way) = other;
            body
        });
        let mut without = body.clone();
        leave_out(&mut without, way);
        for body in replaced.chain([without]) {
            if compare::<R>(&body, &format!("{file} {way:?}")) { read += 1 } else { refused += 1 }
        }
    }
    (read, refused)
}

#[test]
fn bodies_are_read_as_serde_json_reads_them() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (mut read, mut refused) = (0, 0);
    for entry in std::fs::read_dir(fixtures).expect("fixtures") {
        let path = entry.expect("an entry").path();
        let file = path.display().to_string();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let record = read_any(&path).expect("a record");
        let counts = match record.header.kind.as_str() {
            "machine" => compare_all::<machine::Machine>(&record.body, &file),
            "plan" => compare_all::<plan::Plan>(&record.body, &file),
            "profile" => compare_all::<profile::Profile>(&record.body, &file),
            "recipe" => compare_all::<recipe::Recipe>(&record.body, &file),
            "reproduction" => compare_all::<reproduction::Reproduction>(&record.body, &file),
            "run" => compare_all::<run::Run>(&record.body, &file),
            "tour" => compare_all::<tour::Tour>(&record.body, &file),
            other => panic!("{file}: '{other}' is compared by nothing here"),
        };
        read += counts.0;
        refused += counts.1;
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}
