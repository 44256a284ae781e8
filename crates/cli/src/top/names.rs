//! What stands at the places that were sampled: found out in a thread of its own, as seldom as the
//! budget wants it, since reading files and decoding code takes more than sampling.

use insight::PlaceTold;
use insight::samples::Place;
use records::profile::Profile;
use sampler::system::{Machine, Sampled, SystemRequest};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The names so far.
#[derive(Clone)]
pub(super) struct Named {
    pub places: HashMap<Place, PlaceTold>,
    pub profile: Profile,
}

/// Has names found out.
pub(super) struct Names {
    request: SystemRequest,
    latest: Option<Arc<Named>>,
    under_way: Option<(Instant, Receiver<Named>)>,
    next: Instant,
    rounds: u32,
}

/// The first names are wanted at once; later ones when it is worth it.
const FIRST: Duration = Duration::from_millis(1500);
const SHORTEST: Duration = Duration::from_secs(3);
/// Rounds at the beginning that come whatever they cost.
const FIRST_ROUNDS: u32 = 2;
/// Where this part of the samples has no name, it is time for the next round.
const MOST_UNKNOWN: f64 = 0.1;

impl Names {
    pub(super) fn new(request: &SystemRequest) -> Self {
        let next = Instant::now() + FIRST;
        Self { request: request.clone(), latest: None, under_way: None, next, rounds: 0 }
    }

    /// What is known by now.
    pub(super) fn latest(&self) -> Option<&Arc<Named>> {
        self.latest.as_ref()
    }

    /// Takes what is finished, and begins anew where it is time; `unknown` is the part of the
    /// samples without a name.
    pub(super) fn look(&mut self, machine: &mut Machine, unknown: f64) {
        if let Some((began, finished)) = &self.under_way
            && let Ok(named) = finished.try_recv()
        {
            // Its cost in all shall stay a small part of all CPUs, so the next one waits.
            let pause = began.elapsed().div_f64(self.request.budget.max(1e-3) * machine.cpus() as f64);
            let pause = if self.rounds < FIRST_ROUNDS { SHORTEST } else { pause.max(SHORTEST) };
            (self.latest, self.next) = (Some(Arc::new(named)), Instant::now() + pause);
            self.under_way = None;
        }
        let is_time = Instant::now() >= self.next
            && (unknown > MOST_UNKNOWN || self.rounds < FIRST_ROUNDS + 1)
            || Instant::now() >= self.next + 4 * SHORTEST;
        if self.under_way.is_none() && is_time {
            self.begin(machine.copy());
        }
    }

    /// Finds out all names now.
    pub(super) fn now(&mut self, machine: &mut Machine) {
        let sampled = machine.copy();
        let named = named(sampled, &self.request);
        self.latest = Some(Arc::new(named));
    }

    fn begin(&mut self, sampled: Sampled) {
        let (request, (tell, finished)) = (self.request.clone(), channel());
        let work = move || {
            // Nobody may want it any more.
            let _ = tell.send(named(sampled, &request));
        };
        let thread = std::thread::Builder::new().name("names".to_owned()).spawn(work);
        self.rounds += 1;
        // Without a thread it is tried again later.
        match thread {
            Ok(_) => self.under_way = Some((Instant::now(), finished)),
            Err(_) => self.next = Instant::now() + SHORTEST,
        }
    }
}

fn named(sampled: Sampled, request: &SystemRequest) -> Named {
    let (profile, places) = crate::threads::alone(|| sampled.profile_and_places(request));
    Named { places, profile }
}
