//! Data that the core waited for.

use super::not_told;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// A variable, what is allocated at one place, or an area of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryObject {
    /// A variable's name and its module; where it is allocated; or the kind of the area.
    pub name: String,
    /// Where it is allocated, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<AllocationSite>,
    /// Its size, where known. Of allocations: the ends are the smallest and the largest one.
    pub bytes: Quantity,
    /// The number of such objects: of allocations, the most that lived at once.
    pub count: u64,
    /// Allocations that were made, as far as they are known.
    #[serde(default = "not_allocated")]
    pub allocations: Quantity,
    /// Share of the CPU time in which the core waited for it. Loads without an address count
    /// nowhere.
    pub stall: Quantity,
    /// Share of the latency of all sampled loads; only hardware samples tell.
    #[serde(default = "not_told")]
    pub latency_share: Quantity,
    /// Threads that waited for it.
    pub threads: usize,
}

impl MemoryObject {
    /// Its size in words: of many their number, too, and what they take together.
    pub fn size_in_words(&self) -> Option<String> {
        let bytes = self.bytes.estimate()?;
        let one = |bytes: f64| units::Bytes(bytes as u64);
        if self.count <= 1 {
            return Some(one(bytes.value).to_string());
        }
        let number = grouped(self.count);
        Some(if bytes.lo < bytes.hi {
            format!("{number} of {} to {}", one(bytes.lo), one(bytes.hi))
        } else {
            // Their number may be an estimate: no more digits than that has.
            let all = rounded((self.count as f64 * bytes.value) as u64);
            format!("{number} × {} = {}", one(bytes.value), brief(all))
        })
    }
}

/// Three digits; all others are zeros.
fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (number + unit / 2) / unit * unit
}

/// As in "400,000".
fn grouped(number: u64) -> String {
    let digits = rounded(number).to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size of three digits.
fn brief(bytes: u64) -> String {
    let exact = units::Bytes(bytes).to_string();
    match exact.split_once(' ').and_then(|(number, unit)| Some((number.parse::<f64>().ok()?, unit))) {
        Some((number, unit)) if number >= 100.0 => format!("{number:.0} {unit}"),
        Some((number, unit)) if number >= 10.0 && unit != "B" => format!("{number:.1} {unit}"),
        _ => exact,
    }
}

fn not_allocated() -> Quantity {
    Quantity::unresolved("it is not known to be allocated")
}

/// The call by which a program allocates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocationSite {
    /// The first function that is not part of an allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The calls that led there, the innermost first. Several paths may lead to one site: this is
    /// the one that the core waited for most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// The paths of calls that lead there, the one first that the core waited for most: from the
    /// call of the allocating function outwards to the site's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Vec<CodeAddress>>,
    /// It maps memory itself (`mmap`), and does not ask an allocator for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_mapped: bool,
    /// The same paths as compilers find them again, with what was allocated on each; only where
    /// debug information tells, and for the objects that cost most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<AllocationContext>,
}

/// One path of calls that allocates, as compilers find it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocationContext {
    /// From the call of the allocating function outwards. Code without debug information is left
    /// out.
    pub calls: Vec<SourceCall>,
    /// Allocations that were made.
    pub allocations: Quantity,
    /// Bytes of all of them together.
    pub bytes: Quantity,
    /// How long one lived in the mean; those that lived at the end, until then.
    pub lifetime: Quantity,
    /// Share of the CPU time in which the core waited for them.
    pub stall: Quantity,
}

/// A call in a function that may be compiled anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceCall {
    /// The calling function's linkage name.
    pub function: String,
    /// Lines from the function's first one on.
    pub line_offset: u32,
    pub column: u32,
    /// The calling function's code is part of its own caller's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inlined: bool,
}

/// A place in a file's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeAddress {
    pub module: String,
    /// In the module's file; of a call, the last byte of its instruction.
    pub address: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Unit};

    fn of(count: u64, lo: f64, hi: f64) -> MemoryObject {
        MemoryObject {
            name: "malloc in main (p.c:3)".to_owned(),
            site: None,
            bytes: Quantity::measured(Estimate { value: hi, lo, hi }, Unit::Bytes),
            count,
            allocations: not_allocated(),
            stall: not_told(),
            latency_share: not_told(),
            threads: 1,
        }
    }

    #[test]
    fn sizes_of_many_say_what_they_take_together() {
        let text = |count, lo, hi| of(count, lo, hi).size_in_words().unwrap();
        assert_eq!(text(400_000, 136.0, 136.0), "400,000 × 136 B = 51.9 MiB");
        assert_eq!(text(1_234_567, 16.0, 16.0), "1,230,000 × 16 B = 18.9 MiB");
        assert_eq!(text(7, 16.0, 4096.0), "7 of 16 B to 4 KiB");
        assert_eq!(text(1, 1048576.0, 1048576.0), "1 MiB");
    }
}
