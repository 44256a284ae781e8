//! The tour record: a program that waits for memory, told from the machine it runs on to what can
//! be done about it. Each step was carried out, or says why not.

use crate::Record;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// The steps of one tour, in the order in which they are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tour {
    /// The processor of this run.
    pub processor: String,
    /// Wall-clock time that the run took.
    pub seconds: f64,
    /// The user stopped it before its end.
    #[serde(default)]
    pub interrupted: bool,
    /// What the program of the tour is, in a sentence or two.
    pub program: Vec<String>,
    pub steps: Vec<TourStep>,
    /// What to do next with a program of one's own: commands, each with what it is for.
    #[serde(default)]
    pub next: Vec<NextStep>,
}

impl Record for Tour {
    const KIND: &'static str = "tour";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

/// One step: a question, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TourStep {
    /// The question that it answers.
    pub title: String,
    /// The command that answers it for any program.
    pub command: String,
    pub outcome: StepOutcome,
    /// What was found, in sentences.
    #[serde(default)]
    pub says: Vec<String>,
    /// The figures that a picture shows beside each other: of one unit.
    #[serde(default)]
    pub figures: Vec<StepFigure>,
    /// What the picture shows.
    #[serde(default)]
    pub figures_show: String,
    /// The file name of the record with all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

/// A figure of the picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepFigure {
    pub name: String,
    pub value: Quantity,
    /// It is told as a percentage.
    #[serde(default)]
    pub percent: bool,
}

/// Whether a step was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum StepOutcome {
    Done,
    NotRun {
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        would_help: Option<String>,
    },
}

/// A command, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextStep {
    pub command: String,
    pub what_for: String,
}
