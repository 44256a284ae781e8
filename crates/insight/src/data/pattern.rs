//! How a load's addresses follow one another, by its samples: where its code does not tell, see
//! `code/dependence.rs`.
//!
//! A load that replaces its own base by what it loaded most likely follows a chain. A stream shows
//! in the samples: over the run its addresses ascend (or descend) far more often than not, from
//! sample to sample of one thread.

use crate::data::data_address::DataAddress;
use records::profile::Pattern;

/// An address with the thread and the time of its sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub thread: u32,
    pub time_ns: u64,
    pub address: DataAddress,
}

/// Steps from sample to sample that must go one way before a load counts as a stream.
const STEADY: f64 = 0.8;
/// Fewer steps tell nothing.
const LEAST_STEPS: usize = 16;

/// Bytes and nanoseconds from sample to sample of one thread.
pub(crate) fn steps(samples: &[Timed]) -> Vec<(i64, u64)> {
    let mut ordered = samples.to_vec();
    ordered.sort_by_key(|sample| (sample.thread, sample.time_ns));
    let of_thread = ordered.windows(2).filter(|pair| pair[0].thread == pair[1].thread);
    of_thread
        .map(|pair| {
            let bytes = pair[1].address.address().wrapping_sub(pair[0].address.address()) as i64;
            (bytes, pair[1].time_ns - pair[0].time_ns)
        })
        .collect()
}

pub(crate) fn pattern(samples: &[Timed]) -> Pattern {
    if samples.iter().any(|sample| matches!(sample.address, DataAddress::Next(_))) {
        return Pattern::Chain;
    }
    let steps: Vec<i64> =
        steps(samples).into_iter().map(|(bytes, _)| bytes).filter(|&bytes| bytes != 0).collect();
    if steps.len() < LEAST_STEPS {
        return Pattern::Unresolved;
    }
    let up = steps.iter().filter(|&&step| step > 0).count() as f64 / steps.len() as f64;
    if up >= STEADY || up <= 1.0 - STEADY { Pattern::Stream } else { Pattern::Unresolved }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(addresses: impl IntoIterator<Item = u64>) -> Vec<Timed> {
        let timed =
            |(at, address)| Timed { thread: 1, time_ns: at as u64, address: DataAddress::Read(address) };
        addresses.into_iter().enumerate().map(timed).collect()
    }

    #[test]
    fn streams_go_one_way() {
        assert_eq!(pattern(&samples((0..100).map(|at| at * 4096))), Pattern::Stream);
        assert_eq!(pattern(&samples((0..100).map(|at| (100 - at) * 4096))), Pattern::Stream);
        // Over and over again: down once in twenty steps.
        assert_eq!(pattern(&samples((0..100).map(|at| (at % 20) * 4096))), Pattern::Stream);
        let scattered = samples((0..100_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40));
        assert_eq!(pattern(&scattered), Pattern::Unresolved);
        assert_eq!(pattern(&samples([64; 100])), Pattern::Unresolved, "one address");
        assert_eq!(pattern(&samples([1, 2, 3])), Pattern::Unresolved);
    }

    #[test]
    fn a_load_of_its_own_base_is_a_chain() {
        let mut chain = samples([1, 2, 3]);
        chain[0].address = DataAddress::Next(5);
        assert_eq!(pattern(&chain), Pattern::Chain);
    }
}
