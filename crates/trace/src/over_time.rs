//! When slices of accesses were: by how long each function takes, as samples of another run tell.
//!
//! The traced run is many times slower, and not by the same factor everywhere. So its own clock
//! tells nothing. But each slice knows how many accesses it has of which function, and samples tell
//! how long each function takes in all:
//!
//! ```text
//!            accesses of f in the slice
//! time  = Σ  ────────────────────────── × time of f
//!         f     accesses of f in all
//! ```
//!
//! What the samples show in no traced function, as time in the kernel, is spread over all slices.

use crate::slices::Slice;
use records::profile::BandwidthSlice;
use std::collections::HashMap;
use units::{Estimate, Quantity, Unit};

/// How long functions take, by their number; what share of all CPU time.
pub(crate) type Shares = HashMap<u32, Estimate>;

/// Stretches of time that a run is divided into, at most.
const STRETCHES: usize = 100;

#[derive(Clone, Debug, Default)]
struct Stretch {
    /// Time by the samples, and by the ends of their intervals.
    seconds: [f64; 3],
    read: Vec<f64>,
    written: Vec<f64>,
    lines: HashMap<u32, f64>,
}

/// Bandwidth over a run of this length. `nothing` is the share of time that a function may take
/// without any sample; `name` names functions.
pub(crate) fn bandwidth(
    slices: &[Slice],
    shares: &Shares,
    nothing: f64,
    elapsed_s: f64,
    maximum: &Quantity,
    name: &dyn Fn(u32) -> Option<String>,
) -> Vec<BandwidthSlice> {
    let times = times(slices, shares, nothing);
    let total: f64 = times.iter().map(|time| time.value).sum();
    if total <= 0.0 || elapsed_s <= 0.0 {
        return Vec::new();
    }
    let count = (slices.len() / 4).clamp(1, STRETCHES);
    let width = elapsed_s / count as f64;
    let mut stretches = vec![Stretch::default(); count];
    let mut at = 0.0;
    for (slice, time) in slices.iter().zip(&times) {
        let scaled = time.scaled(elapsed_s / total);
        let (from, to) = (at, at + scaled.value);
        at = to;
        let first = ((from / width) as usize).min(count - 1);
        let last = ((to / width) as usize).min(count - 1);
        for (number, stretch) in stretches.iter_mut().enumerate().take(last + 1).skip(first) {
            let begin = from.max(number as f64 * width);
            let end = to.min((number + 1) as f64 * width);
            let part = if scaled.value > 0.0 { ((end - begin) / scaled.value).clamp(0.0, 1.0) } else { 1.0 };
            stretch.add(slice, scaled, part);
        }
    }
    let figure = |number: usize, stretch: &Stretch| stretch.figure(number, width, maximum, name);
    stretches.iter().enumerate().map(|(number, stretch)| figure(number, stretch)).collect()
}

/// How long each slice took, in shares of the run.
fn times(slices: &[Slice], shares: &Shares, nothing: f64) -> Vec<Estimate> {
    let mut accesses: HashMap<u32, u64> = HashMap::new();
    for (&function, &count) in slices.iter().flat_map(|slice| &slice.accesses) {
        *accesses.entry(function).or_default() += count;
    }
    let all: u64 = accesses.values().sum();
    let is_known =
        shares.iter().any(|(function, share)| share.value > 0.0 && accesses.contains_key(function));
    let of_slice = |slice: &Slice| {
        let mut sum = Estimate::exact(0.0);
        for (function, &count) in &slice.accesses {
            let part = count as f64 / accesses[function] as f64;
            let share = match shares.get(function) {
                _ if !is_known => Estimate::exact(accesses[function] as f64 / all as f64),
                Some(share) => *share,
                None => Estimate::new(0.0, 0.0, nothing),
            };
            sum.value += part * share.value;
            sum.lo += part * share.lo;
            sum.hi += part * share.hi;
        }
        sum
    };
    slices.iter().map(of_slice).collect()
}

impl Stretch {
    fn add(&mut self, slice: &Slice, time: Estimate, part: f64) {
        for (sum, seconds) in self.seconds.iter_mut().zip([time.value, time.lo, time.hi]) {
            *sum += part * seconds;
        }
        self.read.resize(slice.traffic.len(), 0.0);
        self.written.resize(slice.traffic.len(), 0.0);
        for (number, traffic) in slice.traffic.iter().enumerate() {
            self.read[number] += part * traffic.read as f64;
            self.written[number] += part * traffic.written as f64;
        }
        for (&function, &lines) in &slice.lines {
            *self.lines.entry(function).or_default() += part * lines as f64;
        }
    }

    fn figure(
        &self,
        number: usize,
        width: f64,
        maximum: &Quantity,
        name: &dyn Fn(u32) -> Option<String>,
    ) -> BandwidthSlice {
        let both: Vec<f64> =
            self.read.iter().zip(&self.written).map(|(read, written)| read + written).collect();
        let sum = self.rate(&both, width);
        let rate = |bytes: &[f64]| Quantity::modelled(self.rate(bytes, width), Unit::BytesPerSecond);
        let most = self.lines.iter().max_by(|one, other| one.1.total_cmp(other.1).then(other.0.cmp(one.0)));
        let seconds = |s: f64| Quantity::modelled(Estimate::exact(s), Unit::Seconds);
        BandwidthSlice {
            from: seconds(number as f64 * width),
            to: seconds((number + 1) as f64 * width),
            read: rate(&self.read),
            write: rate(&self.written),
            of_maximum: match maximum.estimate() {
                Some(maximum) => Quantity::modelled(sum.over(maximum), Unit::Ratio),
                None => maximum.clone(),
            },
            function: most.and_then(|(&function, _)| name(function)),
        }
    }

    /// Bytes by last level, as a rate: of the first, between the least and the most of all.
    fn rate(&self, bytes: &[f64], width: f64) -> Estimate {
        let value = bytes.first().copied().unwrap_or(0.0);
        let least = bytes.iter().copied().fold(value, f64::min);
        let most = bytes.iter().copied().fold(value, f64::max);
        let [seconds, lo, hi] = self.seconds;
        // Times of functions are off together by as much as their samples say.
        let stretched = |end: f64| if end > 0.0 && seconds > 0.0 { width * end / seconds } else { width };
        Estimate::new(value / width, least / stretched(hi), most / stretched(lo))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caches::Traffic;

    fn slice(accesses: &[(u32, u64)], read: u64) -> Slice {
        Slice {
            accesses: accesses.iter().copied().collect(),
            lines: accesses.iter().map(|&(function, _)| (function, read / 64)).collect(),
            traffic: vec![Traffic { read, written: 0 }],
        }
    }

    #[test]
    fn functions_take_as_long_as_their_samples_say() {
        // The first function takes 9 s and asks memory for 9 GB; the second takes 1 s for 4 GB.
        let gigabyte = 1_000_000_000;
        let slices: Vec<Slice> = (0..400)
            .map(|n| if n < 200 { slice(&[(0, 10)], 45_000_000) } else { slice(&[(1, 10)], 20_000_000) })
            .collect();
        let shares: Shares =
            [(0, Estimate::new(0.9, 0.88, 0.92)), (1, Estimate::new(0.1, 0.09, 0.11))].into();
        let maximum = Quantity::measured(Estimate::exact(8e9), Unit::BytesPerSecond);
        let name = |function: u32| Some(format!("f{function}"));
        let all = bandwidth(&slices, &shares, 0.001, 10.0, &maximum, &name);
        assert_eq!(all.len(), 100);
        let gb = |quantity: &Quantity| quantity.value().unwrap() / f64::from(gigabyte);
        assert!((gb(&all[10].read) - 1.0).abs() < 0.01, "{:?}", all[10]);
        assert!((gb(&all[95].read) - 4.0).abs() < 0.05, "{:?}", all[95]);
        assert!((all[95].of_maximum.value().unwrap() - 0.5).abs() < 0.01);
        assert_eq!(all[95].function.as_deref(), Some("f1"));
        let interval = all[95].read.estimate().unwrap();
        assert!(interval.lo < 3.7e9 && interval.hi > 4.3e9, "{interval:?}");
        let sum: f64 = all.iter().map(|slice| slice.read.value().unwrap() * 0.1).sum();
        assert!((sum / f64::from(gigabyte) - 13.0).abs() < 1e-6);
    }
}
