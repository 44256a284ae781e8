//! How much of the stall each object has, and what the record says of it.
//!
//! Where only some pages of the heap are chosen, an allocation that is known stands for others: of
//! a load's addresses on pages that are not chosen, it gets the share that it has of those on
//! chosen ones. Fewer addresses carry the figure then, and its interval is wider.

use crate::data::contexts::{self, contexts};
use crate::data::objects::{Found, Object, Objects};
use crate::samples::sites::SiteId;
use crate::share::measured_share;
use records::profile::{AllocationSite, MemoryObject};
use std::collections::{BTreeMap, HashMap, HashSet};
use units::{Estimate, Quantity, Unit};

/// Paths of calls to one site that the record names as addresses.
const MOST_PATHS: usize = 8;

/// Why a clock's samples tell no latency.
pub(crate) const NO_LATENCY: &str = "samples of a clock show stall, not latency";

/// The stall of one object, in samples.
#[derive(Debug, Default)]
struct Stall {
    samples: f64,
    /// The sum of the squares of what each address counts.
    squares: f64,
    threads: HashSet<u32>,
    paths: HashMap<SiteId, f64>,
}

/// What one sample of a load read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub thread: u32,
    pub found: Found,
    /// Its part of the load's stall: 1 where all samples cost the same.
    pub weight: f64,
}

#[derive(Debug, Default)]
pub(crate) struct ObjectStalls(HashMap<Object, Stall>);

impl ObjectStalls {
    /// Shares a load's stall among the objects that its addresses lie in; the one with most.
    pub(crate) fn count(&mut self, found: &[Reading], samples: f64) -> Option<Object> {
        let weights = |is: fn(&Found) -> bool| {
            found.iter().filter(|reading| is(&reading.found)).map(|reading| reading.weight).sum::<f64>()
        };
        let known = weights(|found| matches!(found, Found::OneOfMany(..)));
        let unknown = weights(|found| matches!(found, Found::NotChosen(_)));
        let many = if known > 0.0 { (known + unknown) / known } else { 1.0 };
        let all = weights(|_| true);
        let each = if all > 0.0 { samples / all } else { 0.0 };
        let mut here: BTreeMap<&Object, f64> = BTreeMap::new();
        for reading in found {
            let (object, path, stands_for) = match &reading.found {
                Found::Object(object) => (object, None, 1.0),
                Found::Allocation(object, path) => (object, *path, 1.0),
                Found::OneOfMany(object, path) => (object, Some(*path), many),
                Found::NotChosen(Some(object)) if known == 0.0 => (object, None, 1.0),
                Found::NotChosen(_) | Found::Nothing => continue,
            };
            let weight = reading.weight * stands_for;
            *here.entry(object).or_default() += weight;
            let stall = self.0.entry(object.clone()).or_default();
            stall.samples += each * weight;
            stall.squares += each * weight * weight;
            stall.threads.insert(reading.thread);
            if let Some(path) = path {
                *stall.paths.entry(path).or_default() += weight;
            }
        }
        here.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(object, _)| object.clone())
    }

    /// The objects with most stall.
    pub(crate) fn into_records(self, objects: &Objects<'_, '_>, all: u64, most: usize) -> Vec<MemoryObject> {
        let mut ordered: Vec<(Object, Stall)> = self.0.into_iter().collect();
        ordered.sort_by(|(a, x), (b, y)| y.samples.total_cmp(&x.samples).then_with(|| a.cmp(b)));
        let records = ordered.into_iter().take(most).enumerate();
        records
            .map(|(number, (object, stall))| {
                let with_contexts = number < contexts::OBJECTS;
                record(object, &stall, objects, all, with_contexts)
            })
            .collect()
    }
}

fn record(
    object: Object,
    stall: &Stall,
    objects: &Objects<'_, '_>,
    all: u64,
    with_contexts: bool,
) -> MemoryObject {
    // An address that counts for ten is known as well as a tenth of the samples would be.
    let known = if stall.squares > 0.0 { (stall.samples / stall.squares).min(1.0) } else { 1.0 };
    let share = measured_share((stall.samples * known).round() as u64, (all as f64 * known).round() as u64);
    let Some(number) = object.group else {
        return MemoryObject {
            name: object.name,
            site: None,
            bytes: match object.bytes {
                Some(bytes) => Quantity::claimed(bytes as f64, Unit::Bytes),
                None => Quantity::unresolved("the size is not known"),
            },
            count: 1,
            allocations: Quantity::unresolved("it is not known to be allocated"),
            stall: share,
            latency_share: Quantity::unresolved(NO_LATENCY),
            threads: stall.threads.len(),
        };
    };
    let group = &objects.sites.groups[number];
    let mut paths: Vec<(SiteId, f64)> = stall.paths.iter().map(|(path, weight)| (*path, *weight)).collect();
    paths.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    let bytes = group.bytes.map(|(least, most)| {
        let (least, most) = (least as f64, most as f64);
        Quantity::measured(Estimate { value: most, lo: least, hi: most }, Unit::Bytes)
    });
    MemoryObject {
        name: object.name,
        site: Some(AllocationSite {
            function: group.function.clone(),
            file: group.line.as_ref().map(|line| line.file.clone()),
            line: group.line.as_ref().map(|line| line.line),
            stack: paths.first().map_or_else(Vec::new, |(path, _)| objects.sites.stack(*path).to_vec()),
            paths: paths
                .iter()
                .take(MOST_PATHS)
                .map(|(path, _)| objects.sites.calls(*path).to_vec())
                .filter(|_| !group.maps)
                .collect(),
            is_mapped: group.maps,
            contexts: if with_contexts && !group.maps {
                contexts(objects, &paths, &share)
            } else {
                Vec::new()
            },
        }),
        bytes: bytes.unwrap_or_else(|| Quantity::unresolved("the size is not known")),
        count: group.most.round().max(1.0) as u64,
        allocations: allocations(
            group.allocations,
            group.squares,
            group.records,
            group.bytes.map_or(1, |(least, _)| least),
        ),
        stall: share,
        latency_share: Quantity::unresolved(NO_LATENCY),
        threads: stall.threads.len(),
    }
}

/// How many there were of this size or more, if this number of records stands for them: `squares`
/// is the sum over the records of the square of what each stands for, since later records of a
/// burst, which stand for many, make most of the error.
fn allocations(estimate: f64, squares: f64, records: u64, bytes: u64) -> Quantity {
    let each = estimate / (records.max(1) as f64);
    if each < 1.001 {
        return Quantity::measured(Estimate::exact(estimate.round()), Unit::Count);
    }
    // Pages are chosen, not allocations: those of one page come together.
    let of_page = (4096 / bytes.max(16)).max(1) as f64;
    let spread = 2.0 * ((squares + each * each) * of_page).sqrt();
    let (value, least) = (estimate.round(), (estimate - spread).round().max(records as f64));
    let estimate = Estimate::new(value, least.min(value), (estimate + spread).round());
    Quantity::modelled(estimate, Unit::Count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> Object {
        Object { name: name.to_owned(), bytes: None, which: 0, group: None }
    }

    fn read(found: Found) -> Reading {
        Reading { thread: 1, found, weight: 1.0 }
    }

    #[test]
    fn slow_reads_count_more() {
        let mut stalls = ObjectStalls::default();
        let slow = Reading { weight: 300.0, ..read(Found::Object(object("slow"))) };
        let quick = Reading { weight: 4.0, ..read(Found::Object(object("quick"))) };
        let found = [slow, quick.clone(), quick];
        assert_eq!(stalls.count(&found, 308.0).unwrap().name, "slow");
        assert_eq!(stalls.0[&object("quick")].samples.round() as u64, 8);
    }

    #[test]
    fn known_allocations_stand_for_those_on_other_pages() {
        let mut stalls = ObjectStalls::default();
        let mut found = vec![read(Found::Object(object("variable"))); 10];
        found.extend(vec![read(Found::OneOfMany(object("often"), SiteId(0))); 6]);
        found.extend(vec![read(Found::OneOfMany(object("seldom"), SiteId(1))); 3]);
        found.extend(vec![read(Found::NotChosen(Some(object("heap")))); 81]);
        let most = stalls.count(&found, 1000.0).unwrap();
        assert_eq!(most.name, "often");
        let samples = |name: &str| stalls.0[&object(name)].samples.round() as u64;
        assert_eq!((samples("variable"), samples("often"), samples("seldom")), (100, 600, 300));
        assert!(!stalls.0.contains_key(&object("heap")));
    }

    #[test]
    fn without_any_that_is_known_the_area_counts() {
        let mut stalls = ObjectStalls::default();
        let most = stalls.count(&[read(Found::NotChosen(Some(object("heap")))), read(Found::Nothing)], 10.0);
        assert_eq!(most.unwrap().name, "heap");
    }

    #[test]
    fn estimates_have_intervals() {
        assert_eq!(allocations(100.0, 100.0, 100, 64).value(), Some(100.0));
        let estimate = allocations(1600.0, 25_600.0, 100, 4096).estimate().unwrap();
        let small = allocations(1600.0, 25_600.0, 100, 64).estimate().unwrap();
        assert!(small.lo < estimate.lo && small.hi > estimate.hi, "they come in pages");
        assert!(estimate.lo < 1400.0 && estimate.hi > 1800.0 && estimate.lo >= 100.0);
    }
}
