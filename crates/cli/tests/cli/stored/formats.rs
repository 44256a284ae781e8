//! Formats that are made by their own libraries from samples that were just taken; and files that
//! are kept, of profilers that need not be here.

use super::{built_by_go, first, gleaner, place, profiled, ran, refused, share_of};
use records::profile::{FileFormat, Pattern, Profile};
use std::path::{Path, PathBuf};
use testkit::{Place, text};

/// Writes Go's profile as OpenTelemetry's, by the libraries of both: `x.otlp`, `x.lengths`,
/// `x.json`.
#[track_caller]
pub(super) fn to_otlp(place: &Place, python: &Path, profile: &str, program: &str, kind: &str) {
    let raw = place.command("go").args(["tool", "pprof", "-raw", profile]).output().unwrap();
    assert!(raw.status.success(), "{}", text(&raw.stderr));
    std::fs::write(place.at("raw"), &raw.stdout).unwrap();
    let program = place.at(program).display().to_string();
    let script = include_str!("to_otlp.py");
    let output = place.command(python).args(["-c", script, "raw", &program, "x", kind]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Gives the program's mapping in a profile of OpenTelemetry a build ID.
#[track_caller]
pub(super) fn with_build_id(place: &Place, python: &Path, file: &str, id: &str) {
    const SCRIPT: &str = r#"
import sys
from opentelemetry.proto.profiles.v1development import profiles_pb2 as pb
file, id = sys.argv[1:]
data = pb.ProfilesData.FromString(open(file, "rb").read())
words = data.dictionary
words.string_table.append("process.executable.build_id.gnu")
attribute = words.attribute_table.add(key_strindex=len(words.string_table) - 1)
attribute.value.string_value = id
words.mapping_table[1].attribute_indices.append(len(words.attribute_table) - 1)
open(file, "wb").write(data.SerializeToString())
"#;
    let output = place.command(python).args(["-c", SCRIPT, file, id]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

fn fixture(name: &str) -> PathBuf {
    testkit::root().join("crates/sampler/fixtures").join(name)
}

#[test]
fn opentelemetry_names_the_loads_that_stall() {
    let place = place();
    let Some(python) = testkit::python_reader() else { return };
    if !built_by_go(&place, &[], "stalls") {
        return;
    }
    ran(&place, "stalls", &["cpu.pb.gz"]);
    let (of_pprof, _) = profiled(&place, &["--pprof", "cpu.pb.gz"]);
    to_otlp(&place, &python, "cpu.pb.gz", "stalls", "cpu");
    let gzipped = place.command("gzip").args(["-k", "x.otlp"]).status().unwrap();
    assert!(gzipped.success());
    for file in ["x.otlp", "x.otlp.gz", "x.lengths", "x.json"] {
        let (profile, told) = profiled(&place, &["--otlp", file]);
        assert_eq!(profile.sampling.samples, of_pprof.sampling.samples, "{file}: {told}");
        assert_eq!(profile.program.perf_data.as_ref().unwrap().format, FileFormat::Otlp);
        let loads = |profile: &Profile| -> Vec<(u64, u64)> {
            profile.loads.iter().map(|load| (load.address, load.samples)).collect()
        };
        assert_eq!(loads(&profile), loads(&of_pprof), "{file}: {told}");
        assert!(share_of(&profile, "main.chase", &[Pattern::Chain]) >= 0.95, "{file}: {told}");
    }
    // Samples of anything else are not time.
    to_otlp(&place, &python, "cpu.pb.gz", "stalls", "off_cpu");
    let told = refused(&place, &["--otlp", "x.otlp"]);
    assert!(told.contains("no samples of CPU time: its samples are samples/count"), "{told}");
}

#[test]
fn profiles_that_are_kept_are_read_by_function() {
    let place = place();
    for (file, function, format) in [
        ("py-spy.folded", "inner (spy.py:5)", "--collapsed"),
        ("async-profiler.folded", "Chase.chase", "--collapsed"),
        ("pprof-rs.pb", "chase", "--pprof"),
    ] {
        let path = fixture(file);
        let (profile, told) = profiled(&place, &[format, path.to_str().unwrap()]);
        assert!(
            profile.functions[0].function.as_deref().is_some_and(|name| name.contains(function)),
            "{file}: {told}"
        );
        assert!(profile.loads.is_empty() && profile.summary.memory_bound.value().is_none(), "{file}: {told}");
        assert!(told.contains("name functions and no instructions"), "{file}: {told}");
        assert!(!profile.calls.nodes.is_empty(), "{file}: {told}");
    }
}

#[test]
fn frames_that_are_addresses_name_loads() {
    let place = place();
    assert!(place.compile("cc", "p", &["-O1", "-g"]));
    let rows = gleaner(&place, &["sites", "p"]).output().unwrap();
    let rows = text(&rows.stdout);
    let chain =
        rows.lines().find(|row| row.contains(",load,chain,chase,")).unwrap_or_else(|| panic!("{rows}"));
    let cells: Vec<u64> = chain.split(',').skip(2).take(6).map(|cell| cell.parse().unwrap()).collect();
    let (from_address, load_address) = (cells[2], cells[5]);
    let path = place.at("p").display().to_string();
    std::fs::write(place.at("folded"), format!("main;{path}+{from_address:#x} 40\nmain;other 2\n")).unwrap();
    let (profile, told) = profiled(&place, &["--collapsed", "folded"]);
    let load = first(&profile, "chase").unwrap_or_else(|| panic!("{told}"));
    assert_eq!((load.address, load.samples, load.pattern), (load_address, 40, Pattern::Chain));
    assert!(told.contains("2 samples name functions and no instructions"), "{told}");
}

/// A gather, and a loop that computes with a load whose data stays near.
const COMPUTES: &str = r#"
#include <stdio.h>
unsigned indices[4096]; long table[1 << 20]; long few[64];
__attribute__((noinline, noclone)) long gather(long from) {
    long sum = 0;
    for (long i = 0; i < 4096; i++) sum += table[from + indices[i]];
    return sum;
}
__attribute__((noinline, noclone)) long compute(long n, long x) {
    for (long i = 0; i < n; i++) { x = x * 31 + few[i & 63]; x ^= x >> 7; x *= 0x9e37; x += i; }
    return x;
}
int main(int count, char **words) { printf("%ld %ld\n", gather(count), compute(count, count)); }
"#;

#[test]
fn a_load_that_is_often_sampled_counts_by_itself_where_most_time_is_computing() {
    let place = Place::uncompiled(COMPUTES, env!("CARGO_BIN_EXE_gleaner"));
    assert!(place.compile("cc", "p", &["-O1", "-g"]));
    let rows = text(&gleaner(&place, &["sites", "p"]).output().unwrap().stdout);
    // Where samples of a load land, and the instruction behind, at which the core computes.
    let landing = |kind: &str| -> (u64, u64) {
        let row = rows.lines().find(|row| row.contains(kind)).unwrap_or_else(|| panic!("{rows}"));
        let cell = |number: usize| row.split(',').nth(number).unwrap().parse().unwrap();
        (cell(4), cell(5))
    };
    let ((gathered, _), (near, computing)) =
        (landing(",parallel,gather,"), landing(",load,parallel,compute,"));
    let path = place.at("p").display().to_string();
    let folded = [(gathered, 40), (near, 12), (computing, 3000)]
        .map(|(address, samples)| format!("main;{path}+{address:#x} {samples}\n"));
    std::fs::write(place.at("folded"), folded.concat()).unwrap();
    let (profile, told) = profiled(&place, &["--collapsed", "folded"]);
    let loads: Vec<_> = profile.loads.iter().map(|load| (load.function.as_deref(), load.samples)).collect();
    assert_eq!(loads, [(Some("gather"), 40)], "{told}");
}

const READS_EXPORT: &str = r#"
import json
from opentelemetry.proto.profiles.v1development import profiles_pb2 as pb
data = pb.ProfilesData.FromString(open("out.otlp", "rb").read())
words = data.dictionary
text = lambda number: words.string_table[number]
sums = {}
for profile in data.resource_profiles[0].scope_profiles[0].profiles:
    assert text(profile.sample_type.unit_strindex) == "nanoseconds" and len(profile.profile_id) == 16
    of = sums.setdefault(text(profile.sample_type.type_strindex), {})
    for sample in profile.samples:
        names = set()
        for at in words.stack_table[sample.stack_index].location_indices:
            for line in words.location_table[at].lines:
                names.add(text(words.function_table[line.function_index].name_strindex))
        for name in names:
            of[name] = of.get(name, 0) + sum(sample.values)
first = [words.mapping_table, words.location_table, words.function_table, words.stack_table, words.attribute_table]
assert all(table[0] == type(table[0])() for table in first) and words.string_table[0] == ""
ids = [words.attribute_table[at].value.string_value for m in words.mapping_table for at in m.attribute_indices]
print(json.dumps({"sums": sums, "ids": ids}))
"#;

#[test]
fn what_export_writes_is_read_by_the_official_protocol() {
    let place = place();
    let Some(python) = testkit::python_reader() else { return };
    let record = testkit::root().join("crates/records/fixtures/profile.v1.call-chain.json");
    let arguments = ["export", "--format", "otlp", "-o", "out.otlp", record.to_str().unwrap()];
    let output = gleaner(&place, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = place.command(&python).args(["-c", READS_EXPORT]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let profile = records::read::<Profile>(&record).unwrap().body;
    let all = profile.summary.cpu_time.value().unwrap() * 1e9;
    let main = read["sums"]["cpu"]["main"].as_f64().unwrap();
    assert!(main > 0.9 * all && main <= 1.001 * all, "{main} of {all}");
    let stalled = read["sums"]["stall"]["main"].as_f64().unwrap();
    let share = profile.summary.memory_bound.value().unwrap();
    assert!((stalled / all - share).abs() < 0.05, "{stalled} of {all}, {share} waits for loads");
    let id = profile.loads[0].build_id.as_deref().unwrap();
    assert!(read["ids"].as_array().unwrap().iter().any(|it| it == id), "{read}");
    // And by the reader here: the first profile is CPU time.
    let (again, told) = profiled(&place, &["--otlp", "out.otlp"]);
    assert_eq!(again.program.perf_data.unwrap().events, ["cpu/nanoseconds"], "{told}");
}

const MAKES_HOSTILE: &str = r#"
import gzip, struct, sys
def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80]); n >>= 7
    return out + bytes([n])
def field(number, body): return varint(number << 3 | 2) + varint(len(body)) + body
types = field(1, b"\x08\x01\x10\x02") + field(11, b"\x08\x03\x10\x04")
texts = b"".join(field(6, text) for text in [b"", b"samples", b"count", b"cpu", b"nanoseconds"])
with open("stacks.pb", "wb") as out:
    out.write(types + texts)
    for number in range(400000):
        ids = b"".join(varint(number * 7919 % 1000003 + depth * 31 + 1) for depth in range(30))
        out.write(field(2, field(1, ids) + field(2, b"\x01")))
with open("names.pb", "wb") as out:
    out.write(types + texts)
    for number in range(40000):
        out.write(field(6, b"x" * 16000))
with gzip.open("zeros.pb.gz", "wb") as out:
    out.write(types + texts)
    for number in range(300):
        out.write(field(99, bytes(1 << 20)))
"#;

#[test]
fn large_and_hostile_files_take_bounded_memory() {
    let place = place();
    // Stacks of many kinds, none of which comes twice; names without end; and zeros, packed.
    let made = place.command("python3").args(["-c", MAKES_HOSTILE]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no Python here (Debian: apt install python3)");
        return;
    }
    for (file, code, says) in [
        ("stacks.pb", 0, "400000 samples of samples/count"),
        ("names.pb", 2, "its names and places alone take more than 512 MiB"),
        ("zeros.pb.gz", 0, "no samples"),
    ] {
        let script =
            format!("ulimit -v 3000000; exec {} profile --pprof {file}", env!("CARGO_BIN_EXE_gleaner"));
        let output = place.command("sh").args(["-c", &script]).output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{file}: {told}");
        assert!(told.contains(says), "{file}: {told}");
    }
}
