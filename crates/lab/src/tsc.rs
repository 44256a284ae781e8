//! The time stamp counter: reading it in order, its rate, and the step in which it moves.

use crate::sys;
use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use units::{Estimate, middle_sorted};

/// Ticks now, after everything before has finished and before anything after begins.
#[inline]
pub fn now() -> u64 {
    // SAFETY: lfence and rdtsc are part of every x86-64 CPU; user access is checked by `usable` at
    // start-up.
    unsafe {
        _mm_lfence();
        let t = _rdtsc();
        _mm_lfence();
        t
    }
}

/// Ticks now, after everything before has finished; for the end of a timed stretch. Also says on
/// which CPU.
#[inline]
pub fn end() -> (u64, u32) {
    let mut cpu = 0;
    // SAFETY: rdtscp is checked by `usable`; it writes only `cpu`.
    unsafe {
        let t = __rdtscp(&raw mut cpu);
        _mm_lfence();
        (t, cpu & 0xfff)
    }
}

/// Is there a counter that ticks at one rate whatever the core clock does, and the fenced way to
/// read it?
pub fn usable() -> Result<(), &'static str> {
    use raw_cpuid::native_cpuid::cpuid_count;
    let extended = cpuid_count(0x8000_0000, 0).eax;
    if extended < 0x8000_0001 || cpuid_count(0x8000_0001, 0).edx & (1 << 27) == 0 {
        return Err("this CPU has no RDTSCP");
    }
    // The invariant bit is often masked in guests although the counter is invariant; a drifting one
    // shows up in the clock experiment, so only its absence together with bare metal would matter.
    // Not refused here.
    Ok(())
}

/// The counter's rate, from two readings of the raw monotonic clock `span_ns` apart.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    ticks: u64,
    ns: u64,
    uncertainty_ns: f64,
}

impl Anchor {
    /// Reads both clocks together: the tightest of a number of tries.
    pub fn take() -> Self {
        let mut best: Option<Self> = None;
        for _ in 0..32 {
            let before = sys::raw_monotonic_ns();
            let ticks = now();
            let after = sys::raw_monotonic_ns();
            let width = (after - before) as f64;
            if best.is_none_or(|b| width < b.uncertainty_ns) {
                best = Some(Self { ticks, ns: before + (after - before) / 2, uncertainty_ns: width });
            }
        }
        best.expect("32 tries")
    }

    /// Ticks a second between two anchors; the interval is what the readings' own width allows.
    pub fn rate_until(&self, later: &Self) -> Estimate {
        let ns = (later.ns - self.ns) as f64;
        let ticks = (later.ticks - self.ticks) as f64;
        let slack = f64::midpoint(self.uncertainty_ns, later.uncertainty_ns).max(1.0);
        Estimate::new(ticks / ns * 1e9, ticks / (ns + slack) * 1e9, ticks / (ns - slack).max(1.0) * 1e9)
    }

    pub fn seconds_until(&self, later: &Self) -> f64 {
        (later.ns - self.ns) as f64 * 1e-9
    }
}

/// Calibrates over `span`.
pub fn calibrate(span: std::time::Duration) -> Estimate {
    let first = Anchor::take();
    std::thread::sleep(span);
    first.rate_until(&Anchor::take())
}

/// The step in which the counter moves, in ticks: 1 on most bare metal, 26 or so where a slower
/// counter is scaled up. Scaling rounds, so that steps of one counter may differ by a tick:
/// differences are grouped, and the distance between neighbouring groups is the step.
pub fn granularity() -> u64 {
    let mut differences = Vec::with_capacity(8192);
    let mut last = now();
    let mut spin = 0u64;
    for i in 0..8192u64 {
        // Vary the distance so that differences do not all share a factor by accident.
        for j in 0..i % 61 {
            spin = std::hint::black_box(spin + j);
        }
        let t = now();
        differences.push(t - last);
        last = t;
    }
    step_of(&mut differences)
}

fn step_of(differences: &mut [u64]) -> u64 {
    differences.sort_unstable();
    // Interrupts make rare long ones; the bulk tells the step.
    let bulk = &differences[..differences.len() * 9 / 10];
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for same in bulk.chunk_by(|a, b| a == b) {
        // So are odd ones, which would join groups: a counter that moves in steps comes to each of
        // its few distances often.
        if same.len() < (bulk.len() / 500).max(2) {
            continue;
        }
        let d = same[0];
        match groups.last_mut() {
            Some((_, high)) if d - *high <= 2 => *high = d,
            _ => groups.push((d, d)),
        }
    }
    let mut gaps: Vec<u64> =
        groups.windows(2).map(|w| u64::midpoint(w[1].0, w[1].1) - u64::midpoint(w[0].0, w[0].1)).collect();
    gaps.sort_unstable();
    // Few groups, or wide ones, mean that the counter moves finely.
    let is_fine = gaps.len() < 2 || groups.iter().any(|g| g.1 - g.0 > 6);
    middle_sorted(&gaps).filter(|_| !is_fine).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_upwards_at_a_believable_rate() {
        usable().unwrap();
        let rate = calibrate(std::time::Duration::from_millis(20));
        assert!((1e8..1e10).contains(&rate.value), "{rate:?}");
        assert!(rate.relative_half_width() < 0.01);
        assert!(now() <= now());
    }

    #[test]
    fn step_survives_rounding() {
        let mut scaled: Vec<u64> = (0..1000u64).map(|i| 52 + (i % 5) * 26 - i % 2).collect();
        assert!((25..=26).contains(&step_of(&mut scaled)));
        // Odd ones in between.
        let odd = (0..20).map(|i| 54 + i);
        let mut disturbed: Vec<u64> = scaled.iter().copied().chain(odd).collect();
        assert!((25..=26).contains(&step_of(&mut disturbed)));
        let mut fine: Vec<u64> = (0..1000u64).map(|i| 60 + i % 50).collect();
        assert_eq!(step_of(&mut fine), 1);
        assert!(granularity() >= 1);
    }
}
