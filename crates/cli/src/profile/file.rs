//! `gleaner profile --perf-data`: samples that `perf record` took.

use crate::failure::Refusal;
use host::Host;
use insight::Weights;
use records::profile::Profile;
use sampler::perf_data::{self, FileRequest, PerfDataError};
use std::path::Path;
use std::time::Duration;

pub(super) fn profile(
    path: &Path,
    window: Option<(Duration, Duration)>,
    stacks: bool,
    host: &Host,
    weights: &Weights,
) -> Result<Profile, Refusal> {
    let copies = std::env::var_os("HOME").map(|home| Path::new(&home).join(".debug"));
    let request = FileRequest {
        path,
        window,
        stacks,
        caches: weights.caches,
        copies: copies.as_deref(),
        yield_cycles: Some(weights.yield_cycles),
        most_memory: host.memory.usable(),
        processor: host.processor.name.get().map(ToString::to_string),
    };
    crate::threads::shared(|| perf_data::profile(&request)).map_err(|e| refused(path, &e))
}

fn refused(path: &Path, error: &PerfDataError) -> Refusal {
    let refusal = Refusal::wrong_use(records::text_of(path), error.to_string());
    match error {
        PerfDataError::NotRead { .. } => refusal,
        PerfDataError::Damaged { .. } => refusal.would_help("a file that perf record has written to its end"),
        PerfDataError::NoSamples { .. } => refusal.would_help(
            "perf mem record, or perf record -e cpu-clock --user-regs=ax,bx,cx,dx,si,di,bp,sp,ip,r8,r9,r10,r11,r12,r13,r14,r15",
        ),
    }
}
