//! Access patterns: what a program does with memory, as a small algebra after Manegold, Boncz and
//! Kersten.
//!
//! ```text
//! pattern  := together { ';' together }        one after the other
//! together := repeated { '||' repeated }       beside each other, each on a thread of its own
//! repeated := [ count '*' ] ( '(' pattern ')' | mixed )
//! mixed    := access { '&' access }            interleaved on one thread
//! access   := chase(AREA) | rand(AREA) | rmw(AREA) | seq(AREA) | stride(STEP, AREA)
//!           | window(SIZE, AREA) | tree(AREA, FANOUT, NODE) | search(AREA)
//! ```
//!
//! and behind the sizes of an access, options: `n=1M`, `mlp=4`, `lines=3`, `zipf=0.99`, `pages=2M`,
//! `remote=0.5`, `op=write`, `work=2.5ns`, `instructions=9`.
//!
//! To add an access: a variant of [`Kind`], its name and sizes in [`KINDS`], the options that it
//! takes in `pattern/takes.rs`, its lines in `predict/lines.rs`, and a file in `predict/` that
//! tells its time.

mod parse;
mod takes;

pub use parse::{PatternError, parse, parse_setting};

use records::machine::StreamKind;
use units::Bytes;

/// The bytes of one access where the machine record does not say how long a line is.
pub(crate) const USUAL_LINE: u64 = 64;

#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Access(Access),
    /// On one thread, accesses of each among those of the others.
    Mixed(Vec<Access>),
    /// One after the other.
    InTurn(Vec<Pattern>),
    /// Each on a thread of its own.
    Beside(Vec<Pattern>),
    Times(u64, Box<Pattern>),
}

/// Accesses of one kind to one area.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub kind: Kind,
    pub area: Bytes,
    pub options: Options,
    /// As it was written.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each load takes its address from the one before; one random cycle through all lines.
    Chase,
    /// Independent loads, each of a line drawn at random.
    Rand,
    /// The same, and each line is written, too.
    Rmw,
    /// Line after line.
    Seq,
    /// Every `step` bytes, again and again from another line on, until all of the area is accessed.
    Stride { step: Bytes },
    /// Runs of consecutive reads and writes, each at a random place.
    Window { size: Bytes },
    /// From the root of a tree to a leaf drawn at random; the area holds the whole tree.
    Tree { fanout: u64, node: Bytes },
    /// Binary search for a key drawn at random, in sorted keys of [`KEY`] bytes each.
    Search,
}

/// The bytes of a key that a binary search looks for: those of a line are `line / KEY`.
pub(crate) const KEY: u64 = 8;

/// What may be said of an access, or of all that do not say it themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How many accesses; one pass over the area if it is not said.
    pub accesses: Option<f64>,
    /// How many are under way at once.
    pub mlp: Option<f64>,
    /// `4K`, `thp`, `2M` or `1G`.
    pub pages: Option<String>,
    /// Share of the accesses that go to memory of another node.
    pub remote: Option<f64>,
    /// What a pass in order does; reading if it is not said. The area is that of all its arrays.
    pub operation: Option<StreamKind>,
    /// Nanoseconds of one access, with its computing, when all data are in the nearest cache.
    pub work: Option<f64>,
    /// Instructions of one access, with its computing: they share the re-order buffer.
    pub instructions: Option<f64>,
    /// Lines of each node that are read; one, or all of a tree's node, if it is not said.
    pub lines: Option<f64>,
    /// Skew of a Zipf distribution: the `r`th node is drawn in proportion to `r^-zipf`.
    pub zipf: Option<f64>,
}

/// The names of accesses, and which sizes they take.
pub(crate) const KINDS: [(&str, &[&str]); 8] = [
    ("chase", &["AREA"]),
    ("rand", &["AREA"]),
    ("rmw", &["AREA"]),
    ("seq", &["AREA"]),
    ("stride", &["STEP", "AREA"]),
    ("window", &["SIZE", "AREA"]),
    ("tree", &["AREA", "FANOUT", "NODE"]),
    ("search", &["AREA"]),
];

impl Options {
    /// These, and those of `other` where these say nothing.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            accesses: self.accesses.or(other.accesses),
            mlp: self.mlp.or(other.mlp),
            pages: self.pages.clone().or_else(|| other.pages.clone()),
            remote: self.remote.or(other.remote),
            operation: self.operation.or(other.operation),
            work: self.work.or(other.work),
            instructions: self.instructions.or(other.instructions),
            lines: self.lines.or(other.lines),
            zipf: self.zipf.or(other.zipf),
        }
    }
}

impl Access {
    /// The bytes that one access stands for in a pass over the area.
    pub(crate) fn unit(&self, line: u64) -> f64 {
        match self.kind {
            Kind::Chase | Kind::Rand | Kind::Rmw | Kind::Seq | Kind::Search => {
                line as f64 * self.options.lines.unwrap_or(1.0)
            }
            Kind::Stride { step } => step.0 as f64,
            Kind::Window { size } => size.0 as f64,
            Kind::Tree { node, .. } => node.0 as f64,
        }
    }

    /// Lines of a node, whose loads do not wait for each other.
    pub(crate) fn lines(&self, line: u64) -> f64 {
        let of_node = match self.kind {
            Kind::Tree { node, .. } => node.0.div_ceil(line) as f64,
            _ => 1.0,
        };
        self.options.lines.unwrap_or(of_node)
    }

    /// How many accesses there are: as many as was said, or one pass over the area.
    pub(crate) fn accesses(&self, line: u64) -> f64 {
        self.options.accesses.unwrap_or_else(|| (self.area.0 as f64 / self.unit(line)).max(1.0))
    }
}
