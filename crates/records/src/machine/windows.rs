//! Windows drawn at random from areas: the points that a model of the memory hierarchy is fitted
//! to.

use super::PageSupply;
use serde::{Deserialize, Serialize};
use units::{Bytes, Latency};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Windows {
    /// Size of a cache line, as the host claims it.
    pub line: Bytes,
    pub curves: Vec<WindowCurve>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowCurve {
    pub window: Bytes,
    /// Four doubles at a time instead of one.
    pub vectorised: bool,
    pub pages: PageSupply,
    /// Ascending in area.
    pub points: Vec<WindowPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowPoint {
    /// A whole number of windows.
    pub area: Bytes,
    /// Of one window, in which every double is read, sign-changed and written.
    pub cost: Latency,
    pub blocks: usize,
    pub voided: usize,
}
