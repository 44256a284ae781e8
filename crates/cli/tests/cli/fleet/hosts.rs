//! A made-up fleet: the figures of a real host, with the spread of real hosts, as three kinds of
//! hardware, and with planted faults. The same seed makes the same fleet.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use units::Rng;

/// Hosts of each kind of hardware.
const HARDWARE: [Hardware; 3] = [
    Hardware { processor: "EPYC 7763", hosts: 650, latency: 1.0, bandwidth: 8.0, nodes: 2 },
    Hardware { processor: "Xeon 8480", hosts: 500, latency: 1.2, bandwidth: 9.5, nodes: 1 },
    Hardware { processor: "EPYC 9654", hosts: 50, latency: 1.1, bandwidth: 15.0, nodes: 2 },
];
/// One host of this number has a fault.
const FAULT_EVERY: usize = 30;

struct Hardware {
    processor: &'static str,
    hosts: usize,
    /// Against the real host.
    latency: f64,
    bandwidth: f64,
    nodes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// One channel of eight at half of its speed.
    SlowDimm,
    MissingDimm,
    MemorySpeed,
    Nps,
    PrefetchersOff,
    HugePagesOff,
    NoisyNeighbour,
    PowerCap,
}

impl Fault {
    const ALL: [Self; 8] = [
        Self::SlowDimm,
        Self::MissingDimm,
        Self::MemorySpeed,
        Self::Nps,
        Self::PrefetchersOff,
        Self::HugePagesOff,
        Self::NoisyNeighbour,
        Self::PowerCap,
    ];

    /// Figures and claims of which one at least must be named of a host with this fault.
    pub(super) fn signs(self) -> &'static [&'static str] {
        match self {
            Self::SlowDimm => &["bandwidth_all", "copy_all"],
            Self::MissingDimm => &["bandwidth_all", "memory"],
            Self::MemorySpeed => &["bandwidth_all", "memory_latency.ns"],
            Self::Nps => &["nodes"],
            Self::PrefetchersOff => &["prefetch_gain", "bandwidth_one"],
            Self::HugePagesOff => &["huge_pages", "thp"],
            Self::NoisyNeighbour => &["void_share", "cache_latency.ns"],
            Self::PowerCap => &["core_clock"],
        }
    }

    /// The figures that it moves, and by what factor.
    fn factors(self) -> &'static [(&'static str, f64)] {
        match self {
            // One of eight channels gives the pace of an interleaved stream.
            Self::SlowDimm => &[("bandwidth_all", 0.90), ("copy_all", 0.90)],
            Self::MissingDimm => &[("bandwidth_all", 0.875), ("copy_all", 0.875)],
            Self::MemorySpeed => &[("bandwidth_all", 0.83), ("copy_all", 0.83), ("memory_latency", 1.08)],
            Self::Nps => &[("memory_latency", 0.93)],
            Self::PrefetchersOff => &[("prefetch_gain", 0.12), ("bandwidth_one", 0.45)],
            Self::HugePagesOff => &[("huge_pages", 0.0), ("memory_latency", 1.2)],
            Self::NoisyNeighbour => {
                &[("cache_latency", 1.3), ("memory_spread", 1.6), ("bandwidth_all", 0.93)]
            }
            Self::PowerCap => &[("core_clock", 0.8), ("cache_latency", 1.15)],
        }
    }
}

#[derive(Debug)]
pub(super) struct Planted {
    pub(super) host: String,
    pub(super) fault: Fault,
}

pub(super) struct Fleet {
    planted: Vec<Planted>,
    hosts: usize,
}

/// A probe's record with the figures of a whole run on a real host.
pub(super) fn probe_record() -> Value {
    let path = testkit::root().join("crates/records/fixtures/machine.v1.full-run-zen4-guest.json.gz");
    let unpacked = Command::new("gzip").arg("-dc").arg(path).output().expect("gzip").stdout;
    let mut record: Value = serde_json::from_slice(&unpacked).expect("JSON");
    let result = |name: &str| &record["experiments"][name]["result"];
    let level = |name: &str| {
        let levels = record["levels"].as_array().expect("levels");
        levels.iter().find(|level| level["name"] == name).expect("a level")["latency"].clone()
    };
    let curves = result("latency")["curves"].as_array().expect("curves");
    let last = |pages: &str| {
        let mut random =
            curves.iter().filter(|curve| curve["pattern"] == "random" && curve["access"] == "read");
        let curve = random.find(|curve| curve["pages"]["asked"] == pages).expect("a curve");
        (curve["points"].as_array().expect("points").last().expect("a point"), &curve["pages"])
    };
    let ((huge, supply), (small, _)) = (last("thp"), last("4K"));
    let ratio = |value: f64, lo: f64, hi: f64| json!({"value": value, "lo": lo, "hi": hi, "unit": "ratio", "basis": "measured"});
    let number = |value: &Value| value.as_f64().expect("a number");
    let spread = number(&huge["p95_ns"]) / number(&huge["p05_ns"]);
    let share = number(&supply["share"]);
    let revealed = result("prefetch")["revealed"].as_array().expect("sizes").last().expect("memory");
    let mut gain = revealed["ahead_forward"].clone();
    gain["unit"] = "ratio".into();
    let streams = result("bandwidth")["streams"].as_array().expect("streams");
    let of_memory =
        streams.iter().filter(|stream| stream["within"] == "DRAM" && stream["operation"] == "copy");
    let copy = of_memory.max_by_key(|stream| stream["threads"].as_u64()).expect("a copy");
    let (void, valid) =
        (number(&record["run"]["blocks"]["voided"]), number(&record["run"]["blocks"]["valid"]));
    let void = void / (void + valid);
    let probe = json!({
        "core_clock": result("clock")["core"],
        "cache_latency": level("L3"),
        "cache_area": 4_194_304,
        "memory_latency": level("DRAM"),
        "pages": supply,
        "memory_area": huge["size"],
        "memory_spread": ratio(spread, spread * 0.98, spread * 1.02),
        "small_pages_latency": small["latency"],
        "huge_pages": ratio(share, share, share),
        "prefetch_gain": gain,
        "bandwidth_one": result("bandwidth")["single_maximum"],
        "bandwidth_all": result("bandwidth")["platform_maximum"],
        "copy_all": copy["rate"],
        "threads": 2,
        "void_share": ratio(void, void * 0.9, void * 1.1),
        "node_balance": {"unresolved": "this host shows only one NUMA node"},
    });
    record["run"]["host_name"] = "node17".into();
    record["levels"] = json!([]);
    record["experiments"] = json!({"probe": {"status": "done", "seconds": 10.0, "result": probe}});
    record
}

impl Fleet {
    /// A file for each host.
    pub(super) fn written_to(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).expect("a directory");
        let real = probe_record();
        let mut random = Rng::new(20_261_127);
        let mut fleet = Self { planted: Vec::new(), hosts: 0 };
        for hardware in &HARDWARE {
            for _ in 0..hardware.hosts {
                let host = format!("node{:04}", fleet.hosts);
                let nth = fleet.hosts / FAULT_EVERY;
                let fault = (fleet.hosts % FAULT_EVERY == 7).then(|| Fault::ALL[nth % Fault::ALL.len()]);
                let record = made_up(&real, hardware, &host, fault, &mut random);
                let path = directory.join(format!("{host}.json"));
                std::fs::write(path, record.to_string()).expect("a record");
                fleet.planted.extend(fault.map(|fault| Planted { host, fault }));
                fleet.hosts += 1;
            }
        }
        fleet
    }

    pub(super) fn planted(&self) -> &[Planted] {
        &self.planted
    }

    pub(super) fn hosts(&self) -> usize {
        self.hosts
    }
}

/// How far hosts of one kind differ, as a share: silicon, temperature, memory of several makers.
fn spread_of_hosts(figure: &str) -> f64 {
    match figure {
        "core_clock" => 0.004,
        "cache_latency" | "memory_spread" => 0.02,
        "prefetch_gain" => 0.03,
        "huge_pages" => 0.0,
        _ => 0.012,
    }
}

fn made_up(real: &Value, hardware: &Hardware, host: &str, fault: Option<Fault>, random: &mut Rng) -> Value {
    let mut record = real.clone();
    // One in twenty was probed while something else ran: all its figures are a little off.
    let busy = unit(random) < 0.05;
    record["run"]["host_name"] = host.into();
    record["run"]["seed"] = random.below(1_000_000_000).into();
    record["host"]["identity"]["product"] = format!("Maker R{}", hardware.processor.len()).into();
    record["host"]["processor"]["name"] = hardware.processor.into();
    record["host"]["topology"]["sockets"] = 2.into();
    let memory = if fault == Some(Fault::MissingDimm) { 480.0 } else { 512.0 };
    // The kernel keeps a part, not the same in every version.
    let bytes = (memory - 4.0 - unit(random)) * f64::from(1 << 30);
    record["host"]["memory"]["total"] = json!(bytes as u64);
    if fault == Some(Fault::HugePagesOff) {
        record["host"]["pages"]["thp"]["enabled"] = "never".into();
    }
    let nodes = if fault == Some(Fault::Nps) { hardware.nodes * 4 } else { hardware.nodes };
    let node = record["host"]["nodes"][0].clone();
    record["host"]["nodes"] = (0..nodes).map(|id| with(&node, "id", id)).collect();

    let probe = &mut record["experiments"]["probe"]["result"];
    for (figure, scale) in [
        ("core_clock", 1.0),
        ("cache_latency", hardware.latency),
        ("memory_latency", hardware.latency),
        ("small_pages_latency", hardware.latency),
        ("memory_spread", 1.0),
        ("huge_pages", 1.0),
        ("prefetch_gain", 1.0),
        ("bandwidth_one", 1.0),
        ("bandwidth_all", hardware.bandwidth),
        ("copy_all", hardware.bandwidth),
    ] {
        let planted = fault.map_or(1.0, |fault| {
            fault.factors().iter().find(|(name, _)| *name == figure).map_or(1.0, |(_, factor)| *factor)
        });
        let disturbed = if busy { 1.0 + 0.02 * unit(random) } else { 1.0 };
        let noise = 1.0 + spread_of_hosts(figure) * normal(random);
        scale_figure(&mut probe[figure], scale * planted * disturbed * noise);
    }
    let void = if fault == Some(Fault::NoisyNeighbour) { 0.35 } else { 0.01 + 0.04 * unit(random).powi(3) };
    let void = if busy { void + 0.05 } else { void };
    probe["void_share"] =
        json!({"value": void, "lo": void * 0.9, "hi": void * 1.1, "unit": "ratio", "basis": "measured"});
    record
}

fn with(node: &Value, field: &str, value: usize) -> Value {
    let mut node = node.clone();
    node[field] = value.into();
    node
}

/// A quantity, or each of a latency's three.
fn scale_figure(figure: &mut Value, factor: f64) {
    for name in ["ns", "cycles", "ticks"] {
        if figure.get(name).is_some() {
            scale_figure(&mut figure[name], factor);
        }
    }
    for end in ["value", "lo", "hi"] {
        if let Some(number) = figure.get(end).and_then(Value::as_f64) {
            figure[end] = (number * factor).into();
        }
    }
}

/// Uniform from 0 to 1.
fn unit(random: &mut Rng) -> f64 {
    random.below(1 << 53) as f64 / (1_u64 << 53) as f64
}

/// Of the standard normal distribution, by Box and Muller.
fn normal(random: &mut Rng) -> f64 {
    let (radius, angle) = (unit(random).max(f64::MIN_POSITIVE), unit(random));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
