//! Whatever a file of `perf record` holds: it becomes a profile or is refused; nothing panics, and
//! nothing takes long. Files are written here for all kinds of hardware, and by the installed
//! `perf` where it is there; then they are spoilt. A case is told by its number.

use gleaner_sampler::perf_data::{FileRequest, PerfDataError, of_bytes};
use insight::CacheSizes;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::perf_data::{PerfData, Sample, feature, field, ibs_raw, spe_load};
use units::Rng;

fn request() -> FileRequest<'static> {
    FileRequest {
        path: Path::new("perf.data"),
        window: None,
        stacks: true,
        caches: CacheSizes::default(),
        yield_cycles: None,
        copies: None,
        most_memory: None,
        processor: None,
    }
}

const PROCESS: u32 = 77;
const START: u64 = 0x5555_5555_0000;

/// A file with samples of all kinds of hardware, each kind at the head of one.
fn file(first: usize) -> PerfData {
    let mut file = PerfData::default();
    let sampled = field::IP | field::ADDR | field::CALLCHAIN | field::PERIOD | field::RAW;
    let sampled = sampled | field::DATA_SRC | field::WEIGHT_STRUCT;
    let events = [("cpu/mem-loads,ldlat=30/P", 4, 0x1cd), ("ibs_op//", 9, 0), ("cpu-clock", 1, 0)];
    for index in 0..events.len() {
        let (name, kind, config) = events[(first + index) % events.len()];
        file.event(name, kind, config, 30, sampled);
    }
    file.pmus(&[(9, "ibs_op"), (10, "arm_spe_0")]);
    file.text(feature::CPUID, "0x00000000410fd400");
    file.command_line(&["perf", "record"]);
    file.named(PROCESS, "true", 1);
    file.mapped(PROCESS, "/bin/true", START, 1 << 20, 0, 2);
    file.build_id("/bin/sh", &[7; 20]);
    for at in 0..20_u64 {
        let sample = Sample {
            ip: START + 0x2000 + at % 5,
            process: PROCESS,
            thread: PROCESS + (at % 2) as u32,
            time_ns: 100 + at,
            address: START + 64 * at,
            period: 1 + at % 3,
            chain: vec![-512_i64 as u64, START + 0x2000, START + 0x2100],
            raw: ibs_raw(1 << 11, 3, 1 | 1 << 7 | 1 << 17 | 1 << 20 | 400 << 32, 0x8000),
            weight: 300,
            data_source: if first == 0 { 2 | 13 << 33 } else { 0 },
        };
        file.sample((at % 3) as usize, &sample);
    }
    if first == 2 {
        let load = |at| spe_load(START + 0x2000, START + at, PROCESS, 99, 0b1100, 8, at);
        file.trace(4, 9, &(0..9).flat_map(load).collect::<Vec<u8>>());
    }
    file
}

/// What the installed `perf` writes: with registers and stacks, compressed, into a pipe.
fn recorded() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("perf.data");
    let registers = "--user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,r8,r9,r10,r11,r12,r13,r14,r15";
    let mut found = Vec::new();
    for options in [
        &["-d", "--call-graph", "dwarf,512"][..],
        &["-z", "-g", registers],
        &["-d", "-W", "-I", "--buildid-mmap"],
    ] {
        let mut perf = Command::new("perf");
        // It keeps copies of what it has seen in the user's home.
        perf.env("HOME", folder.path());
        perf.args(["record", "-q", "-F", "2000", "-e", "cpu-clock"]).args(options).arg("-o").arg(&to);
        let done = perf.args(["--", "sh", "-c", "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done"]).output();
        if done.is_ok_and(|done| done.status.success()) {
            found.push(std::fs::read(&to).expect("what perf wrote"));
        }
    }
    if found.is_empty() {
        eprintln!("files of perf are left out: it is not there, or may not sample");
    }
    found
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused_or_read_as_far_as_it_goes() {
    for first in 0..3 {
        let (whole, pipe) = (file(first).file(), file(first).pipe());
        assert!(of_bytes(&whole, &request()).is_ok() && of_bytes(&pipe, &request()).is_ok());
        for length in 0..whole.len() {
            // Where the end is told, a part is no file; behind the last feature nothing is missing.
            let cut = of_bytes(&whole[..length], &request());
            assert!(matches!(cut, Err(PerfDataError::Damaged { .. })), "{first}: {length} bytes");
        }
        for length in 0..pipe.len() {
            if let Ok(profile) = of_bytes(&pipe[..length], &request()) {
                let is_told = profile.refusals.iter().any(|refused| refused.why.contains("no whole record"));
                // Records of all kinds have a multiple of eight bytes.
                assert!(is_told || length % 8 == 0, "{first}: {length} bytes");
            }
        }
    }
}

struct Random(Rng);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0.below(most.max(1) as u64) as usize
    }
}

fn spoil(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(12) {
        let at = random.below(bytes.len());
        let near = at & !7;
        match random.below(8) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            // A size, a count or an address: small, large, or beyond all bounds.
            2..=4 => {
                let words =
                    [0, 1, 7, 8, 0xffff, u64::from(u32::MAX), 1 << 40, u64::MAX, u64::MAX - 7, 1 << 63];
                let word = words[random.below(words.len())].to_le_bytes();
                for (place, byte) in bytes.iter_mut().skip(near).zip(word) {
                    *place = byte;
                }
            }
            // A piece in the place of another: records out of step.
            5 => {
                let size = random.below(200).min(bytes.len() - at);
                let to = random.below(bytes.len() - size + 1);
                bytes.copy_within(at..at + size, to);
            }
            6 => {
                let size = random.below(64).min(bytes.len() - at);
                bytes.drain(at..at + size);
            }
            _ if random.below(10) == 0 => bytes.truncate(at),
            _ => bytes[at] = 0xff,
        }
        if bytes.is_empty() {
            return;
        }
    }
}

#[test]
fn spoilt_files_neither_panic_nor_hang() {
    const CASES: u64 = 4000;
    const LONGEST: Duration = Duration::from_secs(20);
    let mut files: Vec<Vec<u8>> = (0..3).flat_map(|first| [file(first).file(), file(first).pipe()]).collect();
    // Small files are spoilt where it matters; of large ones there are fewer cases.
    let written = files.len();
    files.extend(recorded());
    let (mut read, mut refused) = (0_u64, 0_u64);
    for case in 0..CASES {
        let mut random = Random(Rng::new(case));
        let which = if case % 8 == 0 { random.below(files.len()) } else { random.below(written) };
        let mut bytes = files[which].clone();
        spoil(&mut bytes, &mut random);
        let began = Instant::now();
        let outcome = std::panic::catch_unwind(|| of_bytes(&bytes, &request()).map(|_| ()));
        let outcome = outcome.unwrap_or_else(|_| panic!("case {case} of file {which} panics"));
        assert!(began.elapsed() < LONGEST, "case {case} of file {which} takes too long");
        match outcome {
            Ok(()) => read += 1,
            Err(e) => {
                let told = e.to_string();
                assert!(!told.contains('\n') && !told.is_empty(), "case {case}: {told}");
                refused += 1;
            }
        }
    }
    assert!(read > CASES / 10 && refused > CASES / 50, "{read} read, {refused} refused");
}
