//! Primaries that sleep often and shortly, as servers do between two requests.
//!
//! Guests stay aboard over such short sleeps: to take them away and bring them back costs more than
//! they would get done at home meanwhile. A thread that sleeps most of the time, or slept from one
//! poll to the next, is taken for asleep.
//!
//! How long a number of yields takes on the clock tells nothing there, since sleep makes most of
//! it. So pace is the CPU time that the thread runs for a number of yields: what it runs longer for
//! the same work is what it answers later. The kernel tells CPU time exactly only of a thread that
//! does not run. So a sample lasts from one sleep to another, and [`SAMPLE_NS`] at least. Pure:
//! what was seen in, what follows out.

/// A thread without guests is asleep from this share of its time asleep on.
const ASLEEP_SHARE: f64 = 0.75;
/// The same for a thread with guests: higher, so that guests do not come and go.
const ASLEEP_SHARE_WITH_GUESTS: f64 = 0.85;
/// A thread sleeps often from this share of its time asleep on.
const SLEEPS_OFTEN_FROM: f64 = 0.1;
/// And no more below this share.
const SLEEPS_OFTEN_UNTIL: f64 = 0.05;
/// Below this share it makes no difference whether it sleeps.
const SLEEPS_HARDLY: f64 = 0.02;
/// It may not sleep for this long only because guests keep it busy.
const BUSY_WITH_GUESTS_NS: u64 = 1_000_000_000;
/// The share asleep is of about this much time.
const SLEEP_MEMORY_NS: f64 = 3e7;
/// The kernel tells the CPU time of a running thread up to some tick, milliseconds ago: over this
/// much time that does not matter.
const NEARLY_EXACT_NS: u64 = 120_000_000;
/// A processor is crowded where the thread waits for it from this share of its runnable time on.
const CROWDED_FROM: f64 = 0.1;
/// And no more below this share.
const CROWDED_UNTIL: f64 = 0.05;
/// Each wait for a crowded processor is this long at least; every thread that is woken waits some
/// microseconds.
const CROWDED_WAIT_NS: f64 = 200_000.0;
/// A thread on a crowded processor waited and slept this long in about the last
/// [`CROWD_MEMORY_NS`].
const CROWDED_LATELY_NS: f64 = 1e6;
/// And slept this share of its time at least: nothing takes the turn of a thread that never sleeps.
const CROWDED_SLEEP_SHARE: f64 = 0.1;
/// Recent waits and sleeps are of about this much time.
const CROWD_MEMORY_NS: f64 = 1e8;
/// A thread that neither slept nor ran for this long is starved: the kernel counts its wait only
/// once that is over.
const STARVED_NS: u64 = 20_000_000;
/// A sample lasts at least this long, and until the next sleep.
pub(crate) const SAMPLE_NS: u64 = 5_000_000;
/// A sample without a sleep at its end is over after this.
const SAMPLE_MOST_NS: u64 = 25_000_000;
/// A sample begins without a sleep after this.
const BEGIN_MOST_NS: u64 = 10_000_000;
/// Fewer yields are no sample.
const YIELDS_LEAST: u64 = 64;

/// What the kernel says of a thread up to now: how long it ran, how long it waited for a processor,
/// how often it got one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) ns: u64,
    pub(crate) waited: u64,
    pub(crate) times: u64,
}

/// Whether a thread counts as asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepState {
    Awake,
    /// For long, or most of the time.
    Asleep {
        /// It slept from the last poll to this one.
        throughout: bool,
    },
}

/// What a thread did recently, older times counting less: nanoseconds that it ran, waited for a
/// processor, and slept, and how often it got a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    ran: f64,
    waited: f64,
    slept: f64,
    times: f64,
}

impl Lately {
    /// Adds what it did since; of the sums up to then the part `kept` counts.
    fn add(&mut self, kept: f64, ran: u64, waited: u64, slept: f64, times: u64) -> Self {
        self.ran = self.ran * kept + ran as f64;
        self.waited = self.waited * kept + waited as f64;
        self.slept = self.slept * kept + slept;
        self.times = self.times * kept + times as f64;
        *self
    }
}

/// What is known of a thread's sleep. Zero is a thread of which nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SleepPattern {
    tid: i32,
    at: u64,
    ran: CpuTime,
    /// When its CPU time was known exactly, and what it was.
    exact_at: u64,
    exact: CpuTime,
    /// The share of time asleep, of polls between which it ran; the latest count most.
    asleep: f64,
    pub(crate) often: bool,
    /// When it did last.
    often_at: u64,
    /// When its share of sleep was learned last.
    learned_at: u64,
    lately: Lately,
    /// It sleeps now and then, and other threads are on its processor.
    pub(crate) crowded: bool,
    /// When the kernel was asked last how often it went to sleep, and its answer plus one.
    asked_at: u64,
    sleeps: u64,
}

impl SleepPattern {
    /// A poll: whether the thread sleeps now, its CPU time so far (`None`: the kernel does not
    /// tell), whether it has guests.
    pub(crate) fn poll(
        &mut self,
        now: u64,
        tid: i32,
        asleep: bool,
        ran: Option<CpuTime>,
        guests: bool,
    ) -> SleepState {
        let Some(ran) = ran.filter(|ran| ran.times > 0) else {
            *self = Self { tid, ..Self::default() };
            return if asleep { SleepState::Asleep { throughout: false } } else { SleepState::Awake };
        };
        if self.tid != tid || ran.ns < self.ran.ns {
            *self = Self { tid, at: now, ran, exact_at: now, exact: ran, ..Self::default() };
            return if asleep { SleepState::Asleep { throughout: false } } else { SleepState::Awake };
        }
        self.judge_crowd(now, ran, asleep);
        if ran == self.ran {
            // The CPU time of a thread that runs is told later.
            if asleep {
                (self.at, self.exact_at, self.exact) = (now, now, ran);
                return SleepState::Asleep { throughout: true };
            }
            return SleepState::Awake;
        }
        (self.at, self.ran) = (now, ran);
        if asleep || now.saturating_sub(self.exact_at) >= NEARLY_EXACT_NS {
            self.learn(now, ran, asleep);
        }
        if asleep && self.asleep > if guests { ASLEEP_SHARE_WITH_GUESTS } else { ASLEEP_SHARE } {
            SleepState::Asleep { throughout: false }
        } else {
            SleepState::Awake
        }
    }

    /// The share of its time for which it sleeps.
    pub(crate) fn sleep_share(&self) -> f64 {
        self.asleep
    }

    /// Whether it sleeps often, or would without guests.
    pub(crate) fn would_sleep(&self, now: u64) -> bool {
        self.often_at != 0 && now.saturating_sub(self.often_at) < BUSY_WITH_GUESTS_NS
    }

    /// Its CPU time up to now is known, exactly or nearly so.
    fn learn(&mut self, now: u64, ran: CpuTime, asleep: bool) {
        let gone = now.saturating_sub(self.exact_at).max(1) as f64;
        let busy = (ran.ns - self.exact.ns) + ran.waited.saturating_sub(self.exact.waited);
        // A thread that slept gets a processor again.
        let stayed = !asleep && ran.times == self.exact.times;
        let share = if stayed { 0.0 } else { (1.0 - busy as f64 / gone).clamp(0.0, 1.0) };
        self.asleep += (share - self.asleep) * (gone / SLEEP_MEMORY_NS).min(1.0);
        (self.exact_at, self.exact, self.learned_at) = (now, ran, now);
        self.often = self.asleep > if self.often { SLEEPS_OFTEN_UNTIL } else { SLEEPS_OFTEN_FROM };
        if self.often {
            self.often_at = now;
        }
    }

    /// Whether the kernel is asked how often it went to sleep: before anything is known of it, when
    /// it seems to have slept, and while it seems to sleep often.
    pub(crate) fn is_doubtful(&self, now: u64) -> bool {
        self.asked_at == 0
            || self.asleep > SLEEPS_HARDLY && self.learned_at == now
            || (self.often || self.crowded) && now.saturating_sub(self.asked_at) > NEARLY_EXACT_NS / 2
    }

    /// It went to sleep `times` times up to now, if the kernel tells. A thread that never did
    /// meanwhile does not sleep often, whatever is missing of its time: a hypervisor that takes the
    /// processor away leaves no other trace in its CPU time.
    ///
    /// What it slept for others is not in `times`; while it does, one of its own may not be either.
    pub(crate) fn slept(&mut self, now: u64, times: Option<u64>) {
        let sleeps = times.map_or(0, |times| times + 1);
        let one_less = sleeps != 0 && sleeps + 1 == self.sleeps;
        if sleeps != 0 && (sleeps == self.sleeps || one_less) {
            (self.asleep, self.often, self.often_at) = (0.0, false, 0);
            (self.crowded, self.lately) = (false, Lately::default());
        }
        (self.asked_at, self.sleeps) = (now, sleeps + u64::from(one_less));
    }

    /// Whether other threads are on its processor, by how long it waits for it.
    fn judge_crowd(&mut self, now: u64, ran: CpuTime, asleep: bool) {
        let gone = now.saturating_sub(self.at);
        if ran == self.ran && !asleep {
            self.crowded |= gone > STARVED_NS && self.lately.slept > CROWDED_LATELY_NS;
            return;
        }
        let (ran_for, waited) = (ran.ns - self.ran.ns, ran.waited.saturating_sub(self.ran.waited));
        // CPU time is told late: what seems to be sleep now is missing then.
        let slept = gone as f64 - (ran_for + waited) as f64;
        let times = ran.times.saturating_sub(self.ran.times);
        let kept = (1.0 - gone as f64 / CROWD_MEMORY_NS).max(0.0);
        let Lately { ran, waited, slept, times } = self.lately.add(kept, ran_for, waited, slept, times);
        let less = if self.crowded { 0.5 } else { 1.0 };
        let share = if self.crowded { CROWDED_UNTIL } else { CROWDED_FROM };
        self.crowded = waited > share * (ran + waited)
            && waited.min(slept) > CROWDED_LATELY_NS * less
            && waited > times * CROWDED_WAIT_NS * less
            && slept > CROWDED_SLEEP_SHARE * less * (ran + slept);
    }
}

/// What a thread did in a sample: nanoseconds of CPU time, and yields at which it met a context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowWork {
    pub(crate) ran: f64,
    pub(crate) yields: f64,
}

impl WindowWork {
    /// CPU nanoseconds for a yield, if there were enough yields to tell.
    pub(crate) fn pace(self) -> Option<f64> {
        (self.yields >= YIELDS_LEAST as f64 && self.ran > 0.0).then(|| self.ran / self.yields)
    }
}

/// A sample that may be under way. Zero is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampleWindow {
    opened: u64,
    began: u64,
    ran: u64,
    yields: u64,
}

impl SampleWindow {
    pub(crate) fn open(now: u64) -> Self {
        Self { opened: now, ..Self::default() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened != 0
    }

    /// The thread was seen, asleep or not, with this CPU time and count of yields. Returns what it
    /// did, where the sample is over.
    pub(crate) fn poll(&mut self, now: u64, asleep: bool, ran: u64, yields: u64) -> Option<WindowWork> {
        if self.began == 0 {
            if asleep || now.saturating_sub(self.opened) > BEGIN_MOST_NS {
                (self.began, self.ran, self.yields) = (now, ran, yields);
            }
            return None;
        }
        let gone = now.saturating_sub(self.began);
        let work = WindowWork {
            ran: ran.saturating_sub(self.ran) as f64,
            yields: yields.saturating_sub(self.yields) as f64,
        };
        let over = gone >= SAMPLE_NS && asleep && work.pace().is_some() || gone >= SAMPLE_MOST_NS;
        over.then(|| {
            *self = Self::default();
            work
        })
    }

    /// Ends the sample early. Returns what the thread did, if that is enough to tell.
    pub(crate) fn close(&mut self, ran: u64, yields: u64) -> Option<WindowWork> {
        let began = core::mem::take(self);
        let work = WindowWork {
            ran: ran.saturating_sub(began.ran) as f64,
            yields: yields.saturating_sub(began.yields) as f64,
        };
        (began.began != 0 && work.pace().is_some()).then_some(work)
    }

    /// When to poll next, where polls may follow each other after `soon`.
    pub(crate) fn poll_at(&self, now: u64, soon: u64) -> u64 {
        if self.began == 0 { now + soon } else { (self.began + SAMPLE_NS).max(now + soon) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose requests come at their times: each makes it run for as long as its yields
    /// take, then it sleeps until the next. What the kernel tells of it is what was true when it
    /// slept last, or at the last tick.
    struct Server {
        between: f64,
        yields: u64,
        /// Nanoseconds for a yield.
        each: f64,
        /// When the next request comes, and until when there is work.
        due: f64,
        until: f64,
        now: f64,
        told: CpuTime,
        ran: f64,
        met: f64,
        noise: u64,
    }

    const TICK: f64 = 4e6;

    impl Server {
        fn new(between: f64, yields: u64, each: f64) -> Self {
            let told = CpuTime { ns: 1, waited: 0, times: 1 };
            let (due, until) = (1e6, 1e6);
            Self { between, yields, each, due, until, now: 1e6, told, ran: 1.0, met: 0.0, noise: 7 }
        }

        /// Up to then; whether it sleeps.
        fn live(&mut self, to: f64) -> bool {
            while self.now < to {
                if self.until > self.now {
                    let on = (self.until - self.now).min(to - self.now).min(TICK - self.now % TICK);
                    (self.now, self.ran) = (self.now + on, self.ran + on);
                    self.met += on / self.each;
                    if self.now % TICK < 1.0 || self.until <= self.now {
                        self.told.ns = self.ran as u64;
                    }
                } else {
                    self.now = self.due.max(self.now).min(to.max(self.now));
                }
                while self.due <= self.now {
                    if self.until <= self.now {
                        self.told.times += 1;
                        self.until = self.now;
                    }
                    self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    self.due += self.between * 2.0 * ((self.noise >> 40) as f64 / f64::from(1 << 24));
                    self.until += self.each * self.yields as f64;
                }
            }
            self.until <= self.now
        }

        /// Looked at every millisecond or so, for a second: how often it was taken for asleep, and
        /// whether it naps.
        fn watched(&mut self, guests: bool) -> (usize, bool) {
            let (mut naps, mut away) = (SleepPattern::default(), 0);
            for look in 1..=1000_u64 {
                let now = 1e6 + look as f64 * 1_037_000.0;
                let asleep = self.live(now);
                let seen = naps.poll(now as u64, 1, asleep, Some(self.told), guests);
                away += usize::from(seen != SleepState::Awake && look > 50);
            }
            (away, naps.often)
        }

        /// What a yield takes, by each of some windows.
        fn paced(&mut self, windows: usize) -> Vec<f64> {
            let mut paces = Vec::new();
            while paces.len() < windows {
                let mut window = SampleWindow::open(self.now as u64);
                paces.push(loop {
                    let next = window.poll_at(self.now as u64, 100_000) as f64;
                    let asleep = self.live(next);
                    if let Some(work) = window.poll(next as u64, asleep, self.told.ns, self.met as u64) {
                        break work.pace().expect("yields");
                    }
                });
            }
            paces
        }
    }

    #[test]
    fn frequent_short_sleeps_count_as_awake() {
        for share in [0.4, 0.5, 0.7, 0.85] {
            // 50 000 naps a second, and a thousand.
            for between in [2e4, 1e6] {
                let mut server = Server::new(between, 10, between * share / 10.0);
                let (away, often) = server.watched(true);
                assert!(away < 100 && often, "{share} {between}: {away}");
            }
        }
    }

    #[test]
    fn a_thread_that_sleeps_nearly_all_the_time_counts_as_asleep() {
        let (away, _) = Server::new(2e4, 10, 2e4 * 0.05 / 10.0).watched(true);
        assert!(away > 850, "{away}");
    }

    #[test]
    fn a_running_thread_is_awake_however_late_the_kernel_tells() {
        assert_eq!(Server::new(2e4, 10, 2100.0).watched(false), (0, false));
    }

    #[test]
    fn a_thread_that_never_sleeps_counts_so_at_irregular_polls_and_ticks() {
        for (preempted_every, tick) in [(u64::MAX, 4), (u64::MAX, 10), (200, 4), (200, 10), (9, 4), (9, 10)] {
            let (mut naps, mut told) = (SleepPattern::default(), CpuTime { ns: 1, waited: 0, times: 1 });
            let (mut noise, mut now) = (7_u64, 1_000_000_u64);
            for look in 1..4000 {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += 100_000 + (noise >> 33) % [200_000, 6_000_000][(noise >> 60) as usize % 2];
                if look % preempted_every == 0 {
                    let waited = told.waited + 50_000;
                    told = CpuTime { ns: now - waited, waited, times: told.times + 1 };
                }
                let ticked = now - now % (tick * 1_000_000);
                told.ns = told.ns.max(ticked.saturating_sub(told.waited));
                naps.poll(now, 1, false, Some(told), look % 5 == 0);
                assert!(
                    !naps.often && !naps.crowded,
                    "{preempted_every} {tick} look {look}: {}",
                    naps.asleep
                );
            }
        }
    }

    /// Of a thread that runs all the time, on a processor of which a hypervisor takes a quarter and
    /// others a moment now and then: whether it is taken for one that naps, and for how much of its
    /// time, where the kernel says that it went to sleep so often up to each millisecond.
    fn robbed(sleeps: impl Fn(u64) -> Option<u64>) -> (bool, f64) {
        let (mut naps, mut often, mut most) = (SleepPattern::default(), 0, 0.0_f64);
        for ms in 1..3000_u64 {
            let now = 1_000_000 * ms;
            let told = CpuTime { ns: now / 4 * 3, waited: ms * 1000, times: 1 + ms / 50 };
            naps.poll(now, 1, false, Some(told), true);
            if naps.is_doubtful(now) {
                naps.slept(now, sleeps(ms));
            }
            if ms > 500 {
                often += usize::from(naps.often);
                most = most.max(naps.sleep_share());
            }
        }
        (often > 100, most)
    }

    #[test]
    fn steal_does_not_count_as_short_sleep() {
        assert_eq!(robbed(|_| Some(7)), (false, 0.0));
        assert!(robbed(|ms| Some(7 + ms / 100)).0 && robbed(|_| None).0, "it sleeps, or may");
    }

    #[test]
    fn one_that_is_not_told_for_a_moment_is_no_nap() {
        assert_eq!(robbed(|ms| Some(7 - ms / 10 % 2)), (false, 0.0));
        // More than one: they are counted from there.
        assert!(robbed(|ms| Some(9000 - ms / 5)).0);
        assert_eq!(robbed(|ms| Some(if ms < 250 { 9 } else { 7 })), (false, 0.0));
    }

    #[test]
    fn a_thread_that_slept_from_poll_to_poll_is_asleep() {
        let ran = |ns, times| Some(CpuTime { ns, waited: 0, times });
        let mut naps = SleepPattern::default();
        naps.poll(1_000_000, 1, false, ran(900_000, 5), true);
        assert_eq!(naps.poll(2_000_000, 1, true, ran(1_800_000, 6), true), SleepState::Awake);
        let throughout = SleepState::Asleep { throughout: true };
        assert_eq!(naps.poll(3_000_000, 1, true, ran(1_800_000, 6), true), throughout);
        // However long that was, it is no nap: awake again, it has guests at once.
        assert_eq!(naps.poll(900_000_000, 1, true, ran(1_800_000, 6), true), throughout);
        assert_eq!(naps.poll(901_000_000, 1, true, ran(2_700_000, 7), false), SleepState::Awake);
    }

    /// Whether a thread's processor is crowded after half a second in each millisecond of which it
    /// ran and waited, and was given it so often; what is left it sleeps.
    fn crowded(naps: &mut SleepPattern, each: CpuTime) -> bool {
        for ms in 0..500 {
            let ran = CpuTime { ns: 1 + ms * each.ns, waited: ms * each.waited, times: 1 + ms * each.times };
            naps.poll(1 + ms * 1_000_000, 1, false, Some(ran), false);
        }
        naps.crowded
    }

    #[test]
    fn a_thread_that_waits_for_its_cpu_after_sleep_has_a_crowded_one() {
        let each = |ns, waited, times| CpuTime { ns, waited, times };
        // Woken 20 000 times a second, 5 us each time; and one that never sleeps.
        assert!(!crowded(&mut SleepPattern::default(), each(700_000, 100_000, 20)));
        assert!(!crowded(&mut SleepPattern::default(), each(500_000, 500_000, 1)));
        // Servers that wait for each answer, with much to do and little.
        assert!(crowded(&mut SleepPattern::default(), each(400_000, 500_000, 1)));
        let mut naps = SleepPattern::default();
        assert!(crowded(&mut naps, each(50_000, 600_000, 1)));
        // Alone again.
        let from = CpuTime { ns: 1 + 499 * 50_000, waited: 499 * 600_000, times: 500 };
        for ms in 1..=500_u64 {
            let ran = CpuTime { ns: from.ns + ms * 800_000, ..from };
            naps.poll(500_000_000 + ms * 1_000_000, 1, false, Some(ran), false);
        }
        assert!(!naps.crowded);
    }

    #[test]
    fn a_cpu_is_crowded_before_the_kernel_tells_of_the_waiting() {
        for sleeps in [true, false] {
            let mut naps = SleepPattern::default();
            let ran = |ms| {
                Some(CpuTime { ns: 1 + ms * if sleeps { 700_000 } else { 1_000_000 }, waited: 0, times: 1 })
            };
            for ms in 0..=50 {
                naps.poll(1 + ms * 1_000_000, 1, false, ran(ms), false);
            }
            for ms in 50..=70 {
                naps.poll(1 + ms * 1_000_000, 1, false, ran(50), false);
                assert!(!naps.crowded);
            }
            naps.poll(71_000_001, 1, false, ran(50), false);
            assert_eq!(naps.crowded, sleeps);
            // A thread that sleeps is not kept from anything.
            naps.poll(1_000_000_000, 1, true, ran(50), false);
            assert!(!naps.crowded);
        }
    }

    #[test]
    fn without_cpu_times_a_sleeping_thread_is_asleep() {
        for ran in [None, Some(CpuTime::default())] {
            let mut naps = SleepPattern::default();
            assert_eq!(naps.poll(1, 1, true, ran, true), SleepState::Asleep { throughout: false });
            assert_eq!(naps.poll(2, 1, false, ran, true), SleepState::Awake);
        }
    }

    #[test]
    fn what_guests_cost_a_server_is_found_though_it_answers_as_many() {
        for (share, between) in [(0.3, 2e4), (0.5, 2e4), (0.7, 2e4), (0.5, 2e6)] {
            for slower in [1.0, 1.05, 1.25] {
                let each = between * share / 100.0;
                // To the clock it meets as many yields as alone.
                for pace in Server::new(between, 100, each * slower).paced(8) {
                    assert!(
                        (pace / each - slower).abs() < 0.01,
                        "{share} {between} {slower}: {pace} of {each}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_window_that_is_cut_short_tells_what_was_seen() {
        let mut window = SampleWindow::open(1);
        assert_eq!(window.close(5, 5000), None);
        window = SampleWindow::open(1);
        assert_eq!(window.poll(100, true, 1000, 10), None);
        assert_eq!(window.close(3000, 110), Some(WindowWork { ran: 2000.0, yields: 100.0 }));
        assert!(!window.is_open());
        window = SampleWindow::open(1);
        window.poll(100, true, 1000, 10);
        assert_eq!(window.close(3000, 20), None, "too few");
    }

    #[test]
    fn a_window_that_finds_no_nap_comes_to_an_end() {
        let mut server = Server::new(2e4, 10, 2100.0);
        for pace in server.paced(4) {
            assert!((pace / 2100.0 - 1.0).abs() < 0.25, "{pace}");
        }
    }
}
