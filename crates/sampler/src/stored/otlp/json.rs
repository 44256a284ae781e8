//! The same as JSON, a message a line, as the collector's file exporter writes it: numbers of 64
//! bits stand as text, names are those of the protocol in camel case.

use super::{LONGEST_LIST, Raw, RawAttribute, RawFunction, RawLocation, RawMapping, RawProfile, positive};
use crate::stored::StoredError;
use crate::stored::tree::Budget;
use crate::stored::wire::{Stream, damaged};
use serde_json::Value;
use std::io::BufRead;

/// A line is held in memory as a tree, which takes several times as much.
const LONGEST_LINE: u64 = 64 << 20;

pub(super) fn each<R: BufRead>(
    stream: &mut Stream<R>,
    budget: &mut Budget,
    mut take: impl FnMut(Raw, &mut Budget) -> Result<(), StoredError>,
) -> Result<(), StoredError> {
    let mut line = Vec::new();
    while stream.line(&mut line, LONGEST_LINE)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message: Value = serde_json::from_slice(&line)
            .map_err(|e| damaged(&format!("it is no JSON, a message a line: {e}")))?;
        take(raw(&message, budget)?, budget)?;
    }
    Ok(())
}

fn raw(message: &Value, budget: &mut Budget) -> Result<Raw, StoredError> {
    let mut raw = Raw::default();
    for resource in list(message, "resourceProfiles") {
        let attributes = list(&resource["resource"], "attributes");
        let named = |name: &str| {
            let pair = attributes.iter().find(|pair| pair["key"] == name)?;
            pair["value"]["stringValue"].as_str().map(str::to_owned)
        };
        let names = ["process.executable.path", "process.executable.name", "service.name"];
        raw.program = raw.program.take().or_else(|| names.into_iter().find_map(named));
        for profile in list(resource, "scopeProfiles").iter().flat_map(|scope| list(scope, "profiles")) {
            budget.take(size_of::<RawProfile>())?;
            let found = self::profile(profile, budget)?;
            raw.profiles.push(found);
        }
    }
    let dictionary = &message["dictionary"];
    for text in list(dictionary, "stringTable") {
        raw.texts.push(text.as_str().unwrap_or_default().as_bytes(), budget)?;
    }
    for mapping in list(dictionary, "mappingTable") {
        let found = RawMapping {
            start: number(mapping, "memoryStart"),
            limit: number(mapping, "memoryLimit"),
            offset: number(mapping, "fileOffset"),
            path: number(mapping, "filenameStrindex"),
            attributes: numbers(mapping, "attributeIndices"),
        };
        raw.add_mapping(found, budget)?;
    }
    for location in list(dictionary, "locationTable") {
        let lines = list(location, "lines").iter().take(LONGEST_LIST);
        let found = RawLocation {
            mapping: number(location, "mappingIndex"),
            address: number(location, "address"),
            lines: lines.map(|line| number(line, "functionIndex")).collect(),
            attributes: numbers(location, "attributeIndices"),
        };
        raw.add_location(found, budget)?;
    }
    for function in list(dictionary, "functionTable") {
        let found = RawFunction {
            name: number(function, "nameStrindex"),
            system_name: number(function, "systemNameStrindex"),
            path: number(function, "filenameStrindex"),
        };
        raw.add_function(found, budget)?;
    }
    for attribute in list(dictionary, "attributeTable") {
        let value = attribute["value"]["stringValue"].as_str().unwrap_or_default().to_owned();
        raw.add_attribute(RawAttribute { key: number(attribute, "keyStrindex"), value }, budget)?;
    }
    for stack in list(dictionary, "stackTable") {
        for location in list(stack, "locationIndices") {
            raw.push_frame(as_number(location), budget)?;
        }
        raw.end_stack(budget)?;
    }
    Ok(raw)
}

fn profile(profile: &Value, budget: &mut Budget) -> Result<RawProfile, StoredError> {
    let kind = |of: &Value| (number(of, "typeStrindex"), number(of, "unitStrindex"));
    let mut found = RawProfile {
        kind: kind(&profile["sampleType"]),
        period_kind: kind(&profile["periodType"]),
        period: number(profile, "period"),
        duration_ns: number(profile, "durationNano"),
        ..RawProfile::default()
    };
    for sample in list(profile, "samples") {
        let values = list(sample, "values");
        let mut sum = 0_u64;
        for value in values {
            sum = sum.saturating_add(positive(as_number(value))?);
        }
        let value = if values.is_empty() { list(sample, "timestampsUnixNano").len() as u64 } else { sum };
        found.add(number(sample, "stackIndex"), value, budget)?;
    }
    Ok(found)
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn numbers(of: &Value, name: &str) -> Vec<u64> {
    list(of, name).iter().take(LONGEST_LIST).map(as_number).collect()
}

fn number(of: &Value, name: &str) -> u64 {
    as_number(&of[name])
}

/// Zero where it is none, as in the protocol.
fn as_number(value: &Value) -> u64 {
    let of_text = |text: &str| text.parse().ok().or_else(|| text.parse::<i64>().ok().map(|it| it as u64));
    value
        .as_u64()
        .or_else(|| value.as_i64().map(|it| it as u64))
        .or_else(|| value.as_str().and_then(of_text))
        .unwrap_or(0)
}
