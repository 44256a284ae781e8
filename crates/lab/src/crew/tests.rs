use super::*;
use crate::pin;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what it was asked, and burns some time.
struct Burner {
    ran: Arc<AtomicU64>,
    released: Arc<AtomicU64>,
}

impl Rig for Burner {
    fn warm(&mut self) {}

    fn run(&mut self, loops: u64) -> Vec<f64> {
        let from = tsc::now();
        for i in 0..loops * 16 {
            std::hint::black_box(i);
        }
        self.ran.fetch_add(loops, Ordering::Relaxed);
        vec![(tsc::now() - from) as f64 / loops as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        16.0
    }

    fn release(&mut self) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }
}

/// On the CPUs there are, at most four.
fn with_crew(test: impl FnOnce(&RefCell<Crew>, &[usize])) {
    let cpus: Vec<usize> = pin::allowed().unwrap().into_iter().take(4).collect();
    let home = Pinned::to(cpus[0]).unwrap();
    let rate = tsc::calibrate(std::time::Duration::from_millis(5)).value;
    test(&RefCell::new(Crew::new(home.cpu(), &cpus, rate).unwrap()), &cpus);
}

#[test]
fn all_members_run_and_each_has_its_channels() {
    with_crew(|crew, cpus| {
        let counters: Vec<[Arc<AtomicU64>; 2]> = cpus.iter().map(|_| Default::default()).collect();
        let members = cpus
            .iter()
            .zip(&counters)
            .map(|(&cpu, [ran, released])| {
                (cpu, Box::new(Burner { ran: ran.clone(), released: released.clone() }) as CrewMember)
            })
            .collect();
        let mut rig = CrewRig::new(crew, members);
        for block in 1..=3 {
            let values = rig.run(2000);
            assert_eq!(values.len(), 2 * cpus.len());
            let elsewhere = rig.elsewhere().unwrap();
            // A machine busy with other tests may void a block, but then it must say so.
            assert!(
                values.iter().all(|v| *v > 0.0) || elsewhere.interference.switches > 0,
                "{values:?} {elsewhere:?}"
            );
            assert!(counters.iter().all(|[_, released]| released.load(Ordering::Relaxed) == block));
        }
        assert!(counters.iter().all(|[ran, _]| ran.load(Ordering::Relaxed) > 0));
    });
}

#[test]
fn the_caller_may_stay_out() {
    with_crew(|crew, cpus| {
        let Some(&other) = cpus.get(1) else { return };
        let ran = Arc::new(AtomicU64::new(0));
        let burner = Burner { ran: ran.clone(), released: Arc::default() };
        let mut rig = CrewRig::new(crew, vec![(other, Box::new(burner))]);
        assert_eq!(rig.run(1000).len(), 2);
        assert!(ran.load(Ordering::Relaxed) > 0);
    });
}

#[test]
#[should_panic(expected = "two members on CPU")]
fn two_on_one_cpu_are_refused() {
    with_crew(|crew, cpus| {
        let burner = || Box::new(Burner { ran: Arc::default(), released: Arc::default() });
        CrewRig::new(crew, vec![(cpus[0], burner()), (cpus[0], burner())]);
    });
}

#[test]
fn a_cpu_that_is_not_there_is_an_error() {
    let home = Pinned::to(pin::allowed().unwrap()[0]).unwrap();
    assert!(matches!(Crew::new(home.cpu(), &[home.cpu(), 100_000], 2e9), Err(CrewError::Sys(_))));
}
