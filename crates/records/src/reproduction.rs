//! The reproduction record: claims of one published document, each beside what this machine shows.

use crate::Record;
use crate::machine::Grade;
use serde::{Deserialize, Serialize};
use units::{Quantity, Unit};

/// The claims of one document, each tested here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reproduction {
    /// Its short name: `mlp`, `origin2000`, `lat_mem_rd`, `vtune` or `msh`.
    pub document: String,
    /// Author, title and year.
    pub title: String,
    /// The processor of this run.
    pub processor: String,
    /// Of the measurement; absent where nothing of the machine was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// Wall-clock time that the run took.
    pub seconds: f64,
    /// The user stopped it before its end.
    #[serde(default)]
    pub interrupted: bool,
    pub claims: Vec<ClaimOutcome>,
    /// Figures of the document, each beside the same of this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<ClaimCurves>,
    /// Tables of the document, each with the same rows of this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<ClaimTable>,
}

impl Record for Reproduction {
    const KIND: &'static str = "reproduction";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

/// A claim, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimOutcome {
    /// Unique in its document.
    pub id: String,
    /// Where the document makes it: a section, a table, a figure.
    pub place: String,
    /// In the document's own words.
    pub quote: String,
    /// The figure in which the two machines are compared.
    pub statistic: String,
    /// That figure by the document, as a range where it gives one.
    pub paper: Quantity,
    pub here: Quantity,
    /// The figure here over that of the document.
    pub ratio: Quantity,
    /// What the figure here must be for the claim to hold: an order, a ratio or a cliff.
    pub shape: String,
    pub verdict: ClaimVerdict,
    /// What is missing, or the likely reason why the shape differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Where this program reads the document's own data differently, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// The command whose record holds the figures.
    pub command: String,
}

/// A figure of the document: the points that its text states, and the same measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimCurves {
    /// Letters, digits and `-`: unique in its document.
    pub id: String,
    pub title: String,
    /// The figure, table or section of the document.
    pub place: String,
    /// The claims that it shows, by their ids.
    pub claims: Vec<String>,
    /// What its axes are.
    pub x: String,
    pub y: String,
    pub x_unit: Unit,
    /// Both axes.
    pub logarithmic: bool,
    pub paper: Vec<ClaimCurve>,
    pub here: Vec<ClaimCurve>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimCurve {
    pub name: String,
    /// Ascending in x.
    pub points: Vec<ClaimPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimPoint {
    pub x: f64,
    pub y: Quantity,
}

/// A table of the document: its rows, and those of this machine below them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimTable {
    /// Letters, digits and `-`: unique in its document.
    pub id: String,
    pub title: String,
    /// The table or section of the document.
    pub place: String,
    /// What the cells of a row are.
    pub columns: Vec<String>,
    pub rows: Vec<ClaimRow>,
    /// How rows here differ from those of the document, or why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimRow {
    pub name: String,
    /// Of this machine; of the document where false.
    pub here: bool,
    /// As many as there are columns; unresolved where there is no such figure.
    pub cells: Vec<Quantity>,
}

/// What this run says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The whole interval has the shape that the document describes.
    Reproduced,
    /// No part of the interval has it.
    ShapeDiffers,
    /// A part of the interval has it, or no program can tell on this host.
    NotIdentifiable,
    /// Only other hardware can show it; which one stands beside it.
    NeedsOtherHardware,
    /// It was not tried: the run ended before it, or something that it needs is not installed.
    NotRun,
}

impl ClaimVerdict {
    pub const ALL: [Self; 5] =
        [Self::Reproduced, Self::ShapeDiffers, Self::NotIdentifiable, Self::NeedsOtherHardware, Self::NotRun];

    /// As tables spell it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::ShapeDiffers => "shape differs",
            Self::NotIdentifiable => "not identifiable",
            Self::NeedsOtherHardware => "needs other hardware",
            Self::NotRun => "not run",
        }
    }
}
