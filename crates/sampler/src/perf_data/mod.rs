//! A profile from a file that `perf record` wrote: of a timer of CPU time, or of loads and stores
//! that the hardware sampled.
//!
//! ```text
//! container    the file: to a file or to a pipe; attributes, features, records
//! records      one record behind the other; compressed ones
//! features     what the file says of its recording
//! attributes   what an event samples, and what its samples hold
//! tracking     mappings, names, forks; which event a record is of, and when it was written
//! sample       the body of a sample, field by field
//! role         what an event's samples are
//! data_source  what an access was and what served it: as the kernel says it
//! ibs, spe     the same as an AMD core says it, and an Arm core
//! accesses     all of these as one type
//! trace        the trace of an Arm core in a file
//! counting     all records, in the order of their times
//! ```
//!
//! The container is read by code of this crate: the fields of samples that matter here (weight,
//! data source, raw) are those that general readers leave out, and damaged files must end with a
//! clear line.

pub(crate) mod accesses;
pub(crate) mod attributes;
mod container;
mod counting;
mod data_source;
mod features;
mod ibs;
pub(crate) mod records;
pub(crate) mod role;
pub(crate) mod sample;
mod spe;
mod trace;
mod tracking;

use crate::files;
use crate::request::selected;
use ::records::profile::{
    Backend, Calibration, FileFormat, PerfDataFile, Profile, ProfiledProgram, ProgramEnd, Sampling,
};
use ::records::run::Refused;
use attributes::DescribedEvent;
use container::Recording;
use counting::Counted;
use insight::CacheSizes;
use role::Role;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use units::{Bytes, Estimate, Quantity, Unit};

/// A profile of a file that is asked for.
#[derive(Clone, Debug)]
pub struct FileRequest<'p> {
    /// `-` is standard input.
    pub path: &'p Path,
    /// Count only samples of this part of the recording: from its first sample, in time.
    pub window: Option<(Duration, Duration)>,
    /// Find out who calls what.
    pub stacks: bool,
    /// Of this machine: they are used for files that were recorded on the same processor.
    pub caches: CacheSizes,
    pub yield_cycles: Option<Estimate>,
    /// Where `perf record` keeps copies of the files that it has seen: its users' `.debug`.
    pub copies: Option<&'p Path>,
    /// All of a file is kept in memory.
    pub most_memory: Option<Bytes>,
    /// The name of this machine's processor.
    pub processor: Option<String>,
}

/// Why there is no profile of a file.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    #[error("{why}")]
    NotRead { why: String },
    #[error("{why}")]
    Damaged { why: String },
    #[error("it has no samples that a profile can be made of: {why}")]
    NoSamples { why: String },
}

/// Larger files are not read.
const LARGEST: Bytes = Bytes::gib(8);

/// The profile of a file.
pub fn profile(request: &FileRequest<'_>) -> Result<Profile, PerfDataError> {
    let most = request.most_memory.map_or(LARGEST, |memory| Bytes(memory.0 / 4 * 3).min(LARGEST));
    of_bytes(&read(request.path, most)?, request)
}

/// All of a file. What it begins with comes first: a device or a pipe may never end.
fn read(path: &Path, most: Bytes) -> Result<Vec<u8>, PerfDataError> {
    let not_read = |e: std::io::Error| PerfDataError::NotRead { why: ::records::plain(&e) };
    let too_large = || PerfDataError::NotRead {
        why: format!("it is larger than {most}, and all of it is kept in memory; record for a shorter time"),
    };
    let mut source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(path).map_err(not_read)?;
        let found = file.metadata().map_err(not_read)?;
        if found.is_dir() {
            let why =
                "it is a directory; a recording of several threads of perf record is not read".to_owned();
            return Err(PerfDataError::NotRead { why });
        }
        if found.is_file() && found.len() > most.0 {
            return Err(too_large());
        }
        Box::new(file)
    };
    let mut bytes = Vec::new();
    source.by_ref().take(container::BEGIN_BYTES).read_to_end(&mut bytes).map_err(not_read)?;
    container::check_begin(&bytes)?;
    source.take(most.0.saturating_sub(bytes.len() as u64) + 1).read_to_end(&mut bytes).map_err(not_read)?;
    if bytes.len() as u64 > most.0 {
        return Err(too_large());
    }
    Ok(bytes)
}

/// The same, of a file's bytes.
pub fn of_bytes(bytes: &[u8], request: &FileRequest<'_>) -> Result<Profile, PerfDataError> {
    let decompressed = container::decompress(bytes)?;
    let recording = Recording::parse(bytes, &decompressed)?;
    let counted = counting::count(&recording, request)?;
    let (modules, missing) = files::modules_with(&counted.tally, &counted.build_ids);
    let mut refusals = refusals(&recording, &counted);
    refusals.extend(not_there(&missing));
    let is_of_here = is_recorded_here(&recording, request);
    if !is_of_here {
        refusals.push(refused(
            "levels and yields",
            "it was recorded on another processor, whose caches are not known here",
        ));
    }
    let run = insight::Run {
        program: program(&recording, &counted, request),
        waited_for_cpu: Quantity::unresolved("perf record does not tell it"),
        sampling: Sampling { selected: request.window.and_then(selected), ..sampling(&recording, &counted) },
        elapsed: match counted.times {
            Some((first, last)) if last > first => {
                Quantity::measured(Estimate::exact((last - first) as f64 / 1e9), Unit::Seconds)
            }
            _ => Quantity::unresolved("its samples do not tell their times"),
        },
        cpu_time: match counted.cpu_time_ns {
            Some(ns) => Quantity::measured(Estimate::exact(ns as f64 / 1e9), Unit::Seconds),
            None => Quantity::unresolved("its samples do not count time"),
        },
        overhead: Quantity::unresolved("the samples were taken by another program"),
        overhead_beside: Quantity::unresolved("the samples were taken by another program"),
        refusals,
        caches: if is_of_here { request.caches } else { CacheSizes::default() },
        yield_cycles: request.yield_cycles.filter(|_| is_of_here),
        timing: None,
        made_code: insight::MadeCode::default(),
    };
    Ok(insight::profile(run, &counted.tally, &modules))
}

/// Whether the machine is this one, or one of the same processor; a file that does not tell counts
/// as recorded here.
fn is_recorded_here(recording: &Recording<'_>, request: &FileRequest<'_>) -> bool {
    let there = &recording.facts.processor;
    there.is_empty() || request.processor.as_ref().is_none_or(|here| here == there)
}

fn program(recording: &Recording<'_>, counted: &Counted, request: &FileRequest<'_>) -> ProfiledProgram {
    let facts = &recording.facts;
    ProfiledProgram {
        command: Vec::new(),
        asked: Vec::new(),
        pid: None,
        perf_data: Some(PerfDataFile {
            format: FileFormat::PerfData,
            path: ::records::text_of(request.path),
            recorded_by: facts.command_line.clone(),
            events: used(recording, counted).into_iter().map(|event| event.name.clone()).collect(),
            processor: Some(facts.processor.clone()).filter(|name| !name.is_empty()),
        }),
        ended: ProgramEnd::Unknown,
        processes: counted.tally.sampled().count(),
        threads: counted.tally.sampled().map(|(_, process)| process.threads.len()).sum(),
    }
}

/// The events whose samples are counted.
fn used<'r>(recording: &'r Recording<'_>, counted: &Counted) -> Vec<&'r DescribedEvent> {
    let is_used = |role: Role| match counted.backend {
        Backend::Clock => role.is_time(),
        backend => role.backend() == Some(backend),
    };
    let roles = recording.events.iter().zip(&counted.roles);
    roles.filter(|(_, role)| is_used(**role)).map(|(event, _)| event).collect()
}

fn sampling(recording: &Recording<'_>, counted: &Counted) -> Sampling {
    let used = used(recording, counted);
    let threshold = used.iter().find_map(|event| role::least_latency(event));
    let frequency = used.iter().find(|event| event.attributes.is_frequency);
    Sampling {
        backend: counted.backend,
        frequency: match frequency {
            Some(event) => Quantity::claimed(event.attributes.period as f64, Unit::Hertz),
            None => Quantity::unresolved("samples were taken by a count of events"),
        },
        latency: role::latency_kind(counted.backend),
        least_latency: match threshold {
            Some(cycles) => Quantity::claimed(cycles as f64, Unit::Cycles),
            None => Quantity::unresolved("the file names no threshold"),
        },
        samples: counted.tally.samples + counted.tally.accesses.samples,
        lost: counted.tally.lost,
        sees_kernel: used.iter().any(|event| !event.attributes.excludes_kernel),
        selected: None,
        calibration: Calibration {
            one_behind: Quantity::unresolved(if counted.tally.is_exact {
                "samples name the instruction itself that the core waited for"
            } else {
                "the samples were taken by another program"
            }),
            samples: 0,
            sample_cost: Quantity::unresolved("the samples were taken by another program"),
            probe_cost: Quantity::unresolved("a file of samples has no probes"),
            cache_latency: Quantity::unresolved("a file of samples has no probes"),
            cache_latency_probed: Quantity::unresolved("a file of samples has no probes"),
            memory_latency: Quantity::unresolved("a file of samples has no probes"),
        },
    }
}

fn refused(what: &str, why: impl Into<String>) -> Refused {
    Refused { what: what.to_owned(), why: why.into(), would_help: None }
}

fn refusals(recording: &Recording<'_>, counted: &Counted) -> Vec<Refused> {
    let mut refusals = Vec::new();
    if recording.left_over > 0 {
        let why = format!("the last {} bytes of the file are no whole record", recording.left_over);
        refusals.push(refused("samples", why));
    }
    if counted.tally.lost > 0 {
        refusals
            .push(refused("samples", format!("{} were lost when they were recorded", counted.tally.lost)));
    }
    if counted.not_understood > 0 {
        let why =
            format!("{} are cut off, or of an event that the file does not describe", counted.not_understood);
        refusals.push(refused("samples", why));
    }
    for (name, samples) in &counted.left_out {
        let name = if name.is_empty() { "an event without a name" } else { name };
        let why =
            format!("{samples} of {name} are left out: samples of different kinds are not put together");
        refusals.push(refused("samples", why));
    }
    if counted.no_accesses > 0 {
        let why = format!("{} are no loads or stores, or lack their details", counted.no_accesses);
        refusals.push(refused("samples", why));
    }
    if counted.idle > 0 {
        refusals
            .push(refused("samples", format!("{} are of idle CPUs: they are in no figure", counted.idle)));
    }
    let accesses = &counted.tally.accesses;
    if accesses.in_kernel > 0 {
        let why = format!("{} are of the kernel's own accesses: they are in no figure", accesses.in_kernel);
        refusals.push(refused("samples", why));
    }
    if accesses.nowhere > 0 {
        let why = format!("{} are of instructions that no mapped file holds", accesses.nowhere);
        refusals.push(refused("samples", why));
    }
    if counted.backend == Backend::Clock && !counted.tally.is_exact {
        let why = "it is not known how far behind a stalling load its samples land; loads named here may be neighbours";
        refusals.push(refused("naming loads", why));
    }
    if counted.without_registers > 0 && counted.backend == Backend::Clock {
        refusals.push(Refused {
            what: "addresses".to_owned(),
            why: format!(
                "{} samples hold no registers, which tell what a load read",
                counted.without_registers
            ),
            would_help: Some(
                "perf record --user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,r8,r9,r10,r11,r12,r13,r14,r15".to_owned(),
            ),
        });
    }
    refusals
        .push(refused("allocations", "perf record does not tell them; data is named by variables and areas"));
    refusals
}

/// Files that loads would be named by.
pub(crate) fn not_there(missing: &[files::Missing]) -> Option<Refused> {
    const MOST_NAMED: usize = 5;
    let named: Vec<String> =
        missing.iter().take(MOST_NAMED).map(|file| format!("{} ({})", file.path, file.why)).collect();
    let more = missing.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!missing.is_empty()).then(|| Refused {
        what: "code".to_owned(),
        why: format!("not read: {}{more}", named.join(", ")),
        would_help: Some("the files as they were when they were recorded".to_owned()),
    })
}
