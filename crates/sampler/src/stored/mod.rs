//! A profile from a file that another profiler wrote: samples of CPU time by the address of the
//! sampled instruction. Such samples land behind the load that stalls as those do that are taken
//! here, so they name it, if the file that they are in is there.
//!
//! ```text
//! input         a path or standard input, compressed or not
//! wire          Protocol Buffers
//! tree          samples by their stacks, within bounds
//! sample_types  which values are CPU time
//! decoded       what all formats hold
//! pprof, legacy, otlp, collapsed   one format each
//! binaries      the files that were sampled
//! unpacked      their debug information, where it is compressed
//! leaf          where the sampled instruction begins
//! sites         all loads of a file, with where samples of each land
//! placed        samples by places of files, counted into a tally
//! ```
//!
//! To add a format: a file with a function from a stream to [`decoded::Decoded`]; a variant of
//! `FileFormat`, with its case in `input.rs`; an option in the cli.
//!
//! What such samples cannot tell (registers, so addresses of data; times; threads) is said in the
//! record, and nothing is put in its place.

mod binaries;
mod collapsed;
mod decoded;
mod input;
mod leaf;
mod legacy;
mod otlp;
mod placed;
mod pprof;
mod sample_types;
pub mod sites;
mod tree;
mod unpacked;
mod wire;

use crate::perf_data::not_there;
use binaries::Binaries;
use decoded::Decoded;
use insight::CacheSizes;
use placed::{Named, Placed};
use records::profile::{
    Backend, ByLevel, Calibration, FileFormat, PerfDataFile, Profile, ProfiledProgram, ProgramEnd, Sampling,
    Unattributed,
};
use records::run::Refused;
use std::io::Read;
use std::path::{Path, PathBuf};
use units::{Quantity, Unit};

/// A profile of a file that is asked for.
#[derive(Clone, Debug)]
pub struct StoredRequest<'p> {
    /// `-` is standard input.
    pub path: &'p Path,
    pub format: FileFormat,
    /// Find out who calls what.
    pub stacks: bool,
    /// Where the sampled files are looked for first.
    pub binaries: &'p [PathBuf],
    /// The user's, where tools keep copies of files.
    pub home: Option<&'p Path>,
}

/// Why there is no profile of a file.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error("{why}")]
    NotRead { why: String },
    #[error("{why}")]
    Damaged { why: String },
    #[error("it has no samples of CPU time: its samples are {present}")]
    OtherSamples { present: String },
}

/// What no stored sample tells.
const NOT_STORED: &str = "stored samples hold no registers, so the addresses of data are not known";
const NO_ADDRESSES: &str = "its samples name functions and no instructions";

/// The profile of a file.
pub fn profile(request: &StoredRequest<'_>) -> Result<Profile, StoredError> {
    of_decoded(&input::decode(request.path, request.format)?, request)
}

/// The same, of anything that can be read.
pub fn of_source(source: impl Read, request: &StoredRequest<'_>) -> Result<Profile, StoredError> {
    of_decoded(&input::decode_from(Box::new(source), request.format)?, request)
}

fn of_decoded(decoded: &Decoded, request: &StoredRequest<'_>) -> Result<Profile, StoredError> {
    let binaries = Binaries::of(request.binaries, request.home);
    let placed = Placed::of(decoded, &binaries, request.stacks)?;
    let unresolved = Quantity::unresolved;
    let run = insight::Run {
        program: program(decoded, request),
        waited_for_cpu: unresolved("samples of CPU time do not tell it"),
        sampling: sampling(&placed),
        elapsed: match decoded.duration_ns {
            Some(ns) => Quantity::claimed(ns as f64 / 1e9, Unit::Seconds),
            None => unresolved("the file does not tell how long it was sampled"),
        },
        cpu_time: match placed.cpu_time_ns {
            0 => unresolved("its samples do not count time"),
            // Counts of samples times their period, of which some may not have come.
            ns => Quantity::claimed(ns as f64 / 1e9, Unit::Seconds),
        },
        overhead: unresolved("the samples were taken by another program"),
        overhead_beside: unresolved("the samples were taken by another program"),
        refusals: refusals(decoded, &placed),
        caches: CacheSizes::default(),
        yield_cycles: None,
        timing: None,
        made_code: placed.named.made.clone(),
    };
    let mut profile = insight::profile(run, &placed.tally, &placed.files);
    leave_out_what_is_not_told(&mut profile, &placed);
    Ok(profile)
}

fn program(decoded: &Decoded, request: &StoredRequest<'_>) -> ProfiledProgram {
    ProfiledProgram {
        command: Vec::new(),
        pid: None,
        perf_data: Some(PerfDataFile {
            format: request.format,
            path: records::text_of(request.path),
            recorded_by: Vec::new(),
            events: decoded.chosen.words.clone(),
            processor: None,
        }),
        ended: ProgramEnd::Unknown,
        // Neither is told: samples of all of them are put together.
        processes: 0,
        threads: 0,
        asked: Vec::new(),
    }
}

fn sampling(placed: &Placed) -> Sampling {
    Sampling {
        backend: Backend::Clock,
        frequency: match placed.period_ns {
            Some(ns) => Quantity::claimed(1e9 / ns as f64, Unit::Hertz),
            None => Quantity::unresolved("the file does not tell how often it was sampled"),
        },
        latency: None,
        least_latency: Quantity::unresolved("samples of time have no latency"),
        samples: placed.tally.samples,
        lost: 0,
        sees_kernel: placed.tally.in_kernel > 0,
        selected: None,
        calibration: Calibration::unresolved("the samples were taken by another program"),
    }
}

fn refused(what: &str, why: impl Into<String>) -> Refused {
    Refused { what: what.to_owned(), why: why.into(), would_help: None }
}

fn refusals(decoded: &Decoded, placed: &Placed) -> Vec<Refused> {
    const MOST_NAMED: usize = 5;
    let mut refusals: Vec<Refused> = not_there(&placed.missing).into_iter().collect();
    for refusal in &mut refusals {
        refusal.would_help = Some("the files as they were, by path or build ID: --binaries DIR".to_owned());
    }
    let tally = &placed.tally;
    if decoded.is_of_unknown_kind {
        let why = "folded stacks do not say what was sampled: they are taken for samples of CPU time";
        refusals.push(refused("samples", why));
    }
    if decoded.not_understood > 0 {
        let why = format!("{} lines are no folded stacks", decoded.not_understood);
        refusals.push(refused("samples", why));
    }
    if decoded.tree.empty > 0 {
        refusals
            .push(refused("samples", format!("{} name no place: they are in no figure", decoded.tree.empty)));
    }
    if decoded.tree.cut_off > 0 {
        let why =
            format!("{} stacks lack callers: the file has more of them than are kept", decoded.tree.cut_off);
        refusals.push(refused("callers", why));
    }
    let nameless = tally.samples.saturating_sub(tally.in_kernel).saturating_sub(placed.with_address);
    if placed.with_address == 0 && tally.samples > 0 {
        refusals.push(Refused {
            what: "loads".to_owned(),
            why: format!("{NO_ADDRESSES}: only functions are shown"),
            would_help: Some(
                "a profiler that keeps addresses (perf record, Go's pprof, OpenTelemetry's eBPF profiler), or gleaner profile".to_owned(),
            ),
        });
        return refusals;
    }
    if nameless > 0 {
        refusals.push(refused("loads", format!("{nameless} samples name functions and no instructions")));
    }
    if !placed.unproved.is_empty() {
        let named: Vec<&str> = placed.unproved.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = placed.unproved.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let why = format!(
            "the samples do not tell build IDs; files are taken by their paths: {}{more}",
            named.join(", ")
        );
        refusals.push(refused("code", why));
    }
    if tally.samples > 0 {
        refusals.push(Refused {
            what: "naming loads".to_owned(),
            why: "how far behind a stalling load samples land is not in the file; loads named here may be neighbours"
                .to_owned(),
            would_help: Some("gleaner doctor --skid tells it of a processor".to_owned()),
        });
        refusals.push(Refused {
            what: "data, levels, latencies, threads".to_owned(),
            why: format!("{NOT_STORED}; nor are times and threads"),
            would_help: Some("gleaner profile -- CMD, which takes its own samples".to_owned()),
        });
    }
    refusals
}

/// Figures that would be of nothing.
fn leave_out_what_is_not_told(profile: &mut Profile, placed: &Placed) {
    let summary = &mut profile.summary;
    let none = || Quantity::unresolved(NOT_STORED);
    summary.by_level = ByLevel {
        l1: none(),
        l2: none(),
        l3: none(),
        dram: none(),
        dirty: none(),
        beyond_l2: none(),
        remote: none(),
        in_flight: none(),
        unresolved: summary.memory_bound.clone(),
    };
    if placed.with_address == 0 {
        let none = || Quantity::unresolved(NO_ADDRESSES);
        (summary.memory_bound, summary.stores, summary.computing) = (none(), none(), none());
        summary.by_level.unresolved = none();
        let time = summary.not_attributed.clone();
        summary.not_attributed_because = vec![Unattributed { why: NO_ADDRESSES.to_owned(), time }];
    }
    for load in &mut profile.loads {
        NOT_STORED.clone_into(&mut load.level_because);
        load.footprint = none();
    }
    name(profile, &placed.named);
}

/// Functions and frames that have names alone: no address, but the source file that was told.
fn name(profile: &mut Profile, named: &Named) {
    if !named.any() {
        return;
    }
    for function in &mut profile.functions {
        if named.holds(&function.module, function.function.as_deref()) {
            function.address = 0;
            function.stall = Quantity::unresolved("its samples have no addresses, or its file is not there");
        }
    }
    for frame in &mut profile.calls.frames {
        let Some((module, function)) = frame.module.clone().zip(frame.function.clone()) else { continue };
        if named.holds(&module, Some(&function)) {
            frame.address = None;
            frame.file = named.files.get(&(module, function)).cloned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_the_kernel_counts_for_its_callers() {
        let (path, binaries) = (Path::new("-"), &[][..]);
        let request =
            StoredRequest { path, format: FileFormat::Collapsed, stacks: true, binaries, home: None };
        let folded = "main;load;vfs_read_[k] 30\nmain;load 10\nmain;sum 60\n";
        let profile = of_source(folded.as_bytes(), &request).unwrap();
        assert_eq!(profile.summary.in_kernel.value(), Some(0.3));
        assert!(profile.summary.memory_bound.value().is_none());
        let shares: Vec<(Option<&str>, u64)> =
            profile.functions.iter().map(|it| (it.function.as_deref(), it.samples)).collect();
        assert_eq!(shares, [(Some("sum"), 60), (Some("load"), 10)]);
        let frame = |node: usize| profile.calls.frames[profile.calls.nodes[node].frame].function.as_deref();
        let kernel = (0..profile.calls.nodes.len()).find(|&node| frame(node) == Some("[kernel]")).unwrap();
        assert_eq!(profile.calls.nodes[kernel].samples, 30);
        assert_eq!(frame(profile.calls.nodes[kernel].caller.unwrap()), Some("load"));
    }

    #[test]
    fn a_period_that_samples_contradict_is_not_believed() {
        fn field(number: u8, body: &[u8]) -> Vec<u8> {
            [&[number << 3 | 2, body.len() as u8], body].concat()
        }
        // Stacks of 20 and 10 ms; the claimed period is a second, as Pyroscope's, or 10 ms.
        let of_period = |period: &[u8]| {
            let mut file = [field(1, &[8, 1, 16, 2]), field(11, &[8, 1, 16, 2]), period.to_vec()].concat();
            file.extend(field(2, &[8, 1, 16, 0x80, 0xda, 0xc4, 0x09]));
            file.extend(field(2, &[8, 2, 16, 0x80, 0xad, 0xe2, 0x04]));
            for (place, name) in [(1, 3), (2, 4)] {
                file.extend(field(4, &[8, place, 0x22, 2, 8, place]));
                file.extend(field(5, &[8, place, 16, name]));
            }
            for text in ["", "cpu", "nanoseconds", "f", "g"] {
                file.extend(field(6, text.as_bytes()));
            }
            let (path, binaries) = (Path::new("-"), &[][..]);
            let request =
                StoredRequest { path, format: FileFormat::Pprof, stacks: true, binaries, home: None };
            of_source(&file[..], &request).unwrap()
        };
        let profile = of_period(&[0x60, 0x80, 0x94, 0xeb, 0xdc, 0x03]);
        assert_eq!((profile.sampling.samples, profile.sampling.frequency.value()), (3, None));
        assert_eq!(profile.summary.cpu_time.value(), Some(0.03));
        let profile = of_period(&[0x60, 0x80, 0xad, 0xe2, 0x04]);
        assert_eq!((profile.sampling.samples, profile.sampling.frequency.value()), (3, Some(100.0)));
    }

    #[test]
    fn what_is_no_profile_is_refused_in_a_sentence() {
        let of = |bytes: &[u8], format| {
            let (path, binaries) = (Path::new("-"), &[][..]);
            let request = StoredRequest { path, format, stacks: true, binaries, home: None };
            of_source(bytes, &request).map_err(|e| e.to_string()).unwrap_err()
        };
        for format in [FileFormat::Pprof, FileFormat::Otlp] {
            assert_eq!(of(b"", format), "it is empty");
            assert!(of(b"hello, this is text and nothing else", format).starts_with("it "));
            assert!(of(b"PERFILE2........", format).contains("--perf-data"));
            assert!(of(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 7, 2, 3], format).contains("damaged"));
            assert!(of(&[0x1f, 0x8b, 8, 0], format).contains("cut off"));
        }
        assert!(of(b"{\"resourceProfiles\": [{]}", FileFormat::Otlp).contains("no JSON"));
        assert!(of(b"heap profile: 1: 2 [3: 4] @ heap/1", FileFormat::Pprof).contains("heap"));
    }
}
