//! `gleaner profile --pprof`, `--otlp`, `--collapsed`: samples that other profilers took and kept.

use crate::failure::Refusal;
use clap::Args;
use records::profile::{FileFormat, Profile};
use sampler::stored::{self, StoredError, StoredRequest};
use std::path::{Path, PathBuf};

/// A file of samples, and where its programs are.
#[derive(Debug, Args)]
pub(super) struct StoredArgs {
    /// Read a CPU profile of pprof ('-' for standard input): of Go's runtime, pprof-rs, parca,
    /// pyroscope; or of gperftools
    ///
    /// Its samples tell the loads that stall if the files that were sampled are there: by the paths
    /// that the samples have for them, or by build ID in /usr/lib/debug, in the caches of perf and
    /// debuginfod, and in --binaries.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["otlp", "collapsed", "perf_data", "command", "pid", "backend", "frequency", "budget", "duration", "from", "to", "no_allocations", "objects_from", "no_probes"])]
    pprof: Option<PathBuf>,

    /// Read CPU profiles of OpenTelemetry ('-' for standard input): Protocol Buffers or JSON, as
    /// its collector writes them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["collapsed", "perf_data", "command", "pid", "backend", "frequency", "budget", "duration", "from", "to", "no_allocations", "objects_from", "no_probes"])]
    otlp: Option<PathBuf>,

    /// Read folded stacks, a line each ('-' for standard input): of py-spy, async-profiler,
    /// stackcollapse-perf.pl; functions only, where frames are no addresses
    #[arg(long, value_name = "FILE", conflicts_with_all = ["perf_data", "command", "pid", "backend", "frequency", "budget", "duration", "from", "to", "no_allocations", "objects_from", "no_probes"])]
    collapsed: Option<PathBuf>,

    /// Look for the files that were sampled in this directory first: by build ID, as distributions
    /// and debuginfod keep them, by path, or by name; may be given several times
    #[arg(long, value_name = "DIR")]
    binaries: Vec<PathBuf>,
}

impl StoredArgs {
    /// The file that is to be read, if there is one.
    pub(super) fn asked(&self) -> Result<Option<(FileFormat, &Path)>, Refusal> {
        match self.file() {
            None if !self.binaries.is_empty() => {
                let why = "it is for files of samples: --pprof, --otlp, --collapsed";
                Err(Refusal::wrong_use("--binaries", why))
            }
            file => Ok(file),
        }
    }

    pub(super) fn file(&self) -> Option<(FileFormat, &Path)> {
        let files = [
            (FileFormat::Pprof, &self.pprof),
            (FileFormat::Otlp, &self.otlp),
            (FileFormat::Collapsed, &self.collapsed),
        ];
        files.into_iter().find_map(|(format, path)| Some((format, path.as_deref()?)))
    }

    pub(super) fn profile(&self, format: FileFormat, path: &Path, stacks: bool) -> Result<Profile, Refusal> {
        if let Some(missing) = self.binaries.iter().find(|folder| !folder.is_dir()) {
            let what = format!("--binaries {}", missing.display());
            return Err(Refusal::wrong_use(what, "there is no such directory"));
        }
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let request = StoredRequest { path, format, stacks, binaries: &self.binaries, home: home.as_deref() };
        crate::threads::shared(|| stored::profile(&request)).map_err(|e| refused(path, &e))
    }
}

fn refused(path: &Path, error: &StoredError) -> Refusal {
    let refusal = Refusal::wrong_use(records::text_of(path), error.to_string());
    match error {
        StoredError::NotRead { .. } => refusal,
        StoredError::Damaged { .. } => refusal.would_help("a whole file, and the option for its format"),
        StoredError::OtherSamples { .. } => refusal.would_help("a profile of CPU time"),
    }
}
