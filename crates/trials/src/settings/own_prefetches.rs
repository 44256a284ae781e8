//! Prefetches that a program has by itself. One that fetches what is in a cache anyhow costs its
//! place in the loop, and lines that are thrown out for it; one that comes too late fetches what is
//! waited for already.

use super::form::Form;
use crate::built::built;
use image::Module;
use records::profile::{FunctionShare, Profile};
use records::recipe::{BuiltFile, Setting};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use units::Svma;

/// Those of one function.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnPrefetches {
    pub file: BuiltFile,
    pub function: Option<String>,
    pub addresses: Vec<u64>,
    /// Of the CPU time, what the function takes.
    pub share: f64,
}

/// Of functions with less there is little to gain.
const LEAST_TIME: f64 = 0.05;

/// Those of all functions that take much time.
pub(crate) fn proposed(profile: &Profile) -> Vec<OwnPrefetches> {
    let mut by_module: BTreeMap<&str, Vec<&FunctionShare>> = BTreeMap::new();
    for function in &profile.functions {
        if function.time.value().is_some_and(|time| time >= LEAST_TIME) {
            by_module.entry(&function.module).or_default().push(function);
        }
    }
    by_module
        .into_iter()
        .flat_map(|(module, functions)| in_module(module, &functions).unwrap_or_default())
        .collect()
}

fn in_module(path: &str, functions: &[&FunctionShare]) -> Option<Vec<OwnPrefetches>> {
    let path = Path::new(path);
    if !path.is_absolute() {
        return None;
    }
    let data = fs::read(path).ok()?;
    let module = Module::around(&data, None, functions.iter().map(|function| Svma(function.address))).ok()?;
    let of = |function: &&FunctionShare| {
        let addresses = twin::own_prefetches(&module, function.address);
        let file = built(path).ok().filter(|_| !addresses.is_empty())?;
        let share = function.time.value()?;
        Some(OwnPrefetches { file, function: function.function.clone(), addresses, share })
    };
    Some(functions.iter().filter_map(of).collect())
}

/// How many bytes ahead of this load the program prefetches by itself.
pub(crate) fn ahead_of(path: &Path, load: u64) -> Option<i64> {
    let data = fs::read(path).ok()?;
    twin::own_ahead(&Module::around(&data, None, [Svma(load)]).ok()?, load)
}

pub(crate) fn forms(own: &OwnPrefetches) -> Vec<Form> {
    let OwnPrefetches { file, function, addresses, .. } = own.clone();
    vec![Form::new("left out", vec![Setting::WithoutPrefetches { file, function, addresses }])]
}
