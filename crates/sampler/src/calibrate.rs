//! Where samples land behind a load that is known to stall: asked of this machine before each run,
//! since it depends on the processor and, in a guest, on its host.

use crate::perf::event::Event;
use crate::perf::open::Clock;
use crate::perf::ring::Ring;
use crate::perf::{event, open};
use insight::share::measured_share;
use records::profile::Calibration;
use std::time::{Duration, Instant};
use units::Quantity;

/// Far more than an L2 cache, and quickly written.
const AREA_BYTES: usize = 32 << 20;
const LINE_BYTES: usize = 64;
/// Of this thread's CPU time; on a busy machine it ends earlier.
const LASTS: Duration = Duration::from_millis(150);
const LONGEST: Duration = Duration::from_millis(600);
/// Steps between two looks at the clock: a few milliseconds.
const STEPS: u64 = 20_000;

/// Runs a chain of loads through a large area under the clock, and counts how many samples land
/// exactly one instruction behind the load.
pub(crate) fn calibrate(clock: Clock) -> Calibration {
    let unresolved = |why: &str| Calibration { one_behind: Quantity::unresolved(why), samples: 0 };
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let clock = Clock { from_exec: false, ..clock };
    let rings: Option<Vec<Ring>> = open::cpus()
        .into_iter()
        .filter_map(|cpu| open::open(clock, thread, cpu).ok())
        .map(|event| Ring::of(event, clock.holds).ok())
        .collect();
    let Some(mut rings) = rings.filter(|rings| !rings.is_empty()) else {
        return unresolved("no event could be opened for the calibration");
    };
    let behind_load = stall(LASTS, LONGEST);
    let mut bytes = Vec::new();
    for ring in &mut rings {
        ring.drain(&mut bytes);
    }
    let sampled = event::events(&bytes, clock.holds).into_iter().filter_map(|event| match event {
        Event::Sample(sample) if !sample.in_kernel => sample.registers.map(|registers| registers.ip.0),
        _ => None,
    });
    counted(sampled, behind_load)
}

/// Goes through a chain of loads for so long in CPU time, or in time; returns the address behind
/// the load.
pub(crate) fn stall(lasts: Duration, longest: Duration) -> u64 {
    let area = area();
    let mut behind_load = 0;
    let mut at = area.as_ptr() as u64;
    let (began, spent) = (Instant::now(), thread_cpu_time());
    while thread_cpu_time().saturating_sub(spent) < lasts && began.elapsed() < longest {
        (at, behind_load) = chase(at, STEPS);
    }
    behind_load
}

/// How many of the sampled addresses are right behind the load.
pub(crate) fn counted(sampled: impl Iterator<Item = u64>, behind_load: u64) -> Calibration {
    // Only samples in the loop count: writing the area and looking at the clock are not part of it.
    let near = behind_load.saturating_sub(16)..behind_load + 64;
    let sampled: Vec<u64> = sampled.filter(|ip| near.contains(ip)).collect();
    let exact = sampled.iter().filter(|&&ip| ip == behind_load).count() as u64;
    Calibration { one_behind: measured_share(exact, sampled.len() as u64), samples: sampled.len() as u64 }
}

fn thread_cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// An area whose lines each point to another one: one circle through all of them, by a linear
/// congruential generator of full period, which prefetchers do not follow.
fn area() -> Vec<u64> {
    const LINES: usize = AREA_BYTES / LINE_BYTES;
    const WORDS: usize = LINE_BYTES / 8;
    let mut words = vec![0_u64; LINES * WORDS];
    let base = words.as_ptr() as u64;
    for line in 0..LINES {
        let next = (line.wrapping_mul(0x5_DEEC_E66D) + 11) % LINES;
        words[line * WORDS] = base + (next * LINE_BYTES) as u64;
    }
    words
}

/// Follows pointers from `at`; returns where it got to, and the address of the instruction behind
/// the load. It is never inlined, so that its loop stands at one address.
#[inline(never)]
fn chase(at: u64, steps: u64) -> (u64, u64) {
    let (mut at, mut behind, mut left) = (at, 0_u64, steps);
    // SAFETY: reads only; every pointer in the area leads to another line of it, and the area
    // outlives the call.
    unsafe {
        std::arch::asm!(
            "lea {behind}, [rip + 3f]",
            "2:",
            "mov {at}, [{at}]",
            "3:",
            "add {sum}, 1",
            "add {sum}, 1",
            "add {sum}, 1",
            "add {sum}, 1",
            "dec {left}",
            "jnz 2b",
            at = inout(reg) at,
            behind = inout(reg) behind,
            left = inout(reg) left,
            sum = out(reg) _,
            options(nostack, readonly),
        );
    }
    let _ = left;
    (at, behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_goes_through_the_whole_area() {
        let area = area();
        let base = area.as_ptr() as u64;
        let lines = (AREA_BYTES / LINE_BYTES) as u64;
        let (at, behind) = chase(base, lines - 1);
        assert!(at != base && (at - base) % LINE_BYTES as u64 == 0 && at - base < AREA_BYTES as u64);
        assert!(behind > 0);
        assert_eq!(chase(at, 1).0, base, "back at the start after one round");
    }
}
