//! Sizes in bytes, read and written the way people do: powers of two, `32K`, `1.5 MiB`.

use serde::{Deserialize, Serialize};

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseBytesError(String);

impl std::fmt::Display for ParseBytesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' is not a size; write for example 32K, 1M or 1.5 GiB", self.0)
    }
}

impl std::error::Error for ParseBytesError {}

impl Bytes {
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut exponent = 0;
        while exponent + 1 < NAMES.len() && self.0 >> (10 * (exponent + 1)) != 0 {
            exponent += 1;
        }
        let scaled = self.0 as f64 / (1u64 << (10 * exponent)) as f64;
        // Two digits behind the point at most, and none that say nothing.
        let text = format!("{scaled:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.pad(&format!("{text} {}", NAMES[exponent]))
    }
}

impl std::str::FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseBytesError(text.to_owned());
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, suffix) = trimmed.split_at(split);
        let number: f64 = number.parse().map_err(|_| refuse())?;
        let shift = match suffix.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(refuse()),
        };
        let bytes = number * (1u64 << shift) as f64;
        if !bytes.is_finite() || bytes >= u64::MAX as f64 {
            return Err(refuse());
        }
        Ok(Self(bytes.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("32K".parse(), Ok(Bytes::kib(32)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        for bad in ["", "K", "-1", "1X", "1e9", "99999999T"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_briefly() {
        assert_eq!(Bytes::kib(32).to_string(), "32 KiB");
        assert_eq!(Bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
    }
}
