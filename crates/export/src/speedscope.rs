//! speedscope's own format: <https://www.speedscope.app/file-format-schema.json>
//!
//! Two profiles in one file: CPU time, and the part of it spent waiting for loads. Samples stand in
//! the order of the tree, since the record keeps no times of single samples.

use crate::Weight;
use crate::clean::clean;
use crate::stacks::{Stacks, command, name};
use records::Document;
use records::profile::Profile;
use serde_json::{Value, json};

pub(crate) fn text(document: &Document<Profile>, stacks: &Stacks<'_>, weight: Weight) -> String {
    let program = command(&document.body);
    let frames: Vec<Value> = stacks
        .frames()
        .iter()
        .map(|frame| {
            let mut value = json!({ "name": name(frame) });
            // Where there is no source, the file with the code tells as much as is known.
            if let Some(file) = frame.file.as_ref().or(frame.module.as_ref()) {
                value["file"] = json!(clean(file));
            }
            if let Some(line) = frame.line {
                value["line"] = json!(line);
            }
            value
        })
        .collect();
    let shown = [Weight::Time, Weight::Stall].into_iter().filter(|weight| stacks.total(*weight) > 0);
    let shown: Vec<Weight> = shown.collect();
    let profiles: Vec<Value> = shown
        .iter()
        .map(|&weight| sampled(&format!("{program}: {}", weight.title()), stacks, weight))
        .collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": format!("gleaner {}", clean(&document.header.gleaner)),
        "name": program,
        "activeProfileIndex": shown.iter().position(|shown| *shown == weight).unwrap_or(0),
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    format!("{file}\n")
}

fn sampled(title: &str, stacks: &Stacks<'_>, weight: Weight) -> Value {
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for (node, count) in stacks.sampled(weight) {
        let mut stack: Vec<usize> = stacks.outwards(node).map(|node| stacks.nodes()[node].frame).collect();
        stack.reverse();
        samples.push(stack);
        weights.push(stacks.ns(count));
    }
    json!({
        "type": "sampled",
        "name": title,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": weights.iter().sum::<u64>(),
        "samples": samples,
        "weights": weights,
    })
}
