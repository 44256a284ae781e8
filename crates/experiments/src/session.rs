//! One run of `measure`: sets up the station, runs the experiments asked for, and grades the run.

use crate::clock;
use crate::context::{Context, Refused};
use crate::entry::Entry;
use crate::stride_choice::StrideChoice;
use crate::time_budget::TimeBudget;
use lab::arena;
use lab::campaign::Station;
use lab::grade::{self, Noise, RunTally};
use lab::rng::Rng;
use lab::stop::Stop;
use lab::tsc;
use records::host::Host;
use records::machine::{Blocks, Effort, Experiments, Grade, Machine, Memory, Run, Verdict};
use std::time::{Duration, Instant};
use units::{Bytes, Progress, Quantity, Unit};

/// What the command line asks for.
#[derive(Debug)]
pub struct Request {
    pub experiments: Vec<&'static Entry>,
    pub effort: Effort,
    /// Seconds for each experiment, in place of its own.
    pub seconds: Option<f64>,
    pub cpu: usize,
    pub seed: u64,
    pub max_memory: Bytes,
    /// What the stride experiment measures, where not the usual strides and sizes.
    pub strides: StrideChoice,
    pub stop: Stop,
}

/// Runs the experiments. An interrupted run returns what it has measured.
pub fn measure(request: &Request, host: &Host, progress: &mut dyn Progress) -> Result<Machine, Refused> {
    tsc::usable().map_err(|why| Refused::not_possible(why, "measure on an x86-64 CPU from 2008 or later"))?;
    let began = Instant::now();
    let first = tsc::Anchor::take();
    let rate = tsc::calibrate(Duration::from_millis(30));
    let station = Station::new(request.cpu, rate.value)?;
    let rng = Rng::new(request.seed);
    let mut machine = Machine {
        run: Run {
            host_name: None,
            cpu: request.cpu as u32,
            seed: request.seed,
            effort: request.effort,
            seconds: 0.0,
            tsc: Quantity::measured(rate, Unit::Hertz),
            blocks: Blocks::default(),
            grade: Grade { verdict: Verdict::Noisy, reasons: Vec::new() },
            memory: Memory::default(),
            interrupted: false,
        },
        host: host.clone(),
        levels: Vec::new(),
        experiments: Experiments::default(),
    };
    let mut context = Context {
        host,
        station,
        tsc: rate,
        effort: request.effort,
        budget: Duration::ZERO,
        time_budget: TimeBudget::of(Duration::ZERO),
        max_memory: request.max_memory,
        strides: &request.strides,
        rng: rng.clone(),
        stop: request.stop,
        tally: RunTally::default(),
        progress,
        name: "",
        part_of_run: (0.0, 1.0),
        stage: (0.0, 1.0),
    };
    let seconds_of = |entry: &Entry| request.seconds.unwrap_or_else(|| entry.seconds_at(request.effort));
    let total: f64 = request.experiments.iter().map(|e| seconds_of(e)).sum();
    let mut before = 0.0;
    for entry in &request.experiments {
        if request.stop.asked() {
            break;
        }
        let seconds = seconds_of(entry);
        context.part_of_run = (before / total, (before + seconds) / total);
        before += seconds;
        context.stage = (0.0, 1.0);
        context.name = entry.name;
        context.budget = Duration::from_secs_f64(seconds);
        context.time_budget = TimeBudget::of(context.budget);
        context.rng = rng.fork(entry.name);
        context.stage(0.0, 1.0);
        (entry.run)(&mut context, &mut machine);
        let area = arena::most_since_asked();
        if area > machine.run.memory.largest_area {
            let largest_in = entry.name.to_owned();
            machine.run.memory = Memory { largest_area: area, largest_in, ..Memory::default() };
        }
    }
    if let Some(clock) = machine.experiments.clock.as_mut().and_then(|outcome| outcome.result.as_mut()) {
        clock::widen(clock, &context.tally);
    }
    let run = &mut machine.run;
    run.seconds = began.elapsed().as_secs_f64();
    run.memory.peak = lab::peak_memory();
    run.interrupted = request.stop.asked();
    run.tsc = Quantity::measured(first.rate_until(&tsc::Anchor::take()), Unit::Hertz);
    run.blocks = blocks_of(&context.tally);
    run.grade = grade_of(&context.tally, run.interrupted, context.station.blind());
    Ok(machine)
}

fn blocks_of(tally: &RunTally) -> Blocks {
    Blocks {
        valid: tally.valid,
        voided: tally.voids.total(),
        stolen: tally.voids.steal,
        switched: tally.voids.switch,
        faulted: tally.voids.fault,
        clock_moved: tally.voids.clock_moved,
        in_company: tally.beside_other_tasks,
        core_shared: tally.core_shared,
        other_tasks: tally.usual_other_tasks(),
    }
}

fn grade_of(tally: &RunTally, interrupted: bool, blind: Option<String>) -> Grade {
    let (noise, mut reasons) = grade::grade(tally);
    let mut verdict = match noise {
        Noise::Quiet => Verdict::Quiet,
        Noise::Fair => Verdict::Fair,
        Noise::Noisy => Verdict::Noisy,
    };
    if let Some(unseen) = blind {
        verdict = verdict.max(Verdict::Fair);
        reasons.push(format!("cannot be seen here, and may have disturbed: {unseen}"));
    }
    if interrupted {
        verdict = verdict.max(Verdict::Fair);
        reasons.push("stopped before it was complete".to_owned());
    }
    Grade { verdict, reasons }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::effort::ByEffort;
    use crate::entry::outcome_of;
    use crate::yields;
    use records::machine::Status;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static PUT_BACK: AtomicUsize = AtomicUsize::new(0);

    /// A setting that is put back when it is dropped, as the lab's are.
    struct Changed;

    impl Drop for Changed {
        fn drop(&mut self) {
            PUT_BACK.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn on_this_thread() {
        let nothing: [u32; 0] = [];
        assert!(nothing.len() > 1, "of no\n use");
    }

    fn on_another() {
        std::thread::scope(|s| s.spawn(on_this_thread).join().expect("the partner lives"));
    }

    fn defective<T>(panics: fn()) -> impl Fn(&mut Context<'_>, &Machine) -> Result<T, Refused> {
        move |ctx, _| {
            let _changed = Changed;
            ctx.stage(0.5, 1.0);
            panics();
            Err(Refused::failed("it did not panic"))
        }
    }

    const BRIEF: ByEffort<f64> = ByEffort { quick: 0.1, normal: 0.1, thorough: 0.1 };

    static ENTRIES: [Entry; 4] = [
        Entry {
            name: "numa",
            about: "",
            needs: None,
            seconds: BRIEF,
            run: |ctx, machine| {
                machine.experiments.numa = Some(outcome_of(ctx, machine, defective(on_this_thread)));
            },
            part: |all, name| Some(all.numa.as_ref()?.ending(name)),
        },
        Entry {
            name: "c2c",
            about: "",
            needs: None,
            seconds: BRIEF,
            run: |ctx, machine| {
                machine.experiments.c2c = Some(outcome_of(ctx, machine, defective(on_another)));
            },
            part: |all, name| Some(all.c2c.as_ref()?.ending(name)),
        },
        clock::ENTRY,
        yields::ENTRY,
    ];

    #[test]
    fn a_defect_costs_one_experiment_and_no_more() {
        if tsc::usable().is_err() {
            return;
        }
        let request = Request {
            experiments: ENTRIES.iter().collect(),
            effort: Effort::Quick,
            seconds: None,
            cpu: lab::pin::allowed().unwrap()[0],
            seed: 1,
            max_memory: Bytes::mib(64),
            strides: StrideChoice::default(),
            stop: Stop::never(),
        };
        let machine = measure(&request, &Host::default(), &mut units::Silent).unwrap();
        assert_eq!(PUT_BACK.load(Ordering::Relaxed), 2);
        let endings = catalogue::endings(&machine.experiments);
        for name in ["numa", "c2c"] {
            let ending = endings.iter().find(|e| e.name == name).unwrap();
            let why = ending.why.unwrap();
            assert_eq!(ending.status, Status::Failed);
            assert!(why.starts_with("a bug in Gleaner: of no use (") && why.contains("session.rs:"), "{why}");
        }
        for name in ["clock", "yield"] {
            assert!(endings.iter().any(|e| e.name == name && e.status != Status::Failed), "{endings:?}");
        }
        assert!(machine.run.blocks.valid > 0);
    }
}
