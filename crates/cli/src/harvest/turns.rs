//! `--explain-turns`: samples the primary's process while guests are aboard, and says where the
//! time of a turn goes.

use ::harvest::launch::Snapshot;
use ::harvest::report::turns::TurnSplit;
use ::harvest::session::Prepared;
use insight::Weights;
use lab::stop::Stop;
use records::profile::Profile;
use sampler::{Backend, FindsOut, Request, SampleError, Subject};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use units::{Bytes, share};

/// Samples a second: a share of a turn to a hundredth within a few seconds.
const FREQUENCY_HZ: u64 = 4000;
/// What that may take of the primary's time.
const BUDGET: f64 = 0.1;
/// Turns are told in nanoseconds if guests were not missing for more of the time.
const MOST_WITHOUT: f64 = 0.05;

static ENOUGH: AtomicBool = AtomicBool::new(false);

/// Samples from the moment when guests are aboard.
pub(super) struct Turns {
    asked: bool,
    sampling: Option<JoinHandle<Result<Profile, SampleError>>>,
    /// The first and the last look: when, and how many turns guests had had.
    looks: Option<[(Instant, u64); 2]>,
    /// Sums over looks: guests in the rings, looks, and those of them that saw no guest.
    guests: u64,
    times: u64,
    without: u64,
}

impl Turns {
    pub(super) fn new(asked: bool) -> Self {
        Self { asked, sampling: None, looks: None, guests: 0, times: 0, without: 0 }
    }

    pub(super) fn watch(&mut self, now: &Snapshot) {
        let aboard = now.guests_running();
        if !self.asked || self.sampling.is_none() && aboard == 0 {
            return;
        }
        let turns = now.scavengers.iter().map(|scavenger| scavenger.turns).sum();
        let look = (Instant::now(), turns);
        self.looks.get_or_insert([look, look])[1] = look;
        (self.guests, self.times) = (self.guests + u64::from(aboard), self.times + 1);
        self.without += u64::from(aboard == 0);
        if self.sampling.is_none() {
            let request = request(now.primary);
            self.sampling = std::thread::Builder::new()
                .spawn(move || sampler::session::run(&request, Stop::from_flag(&ENOUGH)))
                .ok();
        }
    }

    /// What was found, once the harvest is over.
    pub(super) fn told(self, prepared: &Prepared) -> String {
        ENOUGH.store(true, Ordering::Relaxed);
        let (Some(sampling), Some([(began, before), (ended, after)])) = (self.sampling, self.looks) else {
            return "turns: no guest was seen aboard".to_owned();
        };
        let profile = match sampling.join() {
            Ok(Ok(profile)) => profile,
            Ok(Err(why)) => return format!("turns: the primary could not be sampled: {why}"),
            Err(_) => return "turns: the primary could not be sampled".to_owned(),
        };
        let guests = self.guests as f64 / self.times as f64;
        let without = self.without as f64 / self.times as f64;
        let seconds = (ended - began).as_secs_f64();
        let rounds = (after - before) as f64 / guests.max(1.0);
        let split = TurnSplit::of(prepared, &profile);
        if without > MOST_WITHOUT {
            return text(&split, Err(without));
        }
        text(&split, Ok((guests, 1e9 * seconds / rounds.max(1.0))))
    }
}

/// `turns`: how many guests there were, and what one turn of all took; or the share of the time
/// without any, in which the primary had no turns.
fn text(split: &TurnSplit, turns: Result<(f64, f64), f64>) -> String {
    let all = split.samples();
    let mut text = match turns {
        Ok((guests, round_ns)) => format!(
            "turns: one of the primary and one of each of {guests:.1} guests take {round_ns:.0} ns together, by {all} \
             samples\n"
        ),
        Err(without) => format!(
            "turns: no guest was aboard for {:.0}% of the time, so only shares of all time are told, by {all} samples \
             (--max-slowdown 10000% --stay-aboard lets guests stay)\n",
            100.0 * without
        ),
    };
    let mut line = |whose: &str, what: &str, count: u64| {
        let Some(share) = share(count, all) else { return };
        let times = turns.map_or_else(
            |_| String::new(),
            |(_, round_ns)| {
                let [ns, lo, hi] = [share.value, share.lo, share.hi].map(|part| part * round_ns);
                format!("{ns:6.1} ns [{lo:.1}, {hi:.1}]  ")
            },
        );
        let _ = writeln!(text, "  {whose:8} {what:32} {times}{:4.1}%", 100.0 * share.value);
    };
    let what = ["waits for a load", "computes", "yields (code that was inserted)"];
    for (whose, counts) in [("primary", split.primary), ("guests", split.guests)] {
        for (what, count) in what.into_iter().zip(counts) {
            line(whose, what, count);
        }
    }
    line("both", "in libraries, runtime and kernel", split.elsewhere);
    text
}

fn request(process: u32) -> Request {
    let host = host::read(std::path::Path::new("/"));
    let weights = Weights::of(&host, None);
    Request {
        subject: Subject::Process(process),
        backend: Backend::Auto,
        frequency_hz: Some(FREQUENCY_HZ),
        budget: BUDGET,
        duration: None,
        window: None,
        finds_out: FindsOut {
            stacks: false,
            allocations: false,
            allocations_from: Bytes(0),
            made_code: false,
            latencies: false,
        },
        output: sampler::Output::AsItIs,
        inherited: lab::inherited::at_start(),
        caches: weights.caches,
        yield_cycles: Some(weights.yield_cycles),
        latencies: weights.latencies,
    }
}
