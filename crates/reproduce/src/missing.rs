//! What stands in the place of a figure that is not there.

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Only other hardware shows it: which.
    Hardware(String),
    /// No program can tell on this host, or the measurement did not resolve it.
    NotIdentifiable(String),
    NotRun(String),
    /// This host could show it, but nothing here tries it yet: what there is to try it with.
    NoTest(String),
}
