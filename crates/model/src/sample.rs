//! One measured point.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) area: f64,
    /// Lines in a window; 1 for single loads.
    pub(crate) lines: f64,
    pub(crate) time: f64,
}
