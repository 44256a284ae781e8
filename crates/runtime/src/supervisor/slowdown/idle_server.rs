//! Primaries that sleep often and shortly, as servers do between two requests.
//!
//! Guests stay aboard over such *naps*: to take them away and bring them back costs more than they would get done at home meanwhile.
//! Whoever naps most of the time, or slept from one look to the next, is taken for asleep.
//!
//! How long so many yields take tells nothing there, since it is the naps that make most of it. So pace is the processor's time that
//! the thread runs for so many yields: what it runs longer for the same is what it answers later. The kernel tells that
//! exactly only of a thread that does not run. So it is looked at from one nap to another, over [`WINDOW`]. Pure: what was seen in, what
//! it tells out.

/// Shares of the time asleep from which on it has no guests: while it has none, and while it has.
const IDLE: [f64; 2] = [0.75, 0.85];
/// The share asleep from which on it is one that naps, and below which it is none any more.
const NAPS: [f64; 2] = [0.1, 0.05];
/// Of about the last so many nanoseconds.
const MEMORY: f64 = 3e7;
/// Of a thread that runs, the kernel tells what it ran up to some tick, milliseconds ago: only over so much time that matters little.
const EXACT: u64 = 120_000_000;
/// The share of the time in which it would run that it waits for a processor, from which on that is crowded; and below which it is no more.
const CROWDED: [f64; 2] = [0.1, 0.05];
/// How long it waits each time then at least, in nanoseconds: who is woken waits for some microseconds anyway. How long it waited and slept of late,
/// in all; and the share of its own time asleep: nobody has a turn instead of one that never sleeps.
const TURN: f64 = 200_000.0;
const LATELY: f64 = 1e6;
const SLEEPS: f64 = 0.1;
/// Of about the last so many nanoseconds.
const CROWD: f64 = 1e8;
/// Neither asleep nor run for so long: the kernel tells of its waiting when that is over.
const STARVED: u64 = 20_000_000;
/// It is looked at for so long, until its next nap, at most so much longer.
pub(crate) const WINDOW: u64 = 5_000_000;
const LONGEST: u64 = 25_000_000;
/// How long a nap is waited for to begin with.
const PATIENCE: u64 = 10_000_000;
/// Fewer yields are no sample.
const FEW: u64 = 64;

/// What the kernel says of a thread up to now: how long it ran, how long it waited for a processor, how often it was given one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) ns: u64,
    pub(crate) waited: u64,
    pub(crate) times: u64,
}

/// What a thread is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rhythm {
    Awake,
    /// For long, or most of the time.
    Asleep {
        /// It slept from the last look to this one.
        throughout: bool,
    },
}

/// Zero is one that has not begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Naps {
    tid: i32,
    at: u64,
    ran: Ran,
    /// When what it ran was told exactly, and what that was.
    exact_at: u64,
    exact: Ran,
    /// The share of time asleep, of looks between which it ran; the latest count most.
    asleep: f64,
    pub(crate) often: bool,
    /// Of late: how long it ran, waited for a processor, and slept, and how often it was given a processor.
    lately: [f64; 4],
    /// It sleeps now and then, and others are on its processor.
    pub(crate) crowded: bool,
    /// When the kernel was asked last how often it went to sleep, and one more than what it said.
    asked_at: u64,
    sleeps: u64,
}

impl Naps {
    /// A look at the thread: whether it sleeps now, what it ran so far (none: nobody tells), whether it has guests.
    pub(crate) fn look(
        &mut self,
        now: u64,
        tid: i32,
        asleep: bool,
        ran: Option<Ran>,
        guests: bool,
    ) -> Rhythm {
        let Some(ran) = ran.filter(|ran| ran.times > 0) else {
            *self = Self { tid, ..Self::default() };
            return if asleep { Rhythm::Asleep { throughout: false } } else { Rhythm::Awake };
        };
        if self.tid != tid || ran.ns < self.ran.ns {
            *self = Self { tid, at: now, ran, exact_at: now, exact: ran, ..Self::default() };
            return if asleep { Rhythm::Asleep { throughout: false } } else { Rhythm::Awake };
        }
        self.waits(now, ran, asleep);
        if ran == self.ran {
            // Of one that goes on the kernel tells later.
            if asleep {
                (self.at, self.exact_at, self.exact) = (now, now, ran);
                return Rhythm::Asleep { throughout: true };
            }
            return Rhythm::Awake;
        }
        (self.at, self.ran) = (now, ran);
        if asleep || now.saturating_sub(self.exact_at) >= EXACT {
            self.learn(now, ran, asleep);
        }
        if asleep && self.asleep > IDLE[usize::from(guests)] {
            Rhythm::Asleep { throughout: false }
        } else {
            Rhythm::Awake
        }
    }

    /// What it ran up to now is known: exactly, or nearly so.
    fn learn(&mut self, now: u64, ran: Ran, asleep: bool) {
        let gone = now.saturating_sub(self.exact_at).max(1) as f64;
        let busy = (ran.ns - self.exact.ns) + ran.waited.saturating_sub(self.exact.waited);
        // Who has slept is given a processor again.
        let stayed = !asleep && ran.times == self.exact.times;
        let share = if stayed { 0.0 } else { (1.0 - busy as f64 / gone).clamp(0.0, 1.0) };
        self.asleep += (share - self.asleep) * (gone / MEMORY).min(1.0);
        (self.exact_at, self.exact) = (now, ran);
        self.often = self.asleep > NAPS[usize::from(self.often)];
    }

    /// Whether it is to be asked how often it went to sleep: before anything is known of it, and while it seems to nap.
    pub(crate) fn is_doubtful(&self, now: u64) -> bool {
        self.asked_at == 0 || (self.often || self.crowded) && now.saturating_sub(self.asked_at) > EXACT / 2
    }

    /// It went to sleep so often up to now, if the kernel tells. One that never did meanwhile does not nap, whatever is missing of its
    /// time: a hypervisor that takes the processor away leaves no other trace in what the thread ran.
    pub(crate) fn slept(&mut self, now: u64, times: Option<u64>) {
        let sleeps = times.map_or(0, |times| times + 1);
        if sleeps != 0 && sleeps == self.sleeps {
            (self.asleep, self.often, self.crowded, self.lately) = (0.0, false, false, [0.0; 4]);
        }
        (self.asked_at, self.sleeps) = (now, sleeps);
    }

    /// Whether others are on its processor, by how long it waits for it.
    fn waits(&mut self, now: u64, ran: Ran, asleep: bool) {
        let gone = now.saturating_sub(self.at);
        let [_, _, slept, _] = self.lately;
        if ran == self.ran && !asleep {
            self.crowded |= gone > STARVED && slept > LATELY;
            return;
        }
        let (ran_for, waited) = (ran.ns - self.ran.ns, ran.waited.saturating_sub(self.ran.waited));
        // What it ran is told late: what seems to be slept now is missing then.
        let slept = gone as f64 - (ran_for + waited) as f64;
        let more = [ran_for as f64, waited as f64, slept, ran.times.saturating_sub(self.ran.times) as f64];
        let kept = (1.0 - gone as f64 / CROWD).max(0.0);
        for (sum, more) in self.lately.iter_mut().zip(more) {
            *sum = *sum * kept + more;
        }
        let [ran, waited, slept, times] = self.lately;
        let less = if self.crowded { 0.5 } else { 1.0 };
        self.crowded = waited > CROWDED[usize::from(self.crowded)] * (ran + waited)
            && waited.min(slept) > LATELY * less
            && waited > times * TURN * less
            && slept > SLEEPS * less * (ran + slept);
    }
}

/// What it did in a window: nanoseconds that it ran, and yields that it met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Work {
    pub(crate) ran: f64,
    pub(crate) yields: f64,
}

impl Work {
    /// Nanoseconds for a yield, if they are enough to tell.
    pub(crate) fn pace(self) -> Option<f64> {
        (self.yields >= FEW as f64 && self.ran > 0.0).then(|| self.ran / self.yields)
    }
}

/// Zero is one that is closed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    opened: u64,
    began: u64,
    ran: u64,
    yields: u64,
}

impl Window {
    pub(crate) fn open(now: u64) -> Self {
        Self { opened: now, ..Self::default() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened != 0
    }

    /// It was seen, asleep or not, having run so long and met so many yields. What it did, where the window is over.
    pub(crate) fn look(&mut self, now: u64, asleep: bool, ran: u64, yields: u64) -> Option<Work> {
        if self.began == 0 {
            if asleep || now.saturating_sub(self.opened) > PATIENCE {
                (self.began, self.ran, self.yields) = (now, ran, yields);
            }
            return None;
        }
        let gone = now.saturating_sub(self.began);
        let work = Work {
            ran: ran.saturating_sub(self.ran) as f64,
            yields: yields.saturating_sub(self.yields) as f64,
        };
        let over = gone >= WINDOW && asleep && work.pace().is_some() || gone >= LONGEST;
        over.then(|| {
            *self = Self::default();
            work
        })
    }

    /// It is over before its time. What it did, if that is enough to tell.
    pub(crate) fn close(&mut self, ran: u64, yields: u64) -> Option<Work> {
        let began = core::mem::take(self);
        let work = Work {
            ran: ran.saturating_sub(began.ran) as f64,
            yields: yields.saturating_sub(began.yields) as f64,
        };
        (began.began != 0 && work.pace().is_some()).then_some(work)
    }

    /// When to look again, where looks may follow each other after `soon`.
    pub(crate) fn look_at(&self, now: u64, soon: u64) -> u64 {
        if self.began == 0 { now + soon } else { (self.began + WINDOW).max(now + soon) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose requests come at their times: each makes it run for as long as its yields take, then it sleeps until the next.
    /// What the kernel tells of it is what was true when it slept last, or at the last tick.
    struct Server {
        between: f64,
        yields: u64,
        /// Nanoseconds for a yield.
        each: f64,
        /// When the next request comes, and until when there is work.
        due: f64,
        until: f64,
        now: f64,
        told: Ran,
        ran: f64,
        met: f64,
        noise: u64,
    }

    const TICK: f64 = 4e6;

    impl Server {
        fn new(between: f64, yields: u64, each: f64) -> Self {
            let told = Ran { ns: 1, waited: 0, times: 1 };
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

        /// Looked at every millisecond or so, for a second: how often it was taken for asleep, and whether it naps.
        fn watched(&mut self, guests: bool) -> (usize, bool) {
            let (mut naps, mut away) = (Naps::default(), 0);
            for look in 1..=1000_u64 {
                let now = 1e6 + look as f64 * 1_037_000.0;
                let asleep = self.live(now);
                let seen = naps.look(now as u64, 1, asleep, Some(self.told), guests);
                away += usize::from(seen != Rhythm::Awake && look > 50);
            }
            (away, naps.often)
        }

        /// What a yield takes, by each of so many windows.
        fn paced(&mut self, windows: usize) -> Vec<f64> {
            let mut paces = Vec::new();
            while paces.len() < windows {
                let mut window = Window::open(self.now as u64);
                paces.push(loop {
                    let next = window.look_at(self.now as u64, 100_000) as f64;
                    let asleep = self.live(next);
                    if let Some(work) = window.look(next as u64, asleep, self.told.ns, self.met as u64) {
                        break work.pace().expect("yields");
                    }
                });
            }
            paces
        }
    }

    #[test]
    fn who_naps_often_and_shortly_is_taken_for_awake() {
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
    fn who_sleeps_nearly_all_the_time_is_taken_for_asleep() {
        let (away, _) = Server::new(2e4, 10, 2e4 * 0.05 / 10.0).watched(true);
        assert!(away > 850, "{away}");
    }

    #[test]
    fn who_goes_on_is_awake_however_late_the_kernel_tells() {
        assert_eq!(Server::new(2e4, 10, 2100.0).watched(false), (0, false));
    }

    #[test]
    fn who_never_sleeps_never_naps_however_irregular_looks_and_ticks_are() {
        for (preempted_every, tick) in [(u64::MAX, 4), (u64::MAX, 10), (200, 4), (200, 10), (9, 4), (9, 10)] {
            let (mut naps, mut told) = (Naps::default(), Ran { ns: 1, waited: 0, times: 1 });
            let (mut noise, mut now) = (7_u64, 1_000_000_u64);
            for look in 1..4000 {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += 100_000 + (noise >> 33) % [200_000, 6_000_000][(noise >> 60) as usize % 2];
                if look % preempted_every == 0 {
                    let waited = told.waited + 50_000;
                    told = Ran { ns: now - waited, waited, times: told.times + 1 };
                }
                let ticked = now - now % (tick * 1_000_000);
                told.ns = told.ns.max(ticked.saturating_sub(told.waited));
                naps.look(now, 1, false, Some(told), look % 5 == 0);
                assert!(
                    !naps.often && !naps.crowded,
                    "{preempted_every} {tick} look {look}: {}",
                    naps.asleep
                );
            }
        }
    }

    /// Of a thread that runs all the time, on a processor of which a hypervisor takes a quarter and others a moment now and then:
    /// whether it is taken for one that naps, where the kernel says that it went to sleep so often in each 0.1 s.
    fn robbed(sleeps: Option<u64>) -> bool {
        let (mut naps, mut often) = (Naps::default(), 0);
        for ms in 1..3000_u64 {
            let now = 1_000_000 * ms;
            let told = Ran { ns: now / 4 * 3, waited: ms * 1000, times: 1 + ms / 50 };
            naps.look(now, 1, false, Some(told), true);
            if naps.is_doubtful(now) {
                naps.slept(now, sleeps.map(|each| 7 + ms / 100 * each));
            }
            often += usize::from(naps.often && ms > 500);
        }
        often > 100
    }

    #[test]
    fn who_is_robbed_of_its_processor_does_not_nap() {
        assert!(!robbed(Some(0)));
        assert!(robbed(Some(1)) && robbed(None), "who sleeps, or may");
    }

    #[test]
    fn who_slept_from_one_look_to_the_next_is_asleep() {
        let ran = |ns, times| Some(Ran { ns, waited: 0, times });
        let mut naps = Naps::default();
        naps.look(1_000_000, 1, false, ran(900_000, 5), true);
        assert_eq!(naps.look(2_000_000, 1, true, ran(1_800_000, 6), true), Rhythm::Awake);
        let throughout = Rhythm::Asleep { throughout: true };
        assert_eq!(naps.look(3_000_000, 1, true, ran(1_800_000, 6), true), throughout);
        // However long that was, it is no nap: awake again, it has guests at once.
        assert_eq!(naps.look(900_000_000, 1, true, ran(1_800_000, 6), true), throughout);
        assert_eq!(naps.look(901_000_000, 1, true, ran(2_700_000, 7), false), Rhythm::Awake);
    }

    /// Whether a thread's processor is crowded after half a second in each millisecond of which it ran and waited, and was given it so often;
    /// what is left it sleeps.
    fn crowded(naps: &mut Naps, each: Ran) -> bool {
        for ms in 0..500 {
            let ran = Ran { ns: 1 + ms * each.ns, waited: ms * each.waited, times: 1 + ms * each.times };
            naps.look(1 + ms * 1_000_000, 1, false, Some(ran), false);
        }
        naps.crowded
    }

    #[test]
    fn who_sleeps_and_then_waits_for_others_turns_has_a_crowded_processor() {
        let each = |ns, waited, times| Ran { ns, waited, times };
        // Woken 20 000 times a second, 5 us each time; and one that never sleeps.
        assert!(!crowded(&mut Naps::default(), each(700_000, 100_000, 20)));
        assert!(!crowded(&mut Naps::default(), each(500_000, 500_000, 1)));
        // Servers that wait for each answer, with much to do and little.
        assert!(crowded(&mut Naps::default(), each(400_000, 500_000, 1)));
        let mut naps = Naps::default();
        assert!(crowded(&mut naps, each(50_000, 600_000, 1)));
        // Alone again.
        let from = Ran { ns: 1 + 499 * 50_000, waited: 499 * 600_000, times: 500 };
        for ms in 1..=500_u64 {
            let ran = Ran { ns: from.ns + ms * 800_000, ..from };
            naps.look(500_000_000 + ms * 1_000_000, 1, false, Some(ran), false);
        }
        assert!(!naps.crowded);
    }

    #[test]
    fn who_is_kept_from_running_has_a_crowded_processor_before_the_kernel_tells() {
        for sleeps in [true, false] {
            let mut naps = Naps::default();
            let ran =
                |ms| Some(Ran { ns: 1 + ms * if sleeps { 700_000 } else { 1_000_000 }, waited: 0, times: 1 });
            for ms in 0..=50 {
                naps.look(1 + ms * 1_000_000, 1, false, ran(ms), false);
            }
            for ms in 50..=70 {
                naps.look(1 + ms * 1_000_000, 1, false, ran(50), false);
                assert!(!naps.crowded);
            }
            naps.look(71_000_001, 1, false, ran(50), false);
            assert_eq!(naps.crowded, sleeps);
            // Whoever sleeps is not kept from anything.
            naps.look(1_000_000_000, 1, true, ran(50), false);
            assert!(!naps.crowded);
        }
    }

    #[test]
    fn where_nobody_tells_who_sleeps_is_asleep() {
        for ran in [None, Some(Ran::default())] {
            let mut naps = Naps::default();
            assert_eq!(naps.look(1, 1, true, ran, true), Rhythm::Asleep { throughout: false });
            assert_eq!(naps.look(2, 1, false, ran, true), Rhythm::Awake);
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
        let mut window = Window::open(1);
        assert_eq!(window.close(5, 5000), None);
        window = Window::open(1);
        assert_eq!(window.look(100, true, 1000, 10), None);
        assert_eq!(window.close(3000, 110), Some(Work { ran: 2000.0, yields: 100.0 }));
        assert!(!window.is_open());
        window = Window::open(1);
        window.look(100, true, 1000, 10);
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
