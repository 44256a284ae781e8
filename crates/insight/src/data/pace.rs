//! How long one execution of a stream's load takes, by how far its addresses go from sample to
//! sample.

use crate::data::pattern::{Timed, steps};

/// Fewer steps tell nothing.
const LEAST_STEPS: usize = 8;

/// Nanoseconds from one execution to the next; `step` bytes lie between two of their addresses.
pub(crate) fn each_ns(samples: &[Timed], step: i64) -> Option<f64> {
    let each = |(bytes, ns): (i64, u64)| {
        let turns = bytes as f64 / step as f64;
        // Else it began anew between the two.
        (turns >= 1.0).then(|| ns as f64 / turns)
    };
    let mut each: Vec<f64> = steps(samples).into_iter().filter_map(each).collect();
    if step == 0 || each.len() < LEAST_STEPS {
        return None;
    }
    each.sort_unstable_by(f64::total_cmp);
    Some(each[each.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::data_address::DataAddress;

    #[test]
    fn a_stream_goes_so_far_in_a_time() {
        let at = |n: u64| Timed { thread: 1, time_ns: n * 1000, address: DataAddress::Read(n % 50 * 4096) };
        let samples: Vec<Timed> = (0..100).map(at).collect();
        let each = each_ns(&samples, 4).unwrap();
        assert!((each - 1000.0 / 1024.0).abs() < 1e-9, "{each}");
        assert_eq!(each_ns(&samples[..5], 4), None);
        assert_eq!(each_ns(&samples, -4), None, "it goes the other way");
    }
}
