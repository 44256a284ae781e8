//! Topology and memory attributes, as hwloc itself reads them.

use gleaner_export::hwloc::{NoTopology, xml};
use records::host::Fact;
use records::machine::Machine;
use serde_json::{Value, json};
use std::process::Command;
use testkit::TimeLimit;

/// Two packages of two cores with two threads each, a node for each half of a package, and a node
/// of memory only; every latency is 100 times the distance of the nodes, and each CPU reads at
/// 1 GiB/s.
fn machine() -> Machine {
    let fixture = testkit::root().join("crates/records/fixtures/machine.v1.interrupted.json");
    let mut record = records::read::<Machine>(&fixture).expect("a record").body;
    let cpu = |id: u32| {
        let core = id / 2;
        json!({"id": id, "online": true, "kind": "uniform", "package": core / 2, "die": 0, "cluster": {"unknown": ""},
               "core": core % 2, "node": core, "siblings": format!("{}-{}", core * 2, core * 2 + 1), "max_hz": 1})
    };
    let cache = |level: u32, kind: &str, cpus: String| {
        json!({"level": level, "kind": kind, "size": 32768 * 8_u32.pow(level), "line": 64, "ways": 8, "sets": 64,
               "shared_by": cpus})
    };
    let node = |id: u32, cpus: String| {
        json!({"id": id, "cpus": cpus, "total": 1_u64 << 34, "free": 1_u64 << 33, "distances": {"unknown": ""},
               "hugetlb": []})
    };
    let mut caches = Vec::new();
    for core in 0..4 {
        let own = format!("{}-{}", core * 2, core * 2 + 1);
        caches.extend([
            cache(1, "data", own.clone()),
            cache(1, "instruction", own.clone()),
            cache(2, "unified", own),
        ]);
    }
    caches.extend([cache(3, "unified", "0-3".to_owned()), cache(3, "unified", "4-7".to_owned())]);
    let mut nodes: Vec<Value> = (0..4).map(|id| node(id, format!("{}-{}", id * 2, id * 2 + 1))).collect();
    nodes.push(node(4, String::new()));
    let typed = |value: Value| serde_json::from_value(value).expect("a part of a host");
    record.host.cpus = serde_json::from_value((0..8).map(cpu).collect()).expect("CPUs");
    record.host.caches = serde_json::from_value(caches.into()).expect("caches");
    record.host.nodes = typed(nodes.into());
    record.host.topology.sockets = Fact::Known(2);
    let quantity = |value: f64, unit: &str| json!({"value": value, "lo": value * 0.9, "hi": value * 1.1, "unit": unit, "basis": "measured"});
    let pair = |from: i32, to: i32| {
        let ns = quantity(100.0 * f64::from((from - to).abs() + 1), "ns");
        json!({"from": from, "cpu": from * 2, "to": to, "distance_claimed": {"unresolved": ""},
               "latency": {"ns": ns, "cycles": {"unresolved": ""}, "ticks": {"unresolved": ""}},
               "read_rate": quantity(1073741824.0, "bytes/s")})
    };
    let matrix: Vec<Value> =
        (0..4).flat_map(|from| (0..5).map(move |to| (from, to))).map(|(a, b)| pair(a, b)).collect();
    let numa = json!({"status": "done", "seconds": 1.0, "result":
        {"local": 0, "nodes": [0, 1, 2, 3, 4], "size": 1, "placements": [], "matrix": matrix}});
    record.experiments.numa = Some(serde_json::from_value(numa).expect("an outcome"));
    record
}

#[test]
fn hwloc_reads_nodes_inside_packages() {
    let text = xml(&machine()).expect("a topology");
    if Command::new("lstopo-no-graphics").arg("--version").output().is_err() {
        eprintln!("skipped: hwloc is not here (apt install hwloc-nox)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let _limit = TimeLimit::new(folder.path());
    std::fs::write(folder.path().join("machine.xml"), text).expect("a file");
    let read = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(["--input", "machine.xml"]).args(arguments).current_dir(folder.path());
        let output = command.output().expect("hwloc");
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && complaints.is_empty(), "{program}: {complaints}");
        String::from_utf8(output.stdout).expect("text")
    };
    let counts = read("hwloc-info", &[]);
    for objects in ["2 Package", "2 L3Cache", "4 L2Cache", "4 L1dCache", "4 Core", "8 PU", "5 NUMANode"] {
        assert!(counts.contains(objects), "{objects}: {counts}");
    }
    let attributes = read("lstopo-no-graphics", &["--memattrs"]);
    let of = |name: &str| -> Vec<String> {
        let from = attributes.lines().skip_while(|line| !line.contains(&format!("`{name}'"))).skip(1);
        from.take_while(|line| line.starts_with(' ')).map(str::to_owned).collect()
    };
    let latency = of("Latency");
    assert_eq!(latency.len(), 20, "{attributes}");
    assert_eq!(latency.iter().filter(|line| line.contains("= 100 ")).count(), 4, "{attributes}");
    assert!(latency.iter().any(|line| line.contains("L#4") && line.contains("= 500 ")), "{attributes}");
    // One CPU read 1 GiB/s: 1024 MiB/s from its processing unit.
    assert!(of("ReadBandwidth").iter().all(|line| line.contains("= 1024 ")), "{attributes}");
    // The best target of a node's CPUs is its own memory.
    let best = read("hwloc-info", &["--local-memory", "--best-memattr", "Latency", "Core:2"]);
    assert!(best.contains("NUMANode L#2"), "{best}");
}

#[test]
fn what_has_no_topology_says_so() {
    let mut record = machine();
    record.experiments.numa = None;
    assert_eq!(xml(&record), Err(NoTopology::NoAttributes));
    record.host.cpus.clear();
    assert_eq!(xml(&record), Err(NoTopology::NoCpus));
}
