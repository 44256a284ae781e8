//! How far behind a load that stalls samples by time land on this processor: asked for one second
//! of a loop whose stalling load is known. It says how far samples may be trusted that others took
//! on such a processor, and kept.

use crate::chain::{Chain, thread_cpu_time};
use crate::perf::event::{self, Event};
use crate::perf::open::{self, Clock, Holds};
use crate::perf::ring::{RING_BYTES, Ring};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use insight::measured_share;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use units::Quantity;

/// Far more than an L2 cache, and quickly written.
const AREA_BYTES: usize = 32 << 20;
const FREQUENCY_HZ: u64 = 4000;
/// Of this thread's CPU time; on a busy machine it ends earlier.
const LASTS: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3);
/// Some milliseconds.
const STEPS: u64 = 40_000;
/// The loop's code.
const MOST_BYTES: usize = 64;

/// Where samples landed.
#[derive(Clone, Debug)]
pub struct Skid {
    pub samples: u64,
    /// Samples outside the loop: of the clock's own code, and the like.
    pub elsewhere: u64,
    pub steps: Vec<SkidStep>,
}

/// One instruction of the loop.
#[derive(Clone, Debug)]
pub struct SkidStep {
    /// Instructions behind the load, in the order in which they are executed; 0 is the load itself.
    pub behind: u64,
    pub instruction: String,
    pub samples: u64,
    pub share: Quantity,
}

/// Measures it; an error says why it cannot.
pub fn measure() -> Result<Skid, String> {
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let clock = Clock {
        frequency_hz: FREQUENCY_HZ.min(open::highest_frequency_hz()),
        with_kernel: false,
        from_exec: false,
        wake_at_bytes: (RING_BYTES / 2) as u32,
        holds: Holds::Registers,
    };
    let (mut rings, mut refused) = (Vec::new(), None);
    for cpu in open::cpus() {
        match open::open(clock, thread, cpu).and_then(|event| Ring::of(event, clock.holds)) {
            Ok(ring) => rings.push(ring),
            Err(e) => refused = Some(e),
        }
    }
    if let Some(e) = refused.filter(|_| rings.is_empty()) {
        return Err(format!("the kernel's sampling clock may not be used: {}", records::plain(&e)));
    }
    let chain = Chain::of(AREA_BYTES);
    let (mut at, mut places) = chain.go(chain.start(), STEPS);
    let mut bytes = Vec::new();
    let (began, spent) = (Instant::now(), thread_cpu_time());
    for ring in &rings {
        open::set_enabled(ring.event(), true);
    }
    while thread_cpu_time().saturating_sub(spent) < LASTS && began.elapsed() < LONGEST {
        (at, places) = chain.go(at, STEPS);
        for ring in &mut rings {
            ring.drain(&mut bytes);
        }
    }
    for ring in &mut rings {
        open::set_enabled(ring.event(), false);
        ring.drain(&mut bytes);
    }
    let sampled = event::events(&bytes, clock.holds).into_iter().filter_map(|event| match event {
        Event::Sample(sample) if !sample.in_kernel => sample.registers.map(|registers| registers.ip.0),
        _ => None,
    });
    let mut code = [0; MOST_BYTES];
    let own =
        std::fs::File::open("/proc/self/mem").and_then(|file| file.read_exact_at(&mut code, places.load));
    own.map_err(|e| format!("its own code could not be read: {}", records::plain(&e)))?;
    Ok(counted(sampled, places.load, &code))
}

/// Samples by instruction, of a loop that begins with its load and ends with a branch.
fn counted(sampled: impl Iterator<Item = u64>, load: u64, code: &[u8]) -> Skid {
    let mut decoder = Decoder::with_ip(64, code, load, DecoderOptions::NONE);
    let mut instructions: Vec<(u64, String)> = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let ends = instruction.is_invalid() || instruction.flow_control() != FlowControl::Next;
        // Where the branch leads would be an address of this process.
        let text = if ends { "the loop's branch".to_owned() } else { instruction.to_string() };
        instructions.push((instruction.ip(), text));
        if ends {
            break;
        }
    }
    let (mut by_address, mut all, mut elsewhere) = (BTreeMap::<u64, u64>::new(), 0, 0);
    for ip in sampled {
        if instructions.iter().any(|(address, _)| *address == ip) {
            *by_address.entry(ip).or_default() += 1;
            all += 1;
        } else {
            elsewhere += 1;
        }
    }
    let step = |(behind, (address, instruction)): (usize, &(u64, String))| {
        let samples = by_address.get(address).copied().unwrap_or(0);
        SkidStep {
            behind: behind as u64,
            instruction: instruction.clone(),
            samples,
            share: measured_share(samples, all),
        }
    };
    let steps = instructions.iter().enumerate().map(step).collect();
    Skid { samples: all, elsewhere, steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_by_instruction() {
        // mov rsi, [rsi]; add rax, 1; dec rcx; jnz; and what is behind it.
        let code = [0x48, 0x8b, 0x36, 0x48, 0x83, 0xc0, 0x01, 0x48, 0xff, 0xc9, 0x75, 0xf4, 0x90, 0x90];
        let sampled = [0x1000, 0x1003, 0x1003, 0x1003, 0x1004, 0x1007, 0x100c, 0x9000];
        let skid = counted(sampled.into_iter(), 0x1000, &code);
        let counts: Vec<u64> = skid.steps.iter().map(|step| step.samples).collect();
        assert_eq!((counts, skid.samples, skid.elsewhere), (vec![1, 3, 1, 0], 5, 3));
        assert_eq!(skid.steps[1].share.value(), Some(0.6));
        assert!(skid.steps[0].instruction.contains("[rsi]"), "{}", skid.steps[0].instruction);
    }

    #[test]
    fn this_machine_tells_it_or_says_why_not() {
        match measure() {
            Ok(skid) => assert!(skid.steps.len() == 7 && skid.samples > 0, "{skid:?}"),
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
