//! Strides and sizes of the command line, in place of those that the stride experiment measures.

use crate::line;
use records::host::Host;
use units::Bytes;

/// A stride is measured only in areas that hold it at least this many times.
pub(crate) const LEAST_STEPS: u64 = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrideChoice {
    /// Only these, ascending in the area; the usual ones where there are none.
    pub strides: Vec<Bytes>,
    /// A single one is the largest, measured with all sizes of `lat_mem_rd` below it; the usual
    /// ones where there are none.
    pub sizes: Vec<Bytes>,
}

impl StrideChoice {
    /// Which of these cannot be measured on this CPU, with areas of this much memory, and why.
    pub fn check(&self, host: &Host, cpu: usize, areas: Bytes) -> Result<(), (Bytes, String)> {
        let line = line::claimed(host, cpu);
        let largest = self.sizes.iter().copied().max().unwrap_or(areas);
        for &stride in &self.strides {
            let whole =
                if stride.0 < line { stride.0 >= 8 && line % stride.0 == 0 } else { stride.0 % line == 0 };
            if !whole {
                return Err((
                    stride,
                    format!("a stride is 8 bytes or more, and a part or a multiple of a line of {line}"),
                ));
            }
            if stride.0.saturating_mul(LEAST_STEPS) > largest.0 {
                return Err((
                    stride,
                    format!("an area holds a stride {LEAST_STEPS} times, and the largest is {largest}"),
                ));
            }
        }
        let beyond = self.sizes.iter().find(|&&size| size > areas);
        let small = self.sizes.iter().find(|&&size| size.0 < line * LEAST_STEPS);
        match (beyond, small) {
            (Some(&size), _) => {
                Err((size, format!("areas have at most {areas} here, unless --max-memory allows more")))
            }
            (_, Some(&size)) => {
                Err((size, format!("an area has at least {LEAST_STEPS} lines of {line} bytes")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_parts_or_multiples_of_lines_that_fit() {
        let refused = |steps: &[u64], sizes: &[u64]| {
            let of = |all: &[u64]| all.iter().map(|&bytes| Bytes(bytes)).collect();
            let choice = StrideChoice { strides: of(steps), sizes: of(sizes) };
            choice.check(&Host::default(), 0, Bytes::mib(64)).err().map(|(which, _)| which.0)
        };
        assert_eq!(refused(&[8, 32, 64, 192, 4096], &[1 << 20, 64 << 20]), None);
        assert_eq!(refused(&[64, 100], &[]), Some(100));
        assert_eq!(refused(&[4], &[]), Some(4));
        assert_eq!(refused(&[64, 1024], &[2048]), Some(1024));
        assert_eq!(refused(&[], &[65 << 20]), Some(65 << 20));
        assert_eq!(refused(&[], &[1 << 20, 64]), Some(64));
    }
}
