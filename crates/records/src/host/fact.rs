//! A fact that may be unknown, and an ability that may be missing.

use serde::{Deserialize, Serialize};

/// Something that the host reports, or why it is not known. JSON: the bare value, or `{"unknown":
/// "why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Fact<T> {
    // First, so that a map with this key is never taken for a value of a type whose fields all have
    // defaults.
    Unknown { unknown: String },
    Known(T),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::unknown("not recorded")
    }
}

impl<T> Fact<T> {
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { unknown: why.into() }
    }

    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    pub fn why_unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown { unknown } => Some(unknown),
        }
    }

    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(f(value)),
            Self::Unknown { unknown } => Fact::Unknown { unknown },
        }
    }

    /// The value, or else what `other` finds out; the first reason is kept when both fail.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Known(_) => self,
            Self::Unknown { unknown } => match other() {
                Self::Unknown { .. } => Self::Unknown { unknown },
                known @ Self::Known(_) => known,
            },
        }
    }
}

impl<T: Copy> Fact<T> {
    pub fn value(&self) -> Option<T> {
        self.get().copied()
    }
}

/// Whether this host can do something; a "no" says what would change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "can", rename_all = "lowercase")]
pub enum Ability {
    Yes {
        detail: String,
    },
    No {
        why: String,
        /// One sentence that a user can act on.
        would_help: String,
    },
    /// Not tried, or tried with an answer that settles nothing.
    Unknown {
        why: String,
    },
}

impl Default for Ability {
    fn default() -> Self {
        Self::unknown("not recorded")
    }
}

impl Ability {
    pub fn yes(detail: impl Into<String>) -> Self {
        Self::Yes { detail: detail.into() }
    }

    pub fn no(why: impl Into<String>, would_help: impl Into<String>) -> Self {
        Self::No { why: why.into(), would_help: would_help.into() }
    }

    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }

    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Yes { .. })
    }
}

/// What Gleaner can do on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Verdict {
    pub measure: Ability,
    /// One ability per profiling backend: probe, trace, pebs, ibs, spe, clock; `system`: of all
    /// processes; `stored`: of profiles that others took.
    pub profile: std::collections::BTreeMap<String, Ability>,
    pub harvest: Ability,
}
