//! Which caches are modelled: those of a machine record or of this host, and what is changed in
//! them.

use caches::{Buffers, Cache, Geometry, Last, Replacement};
use records::host::{CacheKind, Host};
use records::machine::Machine;
use records::profile::CacheModel;
use units::{Bytes, Quantity};

/// What is different from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If {
    L1(Bytes),
    L2(Bytes),
    L3(Bytes),
    /// All memory lies in pages of this size.
    Pages(Bytes),
}

impl std::str::FromStr for If {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, size) = text.split_once('=').ok_or("a change is a name and a size, as l3=64M")?;
        let size: Bytes = size.parse().map_err(|e: units::ParseBytesError| e.to_string())?;
        if !(1 << 12..=1 << 40).contains(&size.0) {
            return Err(format!("{size} is no size of such a thing"));
        }
        match what {
            "l1" | "L1" => Ok(Self::L1(size)),
            "l2" | "L2" => Ok(Self::L2(size)),
            "l3" | "L3" => Ok(Self::L3(size)),
            "pages" if size.0.is_power_of_two() => Ok(Self::Pages(size)),
            "pages" => Err(format!("{size} is no power of two")),
            _ => Err(format!("{what} cannot be changed; l1, l2, l3 and pages can")),
        }
    }
}

/// What is modelled, and what memory delivers at most.
#[derive(Clone, Debug)]
pub struct Settings {
    pub geometry: Geometry,
    pub cores: usize,
    /// Bytes a second.
    pub maximum: Quantity,
    because: String,
}

/// A common server's, where nothing is known.
const USUAL: Geometry = Geometry {
    l1: Cache { bytes: 32 << 10, ways: 8 },
    l2: Cache { bytes: 1 << 20, ways: 8 },
    l3: Vec::new(),
    buffers: Buffers { first: 64, second: 2048, page_bytes: 4096 },
};
const USUAL_L3: Cache = Cache { bytes: 32 << 20, ways: 16 };
/// A last level that is known this well needs no second model.
const WELL_KNOWN: f64 = 0.05;

impl Settings {
    /// Of a host, and of what was measured there if there is a record.
    pub fn of(host: &Host, machine: Option<&Machine>, changes: &[If]) -> Self {
        let mut said = Vec::new();
        let mut cache = |level: u32, usual: Cache| {
            let claimed = host.caches.iter().find(|cache| {
                cache.level == level && matches!(cache.kind, CacheKind::Data | CacheKind::Unified)
            });
            let bytes = claimed.and_then(|cache| cache.size.get()).map(|size| size.0);
            let ways = claimed.and_then(|cache| cache.ways.get()).copied().filter(|&ways| ways > 0);
            if bytes.is_none() {
                said.push(format!("L{level} is not told: a usual one"));
            }
            Cache { bytes: bytes.unwrap_or(usual.bytes), ways: ways.unwrap_or(usual.ways).min(64) }
        };
        let (mut l1, mut l2) = (cache(1, USUAL.l1), cache(2, USUAL.l2));
        let mut l3 = cache(3, USUAL_L3);
        let mut ends = Vec::new();
        if let Some(size) = machine.and_then(|machine| size_of(machine, "L3")).and_then(Quantity::estimate) {
            // What a guest can use may be a part of what the processor has.
            l3.bytes = size.value as u64;
            said.push("L3 as it was measured".to_owned());
            if size.relative_half_width() > WELL_KNOWN {
                ends = vec![size.lo as u64, size.hi as u64];
            }
        } else {
            said.push("sizes as the host claims them".to_owned());
        }
        let mut buffers = buffers(host);
        for change in changes {
            match *change {
                If::L1(size) => l1.bytes = size.0,
                If::L2(size) => l2.bytes = size.0,
                If::L3(size) => (l3.bytes, ends) = (size.0, Vec::new()),
                If::Pages(size) => buffers.page_bytes = size.0,
            }
            said.push(match change {
                If::L1(size) => format!("L1 changed to {size}"),
                If::L2(size) => format!("L2 changed to {size}"),
                If::L3(size) => format!("L3 changed to {size}"),
                If::Pages(size) => format!("pages changed to {size}"),
            });
        }
        let is_victim = has_victim(host, l2);
        let last = |cache: Cache, replacement| Last { cache, replacement, is_victim };
        let mut all = vec![last(l3, Replacement::LeastRecentlyUsed), last(l3, Replacement::Any)];
        all.extend(ends.into_iter().map(|bytes| last(Cache { bytes, ..l3 }, Replacement::LeastRecentlyUsed)));
        Self {
            geometry: Geometry { l1, l2, l3: all, buffers },
            cores: cores(host),
            maximum: maximum(machine),
            because: said.join("; "),
        }
    }

    /// As the record has it.
    pub(crate) fn model(&self) -> CacheModel {
        let Geometry { l1, l2, l3, buffers } = &self.geometry;
        CacheModel {
            l1: Bytes(l1.bytes),
            l2: Bytes(l2.bytes),
            l3: Bytes(l3[0].cache.bytes),
            l3_is_victim: l3[0].is_victim,
            tlb_first: buffers.first,
            tlb_second: buffers.second,
            page: Bytes(buffers.page_bytes),
            cores: self.cores as u32,
            because: self.because.clone(),
        }
    }
}

fn size_of<'m>(machine: &'m Machine, name: &str) -> Option<&'m Quantity> {
    machine.levels.iter().find(|level| level.name == name).map(|level| &level.size)
}

/// AMD's last levels since Zen, and Intel's beside a large L2, hold what L2 replaces.
fn has_victim(host: &Host, l2: Cache) -> bool {
    let is_amd = host.processor.vendor.get().is_some_and(|vendor| vendor.contains("AMD"));
    is_amd || l2.bytes >= 1 << 20
}

fn buffers(host: &Host) -> Buffers {
    let claimed = |level: u32| {
        let of_data = |kind: CacheKind| matches!(kind, CacheKind::Data | CacheKind::Unified);
        let claims = host.tlb_claims.iter().filter(|claim| claim.level == level && of_data(claim.kind));
        claims.filter(|claim| claim.pages.iter().any(|pages| pages == "4K")).map(|claim| claim.entries).max()
    };
    Buffers {
        first: claimed(1).unwrap_or(USUAL.buffers.first),
        second: claimed(2).unwrap_or(USUAL.buffers.second),
        ..USUAL.buffers
    }
}

/// Groups of CPUs that have an L2 for themselves.
fn cores(host: &Host) -> usize {
    let usable = host.usable_cpus();
    let mut groups: Vec<String> = host
        .caches
        .iter()
        .filter(|cache| cache.level == 2 && usable.iter().any(|&cpu| cache.shared_by.contains(cpu)))
        .map(|cache| cache.shared_by.to_string())
        .collect();
    groups.sort();
    groups.dedup();
    if groups.is_empty() { usable.len().max(1) } else { groups.len() }
}

fn maximum(machine: Option<&Machine>) -> Quantity {
    let none = "no machine record tells the maximum: 'gleaner measure bandwidth' makes one";
    let outcome = machine.and_then(|machine| machine.experiments.bandwidth.as_ref());
    let result = outcome.and_then(|outcome| outcome.result.as_ref());
    result.map_or(Quantity::unresolved(none), |bandwidth| bandwidth.platform_maximum.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_a_name_and_a_size() {
        assert_eq!("l3=64M".parse(), Ok(If::L3(Bytes::mib(64))));
        assert_eq!("pages=2M".parse(), Ok(If::Pages(Bytes::mib(2))));
        for wrong in ["l3", "l3=", "l4=64M", "pages=3M", "l1=0", "=4K", "l3=-1"] {
            assert!(wrong.parse::<If>().is_err(), "{wrong}");
        }
    }
}
