//! `gleaner profile --perf-data`: files that the installed `perf` has just written, where it is
//! there and may sample; and files that are written byte by byte, with samples of hardware that the
//! machine need not have.

use image::Image;
use records::profile::{Backend, LatencyKind, Level, Profile};
use std::collections::BTreeMap;
use std::process::{Command, Output};
use testkit::perf_data::{PerfData, Sample, feature, field, ibs_raw, spe_load};
use testkit::{Place, text};

/// Goes through a list of 64 MiB in random order, as many steps as its argument says.
const PROGRAM: &str = r"
#include <stdlib.h>
struct node { struct node *next; long rest[7]; };
struct node everything[1 << 20];
long nearby[512];
static struct node *volatile gone_through;
__attribute__((noinline, noclone)) struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
__attribute__((noinline, noclone)) long read_nearby(long *at) { return at[1]; }
int main(int count, char **words) {
    for (unsigned long i = 0; i < 1 << 20; i++)
        everything[i].next = &everything[(i * 0x5deece66d + 11) % (1 << 20)];
    gone_through = chase(everything, atol(words[1]));
    return read_nearby(nearby);
}
";
const STEPS: &str = "4000000";

pub(crate) fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn gleaner(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    // Without the copies of files that perf has kept.
    command.env("HOME", place.at("elsewhere")).arg("profile").args(arguments);
    command
}

pub(crate) fn profiled(place: &Place, file: &str) -> (Output, Profile) {
    let output = gleaner(place, &["--perf-data", file, "-o", "profile.json"]).output().unwrap();
    let read = records::read::<Profile>(&place.at("profile.json"));
    let profile = read.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))).body;
    assert!(output.status.success(), "{}", text(&output.stderr));
    (output, profile)
}

/// What the refusals of a record say.
fn refusals(profile: &Profile) -> String {
    let lines = profile.refusals.iter().map(|refused| format!("{}: {}", refused.what, refused.why));
    lines.collect::<Vec<_>>().join("\n")
}

/// Lets the installed `perf` record the program; whether it could.
fn recorded(place: &Place, options: &[&str]) -> bool {
    let mut perf = place.command("perf");
    // It keeps copies of what it has seen in the user's home, if that is there.
    std::fs::create_dir_all(place.at("home")).unwrap();
    perf.env("HOME", place.at("home"));
    let command = perf.args(["record", "-e", "cpu-clock"]).args(options).args(["--", "./p", STEPS]);
    let done = command.output();
    let is_done = done.as_ref().is_ok_and(|done| done.status.success());
    if !is_done {
        eprintln!("skipped: perf is missing or may not sample: {done:?}");
    }
    is_done
}

const REGISTERS: &str = "--user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,r8,r9,r10,r11,r12,r13,r14,r15";

#[test]
fn the_load_that_stalls_is_named_from_every_kind_of_file() {
    let place = place();
    for options in [
        &["-d", "-o", "perf.data"][..],
        &["-d", REGISTERS, "-o", "perf.data"],
        &["-d", "-W", "-I", "--call-graph", "dwarf,4096", "-F", "1000", "-o", "perf.data"],
        &["-z", "-g", REGISTERS, "-o", "perf.data"],
        &["-I", "-o", "perf.data"],
        &["--buildid-mmap", "-o", "perf.data"],
        &["-c", "500000", "-o", "perf.data"],
    ] {
        let _ = std::fs::remove_file(place.at("perf.data"));
        if !recorded(&place, options) {
            return;
        }
        let (output, profile) = profiled(&place, "perf.data");
        let told = text(&output.stderr);
        let load = &profile.loads[0];
        assert_eq!((profile.sampling.backend, profile.program.threads), (Backend::Clock, 1), "{told}");
        assert_eq!(load.function.as_deref(), Some("chase"), "{options:?}: {told}");
        assert!(load.instruction.starts_with("mov") && load.instruction.contains('['), "{load:?}");
        assert!(profile.summary.cpu_time.value().is_some_and(|time| time > 0.0), "{told}");
        let has_registers = options.iter().any(|option| option.starts_with("--user-regs") || *option == "-I");
        let object = has_registers.then_some("everything (p)");
        assert_eq!(load.object.as_deref(), object, "{options:?}: {told}");
        assert_eq!(refusals(&profile).contains("hold no registers"), !has_registers, "{told}");
        if options.contains(&"--call-graph") {
            assert_eq!(load.callers.first().map(String::as_str), Some("main"), "{load:?}");
        }
        assert!(told.starts_with("profile of perf.data: "), "{told}");
        let recorder = profile.program.perf_data.unwrap().recorded_by;
        assert!(recorder.iter().any(|word| word == "./p"), "{recorder:?}");
    }
}

#[test]
fn a_pipe_is_read_from_standard_input() {
    let place = place();
    if !recorded(&place, &["-o", "perf.data"]) {
        return;
    }
    for compressed in ["", "-z"] {
        let command = format!(
            "perf record -e cpu-clock {compressed} -o - -- ./p {STEPS} 2>/dev/null | {} profile --perf-data - -o profile.json",
            env!("CARGO_BIN_EXE_gleaner")
        );
        let home = place.at("home");
        let output = place.command("sh").env("HOME", home).args(["-c", &command]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let profile = records::read::<Profile>(&place.at("profile.json")).unwrap().body;
        assert_eq!(profile.loads[0].function.as_deref(), Some("chase"), "{compressed}");
    }
}

#[test]
fn a_program_that_was_built_anew_is_not_taken_for_the_old_one() {
    let place = place();
    if !recorded(&place, &["-o", "perf.data"]) {
        return;
    }
    assert!(place.compile("cc", "p", &["-O1", "-DOTHER", "-Wl,--build-id=uuid"]));
    let arguments = ["--perf-data", "perf.data", "-o", "profile.json"];
    let with_copies = gleaner(&place, &arguments).env("HOME", place.at("home")).status().unwrap();
    assert!(with_copies.success());
    let profile = records::read::<Profile>(&place.at("profile.json")).unwrap().body;
    assert_eq!(profile.loads[0].function.as_deref(), Some("chase"), "perf has kept a copy");
    let (_, profile) = profiled(&place, "perf.data");
    assert!(profile.loads.is_empty(), "{:?}", profile.loads);
    assert!(refusals(&profile).contains("/p (the file has another build ID)"), "{}", refusals(&profile));
    std::fs::remove_file(place.at("p")).unwrap();
    let (_, profile) = profiled(&place, "perf.data");
    assert!(refusals(&profile).contains("/p (there is no such file)"), "{}", refusals(&profile));
}

/// Where the program of a test is loaded in files that are written here.
const LOADED: u64 = 0x5555_5555_0000;
pub(crate) const PROCESS: u32 = 4321;

/// The program, as far as made-up samples need it.
pub(crate) struct Program {
    path: String,
    /// Stated addresses of its symbols.
    symbols: BTreeMap<String, u64>,
    /// Of the load in each of these functions.
    loads: BTreeMap<&'static str, u64>,
    build_id: Vec<u8>,
    code: (u64, u64, u64),
}

impl Program {
    pub(crate) fn of(place: &Place) -> Self {
        let path = place.at("p");
        let listed = text(&Command::new("nm").arg(&path).output().unwrap().stdout);
        let symbol = |line: &str| {
            let mut words = line.split(' ');
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((words.nth(1)?.to_owned(), address))
        };
        let symbols: BTreeMap<String, u64> = listed.lines().filter_map(symbol).collect();
        let load = |function: &'static str| {
            let of = format!("--disassemble={function}");
            let code =
                Command::new("objdump").args(["-d", "--no-show-raw-insn", &of]).arg(&path).output().unwrap();
            let code = text(&code.stdout);
            let line = code.lines().find(|line| line.contains("mov ") && line.contains('(')).expect("a load");
            (function, u64::from_str_radix(line.trim().split(':').next().unwrap(), 16).unwrap())
        };
        let data = std::fs::read(&path).unwrap();
        let image = Image::parse(&data).unwrap();
        let code = image.loads().iter().find(|segment| segment.is_executable()).unwrap();
        Self {
            path: path.to_str().unwrap().to_owned(),
            loads: ["chase", "read_nearby"].map(load).into(),
            symbols,
            build_id: image.build_id().unwrap_or(&[]).to_vec(),
            code: (code.address, code.offset, code.file_size),
        }
    }

    pub(crate) fn address(&self, symbol: &str) -> u64 {
        LOADED + self.symbols[symbol]
    }

    pub(crate) fn load(&self, function: &str) -> u64 {
        LOADED + self.loads[function]
    }

    /// Begins a file in which this program runs.
    fn begin(&self, file: &mut PerfData) {
        file.named(PROCESS, "p", 10);
        let (address, offset, bytes) = self.code;
        let into = address % 4096;
        file.mapped(PROCESS, &self.path, LOADED + address - into, bytes + into, offset - into, 11);
        if !self.build_id.is_empty() {
            file.build_id(&self.path, &self.build_id);
        }
    }
}

/// `PERF_SAMPLE_DATA_SRC` of a load by the number of its level; translated by a walk or not.
pub(crate) fn source(level: u64, walk: bool) -> u64 {
    const LOAD: u64 = 2;
    let translation = if walk { 4 | 0x10 } else { 2 | 8 };
    LOAD | 1 << 24 | translation << 26 | level << 33
}

pub(crate) const L1: u64 = 1;
pub(crate) const RAM: u64 = 13;
const LINE_FILL_BUFFER: u64 = 12;
pub(crate) const MODIFIED_ELSEWHERE: u64 = 0x10 << 19;

/// The chase reads DRAM and waits for 300 cycles, or for 100 where a miss is under way; the other
/// load hits; stores are sampled, too.
pub(crate) fn pebs(program: &Program) -> PerfData {
    const RAW: u32 = 4;
    let sampled =
        field::IP | field::ADDR | field::PERIOD | field::CALLCHAIN | field::WEIGHT_STRUCT | field::DATA_SRC;
    let mut file = PerfData::default();
    let loads = file.event("cpu/mem-loads,ldlat=30/P", RAW, 0x1cd, 30, sampled);
    let stores = file.event("cpu/mem-stores/P", RAW, 0x82d0, 0, sampled);
    file.text(feature::CPUID, "GenuineIntel,6,106,6");
    file.text(feature::ARCH, "x86_64");
    file.command_line(&["perf", "mem", "record", "./p", STEPS]);
    program.begin(&mut file);
    let (everything, main) = (program.address("everything"), program.address("main"));
    for at in 0..400_u64 {
        let is_slow = at % 4 != 0;
        let sample = Sample {
            ip: program.load("chase"),
            process: PROCESS,
            thread: PROCESS + (at % 2) as u32,
            time_ns: 1_000_000 * (at + 1),
            address: everything + at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (64 << 20) / 64 * 64,
            period: 1000,
            chain: vec![-512_i64 as u64, program.load("chase"), main + 40],
            // Latency, then the time to retire, which is another figure.
            weight: if is_slow { 300 + at % 20 } else { 100 } | 7 << 32,
            data_source: source(if is_slow { RAM } else { LINE_FILL_BUFFER }, is_slow),
            ..Sample::default()
        };
        file.sample(loads, &sample);
        if at % 10 == 0 {
            let nearby = program.address("nearby") + 8;
            let ip = program.load("read_nearby");
            file.sample(
                loads,
                &Sample { ip, address: nearby, weight: 32, data_source: source(L1, false), ..sample.clone() },
            );
            file.sample(stores, &Sample { address: nearby, weight: 0, data_source: 4 | L1 << 33, ..sample });
        }
    }
    file
}

#[test]
fn loads_of_pebs_have_latency_level_and_data() {
    let place = place();
    let program = Program::of(&place);
    std::fs::write(place.at("mem.data"), pebs(&program).file()).unwrap();
    let (output, profile) = profiled(&place, "mem.data");
    let told = text(&output.stderr);
    let sampling = &profile.sampling;
    assert_eq!((sampling.backend, sampling.latency), (Backend::Pebs, Some(LatencyKind::UntilUse)), "{told}");
    assert_eq!((sampling.samples, sampling.least_latency.value()), (480, Some(30.0)));
    let load = &profile.loads[0];
    assert_eq!((load.function.as_deref(), load.address), (Some("chase"), program.loads["chase"]), "{told}");
    assert_eq!((load.samples, load.threads, load.level), (400, 2, Level::Dram), "{load:?}");
    assert_eq!(load.object.as_deref(), Some("everything (p)"), "{load:?}");
    assert_eq!(load.callers, ["main"], "{load:?}");
    let latency = load.latency.estimate().unwrap();
    assert!((latency.value - 257.1).abs() < 1.0 && latency.lo > 245.0 && latency.hi < 270.0, "{latency:?}");
    assert_eq!(load.translation.value(), Some(0.75));
    let levels: Vec<Level> = load.by_level.iter().map(|level| level.level).collect();
    assert_eq!(levels, [Level::Dram, Level::InFlight]);
    assert_eq!(load.by_level[1].latency.value(), Some(100.0));
    let second = &profile.loads[1];
    assert_eq!(
        (second.function.as_deref(), second.object.as_deref()),
        (Some("read_nearby"), Some("nearby (p)"))
    );
    let share = |load: &records::profile::StallingLoad| load.latency_share.value().unwrap();
    assert!((share(load) + share(second) - 1.0).abs() < 1e-9 && share(second) < 0.02, "{told}");
    // What hardware does not tell is not guessed.
    assert!(load.stall.value().is_none() && profile.summary.memory_bound.value().is_none());
    let by_level = &profile.summary.by_level;
    assert!(
        by_level.dram.value().unwrap() > 0.85 && by_level.in_flight.value().unwrap() > 0.08,
        "{by_level:?}"
    );
    assert_eq!(profile.objects[0].name, "everything (p)");
    assert!(profile.objects[0].latency_share.value().unwrap() > 0.95);
    for says in ["Intel PEBS", "loads quicker than 30 cycles were not sampled", "until its data can be used"]
    {
        assert!(told.contains(says), "{says}: {told}");
    }
}

#[test]
fn a_pipe_of_perf_inject_says_the_same_as_a_file() {
    let place = place();
    let program = Program::of(&place);
    std::fs::write(place.at("mem.data"), pebs(&program).file()).unwrap();
    std::fs::write(place.at("pipe.data"), pebs(&program).pipe()).unwrap();
    let (_, file) = profiled(&place, "mem.data");
    let (_, pipe) = profiled(&place, "pipe.data");
    assert_eq!((file.loads, file.summary, file.objects), (pipe.loads, pipe.summary, pipe.objects));
}

#[test]
fn a_line_that_another_core_had_modified_is_dirty() {
    let place = place();
    let program = Program::of(&place);
    let mut file = pebs(&program);
    for at in 0..20 {
        let sample = Sample {
            ip: program.load("read_nearby"),
            process: PROCESS,
            thread: PROCESS,
            time_ns: at,
            address: program.address("nearby") + 8,
            period: 1000,
            weight: 900,
            data_source: source(3, false) | MODIFIED_ELSEWHERE,
            ..Sample::default()
        };
        file.sample(0, &Sample { time_ns: 500_000_000 + at, ..sample });
    }
    std::fs::write(place.at("c2c.data"), file.file()).unwrap();
    let (_, profile) = profiled(&place, "c2c.data");
    let load = profile.loads.iter().find(|load| load.function.as_deref() == Some("read_nearby")).unwrap();
    assert_eq!((load.level, load.object.as_deref()), (Level::Dirty, Some("nearby (p)")), "{load:?}");
    assert!(profile.summary.by_level.dirty.value().unwrap() > 0.1);
}

/// One operation in nine is no access, one in three hits L1, the others miss all caches.
fn ibs(program: &Program) -> PerfData {
    let mut file = PerfData::default();
    let operations = file.event("ibs_op//", 9, 0, 0, field::IP | field::RAW);
    file.pmus(&[(4, "cpu"), (9, "ibs_op")]);
    file.text(feature::CPUID, "AuthenticAMD,25,1,1");
    program.begin(&mut file);
    let load = |missed: u64| 1 | missed << 7 | 1 << 17 | missed << 20 | (missed * 420) << 32;
    for at in 0..90_u64 {
        let data3 = if at % 9 == 0 { 0 } else { load(u64::from(at % 3 != 1)) };
        let address = program.address("everything") + 64 * (at * 7919 % (1 << 20));
        let raw = ibs_raw(1 << 11, 3, data3, address);
        let ip = program.load("chase");
        let sample =
            Sample { ip, process: PROCESS, thread: PROCESS, time_ns: 100 + at, raw, ..Sample::default() };
        file.sample(operations, &sample);
    }
    file
}

#[test]
fn operations_of_ibs_are_read_from_their_registers() {
    let place = place();
    let program = Program::of(&place);
    std::fs::write(place.at("ibs.data"), ibs(&program).file()).unwrap();
    let (output, profile) = profiled(&place, "ibs.data");
    let told = text(&output.stderr);
    assert_eq!((profile.sampling.backend, profile.sampling.latency), (Backend::Ibs, Some(LatencyKind::Miss)));
    let load = &profile.loads[0];
    assert_eq!((load.samples, load.level, load.latency.value()), (80, Level::Dram, Some(420.0)), "{load:?}");
    assert_eq!(load.by_level.len(), 2, "hits count, but have no latency: {load:?}");
    assert_eq!(load.object.as_deref(), Some("everything (p)"));
    assert!(told.contains("AMD IBS") && told.contains("10 are no loads or stores"), "{told}");
}

/// Events of a record of SPE: L1 was accessed, and its line had to be fetched.
const L1_MISSED: u16 = 0b1100;

/// Loads that miss all caches, each with its packets.
fn spe(program: &Program) -> PerfData {
    let mut file = PerfData::default();
    file.event("arm_spe_0//", 9, 0, 0, field::IP);
    file.event("dummy:u", 1, 9, 0, 0);
    file.pmus(&[(9, "arm_spe_0")]);
    file.text(feature::ARCH, "aarch64");
    file.text(feature::CPUID, "0x00000000410fd400");
    program.begin(&mut file);
    let mut trace = Vec::new();
    for at in 0..50_u64 {
        let address = program.address("everything") + 64 * (at * 7919 % (1 << 20));
        let tagged = address | 0xb4 << 56;
        trace.extend(spe_load(program.load("chase"), tagged, PROCESS, 250, L1_MISSED, 14, 1000 + at));
        trace.extend([0; 7]);
    }
    file.trace(4, 9, &trace);
    file
}

#[test]
fn the_trace_of_an_arm_core_is_read_from_its_packets() {
    let place = place();
    let program = Program::of(&place);
    std::fs::write(place.at("spe.data"), spe(&program).file()).unwrap();
    let (output, profile) = profiled(&place, "spe.data");
    assert_eq!(
        (profile.sampling.backend, profile.sampling.latency),
        (Backend::Spe, Some(LatencyKind::Total))
    );
    let load = &profile.loads[0];
    assert_eq!((load.samples, load.level, load.latency.value()), (50, Level::Dram, Some(250.0)), "{load:?}");
    assert_eq!((load.function.as_deref(), load.object.as_deref()), (Some("chase"), Some("everything (p)")));
    assert!(text(&output.stderr).contains("Arm SPE"));
}

#[test]
fn perf_reads_the_same_from_what_is_made_up_here() {
    let place = place();
    let program = Program::of(&place);
    let perf = |arguments: &[&str]| {
        let done = place.command("perf").args(arguments).output().ok()?;
        done.status.success().then(|| text(&done.stdout))
    };
    for (name, file) in
        [("mem.data", pebs(&program)), ("ibs.data", ibs(&program)), ("spe.data", spe(&program))]
    {
        std::fs::write(place.at(name), file.file()).unwrap();
    }
    let Some(told) = perf(&["script", "-i", "mem.data", "-F", "event,addr,weight,data_src"]) else {
        eprintln!("skipped: perf is missing");
        return;
    };
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("mem-loads")).collect();
    let weights = lines.iter().filter_map(|line| line.split_whitespace().next_back()?.parse::<f64>().ok());
    let (_, profile) = profiled(&place, "mem.data");
    let average = profile.summary.average_latency.value().unwrap();
    assert!((weights.sum::<f64>() / lines.len() as f64 - average).abs() < 1e-6, "{average}: {told}");
    let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count() as u64;
    let of = |level: Level| {
        let levels = profile.loads.iter().flat_map(|load| &load.by_level).filter(|of| of.level == level);
        levels.map(|of| of.samples).sum::<u64>()
    };
    assert_eq!(
        (count("LVL RAM"), count("LVL LFB"), count("LVL L1")),
        (of(Level::Dram), of(Level::InFlight), of(Level::L1))
    );
    let operations = perf(&["script", "-i", "ibs.data", "-F", "ip"]).unwrap();
    assert_eq!(operations.lines().count(), 90, "{operations}");
    let packets = perf(&["report", "-D", "-i", "spe.data"]).unwrap();
    for what in ["LAT 250 TOT", "LD GP-REG", "EV L1D-ACCESS L1D-REFILL", "DATA-SOURCE 14"] {
        assert_eq!(packets.matches(what).count(), 50, "{what}");
    }
}

#[test]
fn samples_of_time_beside_accesses_are_left_out_by_name() {
    let place = place();
    let program = Program::of(&place);
    let mut file = pebs(&program);
    let clock = file.event("cpu-clock", 1, 0, 0, field::IP | field::ADDR | field::PERIOD);
    let sample = Sample {
        ip: program.load("chase"),
        process: PROCESS,
        thread: PROCESS,
        time_ns: 77,
        ..Sample::default()
    };
    for _ in 0..5 {
        file.sample(clock, &sample);
    }
    std::fs::write(place.at("both.data"), file.file()).unwrap();
    let (_, profile) = profiled(&place, "both.data");
    assert_eq!((profile.sampling.backend, profile.sampling.samples), (Backend::Pebs, 480));
    assert!(refusals(&profile).contains("5 of cpu-clock are left out"), "{}", refusals(&profile));
}

#[test]
fn a_time_range_is_counted_from_the_first_sample() {
    let place = place();
    let program = Program::of(&place);
    std::fs::write(place.at("mem.data"), pebs(&program).file()).unwrap();
    let arguments = ["--perf-data", "mem.data", "--from", "100ms", "--to", "200ms", "-o", "profile.json"];
    assert!(gleaner(&place, &arguments).status().unwrap().success());
    let profile = records::read::<Profile>(&place.at("profile.json")).unwrap().body;
    assert_eq!(profile.loads[0].samples, 100, "one a millisecond");
}

#[test]
fn what_is_no_file_of_perf_is_refused_in_one_line() {
    let place = place();
    let program = Program::of(&place);
    let whole = pebs(&program).file();
    std::fs::write(place.at("garbage"), [0x5a; 4096]).unwrap();
    std::fs::write(place.at("empty"), []).unwrap();
    std::fs::write(place.at("cut"), &whole[..whole.len() / 2]).unwrap();
    let mut nothing = PerfData::default();
    let dummy = nothing.event("dummy:u", 1, 9, 0, field::IP);
    nothing.sample(dummy, &Sample::default());
    std::fs::write(place.at("nothing"), nothing.file()).unwrap();
    let directory = place.folder().to_str().unwrap();
    for (file, says) in [
        ("garbage", "no file of perf record"),
        ("empty", "it is empty"),
        ("cut", "it is cut off"),
        ("nothing", "its events are dummy:u"),
        ("none", "No such file"),
        (directory, "directory"),
        ("p", "no file of perf record"),
    ] {
        let output = gleaner(&place, &["--perf-data", file]).output().unwrap();
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{file}: {told}");
        assert!(told.to_lowercase().contains(&says.to_lowercase()), "{file}: {told}");
    }
}

#[test]
fn hardware_that_is_not_there_is_told_before_the_program_starts() {
    let place = place();
    for (backend, is) in [("pebs", Backend::Pebs), ("ibs", Backend::Ibs)] {
        let arguments = ["--backend", backend, "-o", "profile.json", "--", "./p", STEPS];
        let output = gleaner(&place, &arguments).output().unwrap();
        let told = text(&output.stderr);
        if output.status.success() {
            let profile = records::read::<Profile>(&place.at("profile.json")).unwrap().body;
            assert_eq!(profile.sampling.backend, is, "{told}");
            assert_eq!(profile.loads[0].function.as_deref(), Some("chase"), "{told}");
            continue;
        }
        assert_eq!((output.status.code(), told.lines().count()), (Some(3), 1), "{told}");
        assert!(told.contains("; --backend clock") || told.contains("perf_event_open"), "{told}");
        assert!(!place.at("profile.json").exists());
    }
}

#[test]
fn addresses_in_a_file_that_is_gone_are_named_by_their_place() {
    let place = place();
    let program = Program::of(&place);
    std::fs::write(place.at("mem.data"), pebs(&program).file()).unwrap();
    std::fs::remove_file(place.at("p")).unwrap();
    let (output, profile) = profiled(&place, "mem.data");
    let load = &profile.loads[0];
    assert_eq!((load.function.as_deref(), load.samples), (None, 400), "{}", text(&output.stderr));
    assert!(load.module.ends_with("/p") && load.instruction == "?", "{load:?}");
    assert!(refusals(&profile).contains("there is no such file"));
}
