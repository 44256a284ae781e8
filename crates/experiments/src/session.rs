//! One run of `measure`: sets up the station, runs the experiments asked for, grades the whole.

use crate::catalogue::Entry;
use crate::context::{Context, Progress, Refused};
use crate::purse::Purse;
use lab::arena;
use lab::campaign::Station;
use lab::grade::{self, Noise, Tally};
use lab::rng::Rng;
use lab::stop::Stop;
use lab::tsc;
use records::host::Host;
use records::machine::{Blocks, Effort, Experiments, Grade, Machine, Memory, Run, Verdict};
use std::time::{Duration, Instant};
use units::{Bytes, Quantity, Unit};

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    pub experiments: Vec<&'static Entry>,
    pub effort: Effort,
    pub cpu: usize,
    pub seed: u64,
    pub max_memory: Bytes,
    pub stop: Stop,
}

/// Runs the experiments. An interrupted run returns what it has.
pub fn measure(request: &Request, host: &Host, progress: &mut dyn Progress) -> Result<Machine, Refused> {
    tsc::usable().map_err(|why| Refused::not_possible(why, "measure on an x86-64 CPU from 2008 or later"))?;
    let began = Instant::now();
    let first = tsc::Anchor::take();
    let rate = tsc::calibrate(Duration::from_millis(30));
    let station = Station::new(request.cpu, rate.value)?;
    let rng = Rng::new(request.seed);
    let mut machine = Machine {
        run: Run {
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
        purse: Purse::of(Duration::ZERO),
        max_memory: request.max_memory,
        rng: rng.clone(),
        stop: request.stop,
        tally: Tally::default(),
        progress,
        name: "",
        window: (0.0, 1.0),
        stage: (0.0, 1.0),
    };
    let total: f64 = request.experiments.iter().map(|e| e.seconds_at(request.effort)).sum();
    let mut before = 0.0;
    for entry in &request.experiments {
        if request.stop.asked() {
            break;
        }
        let seconds = entry.seconds_at(request.effort);
        context.window = (before / total, (before + seconds) / total);
        before += seconds;
        context.stage = (0.0, 1.0);
        context.name = entry.name;
        context.budget = Duration::from_secs_f64(seconds);
        context.purse = Purse::of(context.budget);
        context.rng = rng.fork(entry.name);
        context.stage(0.0, 1.0);
        (entry.run)(&mut context, &mut machine);
        let area = arena::most_since_asked();
        if area > machine.run.memory.largest_area {
            let largest_in = entry.name.to_owned();
            machine.run.memory = Memory { largest_area: area, largest_in, ..Memory::default() };
        }
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

fn blocks_of(tally: &Tally) -> Blocks {
    Blocks {
        valid: tally.valid,
        voided: tally.voids.total(),
        stolen: tally.voids.steal,
        switched: tally.voids.switch,
        faulted: tally.voids.fault,
        clock_moved: tally.voids.clock_moved,
        in_company: tally.in_company,
        core_shared: tally.core_shared,
    }
}

fn grade_of(tally: &Tally, interrupted: bool, blind: Option<String>) -> Grade {
    let (noise, mut reasons) = grade::grade(tally);
    let mut verdict = match noise {
        Noise::Quiet => Verdict::Quiet,
        Noise::Fair => Verdict::Fair,
        Noise::Noisy => Verdict::Noisy,
    };
    if let Some(unseen) = blind {
        verdict = verdict.max(Verdict::Fair);
        reasons.push(format!("not seen here, so not known to have been absent: {unseen}"));
    }
    if interrupted {
        verdict = verdict.max(Verdict::Fair);
        reasons.push("stopped before its end".to_owned());
    }
    Grade { verdict, reasons }
}
