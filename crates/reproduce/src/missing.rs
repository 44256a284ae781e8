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

impl Missing {
    /// As a table's note tells it.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Hardware(which) => format!("needs {which}"),
            Self::NotIdentifiable(why) | Self::NotRun(why) | Self::NoTest(why) => why.clone(),
        }
    }
}
