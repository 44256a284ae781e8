//! Sets of CPUs (or nodes) the way Linux writes them: `0-3,8-11`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A set of CPU numbers; in JSON the kernel's list form, `"0-3,8"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct CpuList(BTreeSet<u32>);

/// Larger numbers than any kernel's `NR_CPUS`; a list that names them is garbled, and expanding it
/// would eat memory.
const LIMIT: u32 = 1 << 16;

/// Why a text is not a CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a list of CPUs such as 0-3,8")]
pub struct ParseCpuListError(String);

impl CpuList {
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl std::str::FromStr for CpuList {
    type Err = ParseCpuListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseCpuListError(text.chars().take(40).collect());
        let mut set = BTreeSet::new();
        for part in text.trim().split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let from: u32 = from.parse().map_err(|_| refuse())?;
            let to: u32 = to.parse().map_err(|_| refuse())?;
            if from > to || to >= LIMIT {
                return Err(refuse());
            }
            set.extend(from..=to);
        }
        Ok(Self(set))
    }
}

impl std::fmt::Display for CpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        let mut rest = self.iter().peekable();
        while let Some(from) = rest.next() {
            let mut to = from;
            while rest.next_if_eq(&(to + 1)).is_some() {
                to += 1;
            }
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&from.to_string());
            if to > from {
                text.push('-');
                text.push_str(&to.to_string());
            }
        }
        f.pad(&text)
    }
}

impl TryFrom<String> for CpuList {
    type Error = ParseCpuListError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_the_kernels_form() {
        for text in ["", "0", "0-3", "0-3,8-11", "1,3,5-6"] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), text);
        }
        assert_eq!("0,1,2\n".parse::<CpuList>().unwrap().to_string(), "0-2");
        for bad in ["x", "3-1", "0-4294967295", "-1", "1-2-3"] {
            assert!(bad.parse::<CpuList>().is_err(), "{bad}");
        }
    }
}
