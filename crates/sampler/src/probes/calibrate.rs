//! What a probe costs on this machine, and whether it sees how long a cache takes: asked of a known
//! load in this process, before each run.
//!
//! Some cores begin to execute a load before they stop at the breakpoint in front of it. Then the
//! line has come from L2 or L3 by the time that the probe reads it, and it looks nearer than it
//! was.
//!
//! From when on a line came from memory differs from machine to machine, too, and by what other
//! machines do to a shared one: the same chain is gone through with its lines taken out of all
//! caches.

use crate::allocations::region::{Region, What};
use crate::chain::{Chain, thread_cpu_time};
use crate::perf::open::open_breakpoint;
use heap::layout::NO_REGISTER;
use heap::probe::{General, probe};
use insight::probes::usual_ticks;
use lab::rng::Rng;
use lab::stats::median_interval;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};
use units::Estimate;

/// What calibration found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProbeCalibration {
    /// CPU time that a probe takes.
    pub cost_s: Estimate,
    /// What a load of the chain takes, which the cache behind L2 serves.
    pub cache_ns: Estimate,
    /// The same of lines that memory serves.
    pub memory_ns: Estimate,
    /// By how much longer than from L1, as probes say.
    pub probed_ns: Estimate,
    /// The same, probe by probe.
    pub known_ns: Vec<f64>,
}

const BURST: u32 = 8;
const BURSTS: usize = 24;
/// Steps of the chain while it is armed: enough to come by.
const STEPS: u64 = 64;
/// Steps from memory that are timed at a time: some hundred times what looking at the clock takes.
const FAR_STEPS: u64 = 1024;
const LONGEST: Duration = Duration::from_millis(200);

/// Where the handler finds what it needs.
static REGION: AtomicPtr<Region> = AtomicPtr::new(null_mut());

/// Probes the load of a chain through twice as much as L2 holds; why not, if it cannot.
pub(crate) fn calibrate(region: &mut Region, l2_bytes: u64) -> Result<ProbeCalibration, String> {
    let chain = Chain::of((2 * l2_bytes).next_power_of_two().clamp(1 << 20, 64 << 20) as usize);
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let (mut at, mut places) = chain.go(chain.start(), chain.lines() as u64);
    let wanted = region.probe(0);
    wanted.process.store(std::process::id(), Relaxed);
    wanted.thread.store(thread, Relaxed);
    wanted.registers.store(u32::from_le_bytes([places.register, NO_REGISTER, 1, 0]), Relaxed);
    wanted.displacement.store(0, Relaxed);
    wanted.is_timed.store(1, Relaxed);
    let (mut plain_s, mut far_s, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    let began = Instant::now();
    let handler = Handler::set(region);
    let mut failed = None;
    while costs.len() < BURSTS && began.elapsed() < LONGEST {
        let before = thread_cpu_time();
        (at, places) = chain.go(at, chain.lines() as u64 / 2);
        let plain = thread_cpu_time().saturating_sub(before).as_secs_f64() / (chain.lines() as f64 / 2.0);
        region.probe(0).ip.store(places.load, Release);
        let armed = match open_breakpoint(thread, places.load, BURST) {
            Ok(armed) => armed,
            Err(e) => {
                failed = Some(format!("the kernel sets no breakpoints: {}", records::plain(&e)));
                break;
            }
        };
        let before = thread_cpu_time();
        (at, _) = chain.go(at, STEPS);
        let armed_s = thread_cpu_time().saturating_sub(before).as_secs_f64();
        drop(armed);
        region.probe(0).ip.store(0, Release);
        plain_s.push(plain);
        costs.push((armed_s - plain * STEPS as f64).max(0.0) / f64::from(BURST));
        chain.evict(at, FAR_STEPS);
        let before = thread_cpu_time();
        (at, _) = chain.go(at, FAR_STEPS);
        far_s.push(thread_cpu_time().saturating_sub(before).as_secs_f64() / FAR_STEPS as f64);
    }
    drop(handler);
    let (mut told, mut copied) = (Vec::new(), Vec::new());
    region.drain(&mut told, &mut copied);
    if let Some(why) = failed {
        return Err(why);
    }
    let ticks = told.iter().filter_map(|told| match told.what {
        What::Probed { ticks, .. } if ticks.0 > 0 => Some(ticks),
        _ => None,
    });
    let (first, again): (Vec<u32>, Vec<u32>) = ticks.unzip();
    if first.len() < BURSTS {
        return Err("breakpoints were set, and no thread was stopped at them".to_owned());
    }
    let mut rng = Rng::new(1);
    let again = usual_ticks(again);
    let ticks_a_ns = region.ticks_a_ns();
    // A burst's mean, since the counter may move in steps.
    let longer: Vec<f64> = first
        .chunks(BURST as usize)
        .map(|burst| (usual_ticks(burst.to_vec()) - again) / ticks_a_ns)
        .collect();
    let known_ns = first.iter().map(|&ticks| (f64::from(ticks) - again) / ticks_a_ns).collect();
    Ok(ProbeCalibration {
        cost_s: median_interval(&costs, &mut rng),
        cache_ns: median_interval(&plain_s, &mut rng).scaled(1e9),
        memory_ns: median_interval(&far_s, &mut rng).scaled(1e9),
        probed_ns: median_interval(&longer, &mut rng),
        known_ns,
    })
}

/// Our handler for the signal of breakpoints, while it is there.
struct Handler {
    before: libc::sigaction,
}

impl Handler {
    fn set(region: &Region) -> Self {
        REGION.store(std::ptr::from_ref(region).cast_mut(), Release);
        // SAFETY: a whole `sigaction`, whose handler is a function of this shape; it is taken back
        // before the region goes.
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = stopped as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGTRAP, &raw const ours, &raw mut before);
            Self { before }
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: what the kernel gave.
        unsafe { libc::sigaction(libc::SIGTRAP, &raw const self.before, null_mut()) };
        REGION.store(null_mut(), Release);
    }
}

extern "C" fn stopped(_signal: libc::c_int, _about: *mut libc::siginfo_t, context: *mut libc::c_void) {
    /// Where the registers are, by the numbers that instructions have for them.
    const PLACES: [libc::c_int; 16] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    let region = REGION.load(Relaxed);
    // SAFETY: the kernel hands over a context; the region is there while the handler is. The thread
    // stands before the load of the chain, which may read what it is about to read.
    unsafe {
        let saved = &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let general: General = PLACES.map(|place| saved[place as usize] as u64);
        if let Some(region) = region.as_ref() {
            region.probed(std::process::id(), saved[libc::REG_RIP as usize] as u64, &general, probe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_load_is_probed_where_breakpoints_are_to_be_had() {
        let mut region = Region::new(1, None).unwrap();
        match calibrate(&mut region, 1 << 20) {
            Ok(found) => {
                assert!(found.cost_s.value > 0.0 && found.cache_ns.value > 0.5, "{found:?}");
                assert!(found.probed_ns.value < 100.0 * found.cache_ns.value, "{found:?}");
                assert!(found.memory_ns.value > found.cache_ns.value, "{found:?}");
            }
            Err(why) => eprintln!("skipped: {why}"),
        }
    }
}
