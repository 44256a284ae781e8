//! The recipe record: what makes one build of a program faster without its source, and what was
//! measured of each change that was tried. `gleaner run` goes by it.

use crate::Record;
use crate::profile::CodeAddress;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// What `gleaner speed` found out of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recipe {
    pub program: TriedProgram,
    /// The processor on which it was measured.
    pub processor: String,
    pub verdict: Verdict,
    /// What is kept together against the program as it is, by fresh runs: how often as fast.
    pub faster: Quantity,
    /// Times of these runs: the medians.
    pub without: Quantity,
    pub with: Quantity,
    /// What the program has more of memory at its peak; less is negative.
    pub memory: Quantity,
    /// What is kept: each in one form.
    pub settings: Vec<Setting>,
    /// The files that the settings are made for, each of this build.
    pub files: Vec<BuiltFile>,
    pub tried: Vec<TriedChange>,
    /// Other arguments, and what the kept changes do there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherArguments>,
    /// What of a run was compared, and what could not be.
    pub compared: Vec<String>,
    /// Runs of the program, the profile's among them.
    pub runs: usize,
    pub seconds: f64,
}

impl Record for Recipe {
    const KIND: &'static str = "recipe";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

impl Recipe {
    /// The program lies at another path now: it is the same build.
    pub fn is_at(&mut self, path: &str) {
        let before = self.program.file.clone();
        let moved = |file: &mut BuiltFile| {
            if *file == before {
                path.clone_into(&mut file.path);
            }
        };
        for setting in &mut self.settings {
            match setting {
                Setting::Prefetch(load) => moved(&mut load.file),
                Setting::WithoutPrefetches { file, .. } => moved(file),
                _ => {}
            }
        }
        self.files.iter_mut().for_each(moved);
        moved(&mut self.program.file);
    }
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedProgram {
    /// Bytes that are not valid UTF-8 are written as `\xHH`.
    pub command: Vec<String>,
    pub file: BuiltFile,
    /// It is a server, and this command put it under load: times are its CPU time for one load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<String>,
    /// It was one process that went on, and this is how its work was counted: times are its CPU
    /// time for the work of a tenth of a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<String>,
}

/// A file of one build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BuiltFile {
    pub path: String,
    /// Its build id; or a checksum of all of it, where it has none.
    pub build: String,
}

/// What comes of all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// The settings are worth keeping.
    Faster,
    /// The program is best left as it is.
    LeaveIt { why: String },
    /// It cannot be told yet.
    NotResolved { why: String },
}

/// One change of how a program is run. None of its source is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Setting {
    /// A prefetch ahead of one load, in a rewritten copy of its file.
    Prefetch(PrefetchedLoad),
    /// The program's own prefetches at these addresses are left out, in a rewritten copy of its
    /// file.
    WithoutPrefetches {
        file: BuiltFile,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        addresses: Vec<u64>,
    },
    /// glibc's `malloc` asks for huge pages.
    MallocOnHugePages,
    /// What the program maps itself lies on huge pages, up to this size at once.
    MappedOnHugePages { up_to: u64 },
    /// Code lies on huge pages: moved there when the program starts.
    CodeOnHugePages,
    /// Another value of one of glibc's tunables.
    Tunable { name: String, value: String },
    /// Another allocator in front of libc's.
    Allocator { name: String, library: BuiltFile },
    /// Cache lines of their own for what is allocated at these calls.
    OwnLines { object: String, alignment: u64, paths: Vec<Vec<CodeAddress>> },
    /// Threads stay on these CPUs.
    OnCpus { cpus: Vec<u32>, says: String },
    /// Memory is spread over these nodes, a bit each.
    OverNodes { nodes: u64 },
}

/// A load, and how far ahead its data is fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchedLoad {
    pub file: BuiltFile,
    /// In the file's own addresses.
    pub address: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    pub ahead: Ahead,
}

/// How far ahead of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ahead {
    /// Bytes behind the load's own address; negative where it walks downwards.
    Bytes(i32),
    /// Steps of the load that its address comes from.
    Steps(i32),
}

/// A change that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedChange {
    /// In words: what was changed, and in which form.
    pub says: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub form: String,
    pub outcome: ChangeOutcome,
    /// How often as fast the program is with it than without: on top of what was kept before.
    pub faster: Quantity,
    /// Pairs of runs that say so.
    pub pairs: usize,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum ChangeOutcome {
    Kept,
    Dropped { why: String },
    NotTried { why: String },
}

/// What the kept changes do with other arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherArguments {
    pub arguments: Vec<String>,
    pub faster: Quantity,
    pub pairs: usize,
}
