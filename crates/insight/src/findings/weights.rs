//! What a profile is weighed by: the sizes of this machine's caches and what a yield costs on it,
//! as `gleaner measure` found them, or as the kernel claims and as common machines have them.

use crate::data::level::CacheSizes;
use crate::probes::latency::Latencies;
use model::predict::MeasuredCurve;
use model::prices::{assumed, from_machine, typical_yield};
use records::Document;
use records::host::{CacheKind, Host};
use records::machine::Machine;
use std::path::Path;
use units::{Bytes, Estimate};

/// By what figures of a profile are modelled.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub caches: CacheSizes,
    pub yield_cycles: Estimate,
    pub latencies: Latencies,
}

const LEVELS: [&str; 4] = ["L1", "L2", "L3", "DRAM"];

/// Where there is no machine record: common processors' L1 takes this.
const USUAL: Latencies = Latencies { l1_ns: 1.5, levels: [None; 4], by_area: None };

impl Weights {
    /// Those of this host, by a machine record of it, if there is one, and where that lies.
    pub fn of(host: &Host, record: Option<(&Path, &Document<Machine>)>) -> Self {
        let claimed = claimed(host);
        let Some((path, document)) = record else {
            let prices = assumed("there is no machine record of this host");
            return Self { caches: claimed, yield_cycles: typical_yield(&prices), latencies: USUAL };
        };
        let latencies = latencies(&document.body).unwrap_or(USUAL);
        let measured = |number: usize| {
            let level = document.body.levels.iter().find(|level| level.name == LEVELS[number])?;
            Some(Bytes(level.size.value()?.max(serves_most_of(number, &latencies)) as u64))
        };
        let caches = CacheSizes {
            l1: measured(0).or(claimed.l1),
            l2: measured(1).or(claimed.l2),
            l3: measured(2).or(claimed.l3),
            own_l3: if measured(2).is_some() { None } else { claimed.own_l3 },
        };
        Self { caches, yield_cycles: typical_yield(&from_machine(path, document)), latencies }
    }
}

fn latencies(machine: &Machine) -> Option<Latencies> {
    let levels = LEVELS.map(|name| {
        let level = machine.levels.iter().find(|level| level.name == name)?;
        level.latency.ns.estimate()
    });
    let [Some(l1), .., Some(_)] = levels else { return None };
    let by_area = machine.experiments.latency.as_ref().and_then(|latency| latency.result.as_ref());
    let by_area = by_area.and_then(MeasuredCurve::random_reads);
    Some(Latencies { l1_ns: l1.value, levels, by_area })
}

/// The largest area of which a cache serves most reads; 0 where that is not known. One that others
/// share, or whose lines have few places, gives way slowly: beyond its size a good part of an area
/// is still in it.
fn serves_most_of(number: usize, latencies: &Latencies) -> f64 {
    let of = |number: usize| latencies.levels.get(number).copied().flatten().map(|ns| ns.value);
    let behind = (number + 1..LEVELS.len()).find_map(of);
    let between = of(number).zip(behind).map(|(own, behind)| (own * behind).sqrt());
    between.zip(latencies.by_area.as_ref()).and_then(|(ns, curve)| curve.exceeds_from(ns)).unwrap_or(0.0)
}

/// What each CPU of a guest has of L3 in any case: servers' cores come with this much of it or not
/// much less. The claim is of all of it, whichever other machines use it.
const SURELY_OF_L3: Bytes = Bytes(4 << 20);

/// The sizes of the caches as the kernel claims them: those of the first CPU.
fn claimed(host: &Host) -> CacheSizes {
    let size = |level: u8| {
        let serves_data = |kind: CacheKind| kind != CacheKind::Instruction;
        let found =
            host.caches.iter().find(|c| u64::from(c.level) == u64::from(level) && serves_data(c.kind));
        found.and_then(|cache| cache.size.value())
    };
    let l3 = size(3);
    let online = host.cpus.iter().filter(|cpu| cpu.online).count().max(1);
    let surely = Bytes(online as u64 * SURELY_OF_L3.0);
    let is_guest = host.virtualization.hypervisor.get().is_some_and(|name| name != "none");
    let own_l3 = l3.filter(|l3| is_guest && *l3 > surely).map(|_| surely);
    CacheSizes { l1: size(1), l2: size(2), l3, own_l3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Document<Machine> {
        let path = testkit::root().join("crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz");
        let (file, mut bytes) = (std::fs::read(path).unwrap(), Vec::new());
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&file[..]), &mut bytes).unwrap();
        records::parse(&bytes).unwrap()
    }

    #[test]
    fn a_record_of_this_host_weighs_its_profiles() {
        let document = recorded();
        let host = document.body.host.clone();
        let weights = Weights::of(&host, Some((Path::new("machine.json"), &document)));
        let latencies = &weights.latencies;
        assert!((1.0..1.2).contains(&latencies.l1_ns) && latencies.by_area.is_some());
        let caches = [weights.caches.l1, weights.caches.l2, weights.caches.l3];
        assert!(caches.windows(2).all(|pair| pair[0].is_some() && pair[0] < pair[1]), "{caches:?}");
        let measured = typical_yield(&from_machine(Path::new("machine.json"), &document));
        assert_eq!(weights.yield_cycles, measured);
    }

    #[test]
    fn without_a_record_common_machines_weigh_them() {
        let host = recorded().body.host;
        let weights = Weights::of(&host, None);
        assert_eq!((weights.latencies, weights.caches), (USUAL, claimed(&host)));
        assert_eq!(weights.yield_cycles, typical_yield(&assumed("a test")));
    }
}
