//! All experiments, in the order in which they run: later ones may use what earlier ones found.

use crate::context::{Context, Refused};
use crate::{
    bandwidth, c2c, clock, defect, latency, mlp, numa, prefetch, rob, stride, threads, tlb, windows, yields,
};
use records::machine::{Effort, Machine, Outcome, Status};
use std::time::Instant;

/// An experiment as the catalogue knows it.
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    pub about: &'static str,
    /// Seconds it may take at each effort: quick, normal, thorough.
    pub seconds: [f64; 3],
    pub(crate) run: fn(&mut Context<'_>, &mut Machine),
}

impl Entry {
    pub fn seconds_at(&self, effort: Effort) -> f64 {
        self.seconds[match effort {
            Effort::Quick => 0,
            Effort::Normal => 1,
            Effort::Thorough => 2,
        }]
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

pub const ALL: &[Entry] = &[
    Entry {
        name: "clock",
        about: "time stamp counter and core clock",
        seconds: [1.0, 3.0, 10.0],
        run: |ctx, machine| machine.experiments.clock = Some(conclude(ctx, machine, clock::run)),
    },
    Entry {
        name: "latency",
        about: "latency over size: caches and memory, their sizes and costs",
        seconds: [7.5, 70.0, 300.0],
        run: |ctx, machine| {
            let mut levels = Vec::new();
            let outcome = conclude(ctx, machine, |ctx, known| {
                let curves = latency::run(ctx, known)?;
                levels = latency::levels_of(&curves, &known.host, known.run.cpu);
                Ok(curves)
            });
            machine.levels = levels;
            machine.experiments.latency = Some(outcome);
        },
    },
    Entry {
        name: "tlb",
        about: "entries of each translation buffer, cost of missing it",
        seconds: [5.0, 30.0, 120.0],
        run: |ctx, machine| machine.experiments.tlb = Some(conclude(ctx, machine, tlb::run)),
    },
    Entry {
        name: "mlp",
        about: "memory-level parallelism: how many misses overlap",
        seconds: [6.0, 40.0, 150.0],
        run: |ctx, machine| machine.experiments.mlp = Some(conclude(ctx, machine, mlp::run)),
    },
    Entry {
        name: "rob",
        about: "how far the core looks ahead: re-order buffer, registers, queues",
        seconds: [6.0, 40.0, 150.0],
        run: |ctx, machine| machine.experiments.rob = Some(conclude(ctx, machine, rob::run)),
    },
    Entry {
        name: "stride",
        about: "latency over stride and size: lines, and how far prefetchers follow",
        seconds: [3.0, 20.0, 80.0],
        run: |ctx, machine| machine.experiments.stride = Some(conclude(ctx, machine, stride::run)),
    },
    Entry {
        name: "prefetch",
        about: "prefetchers: each of them off and on where possible, what patterns reveal where not",
        seconds: [3.0, 15.0, 60.0],
        run: |ctx, machine| machine.experiments.prefetch = Some(conclude(ctx, machine, prefetch::run)),
    },
    Entry {
        name: "numa",
        about: "memory placed on this node, on others, on all: latency and parallelism",
        seconds: [2.0, 10.0, 40.0],
        run: |ctx, machine| machine.experiments.numa = Some(conclude(ctx, machine, numa::run)),
    },
    Entry {
        name: "threads",
        about: "several threads at once: what they take from each other, who shares which cache",
        seconds: [3.0, 15.0, 60.0],
        run: |ctx, machine| machine.experiments.threads = Some(conclude(ctx, machine, threads::run)),
    },
    Entry {
        name: "bandwidth",
        about: "what caches and memory move, and what a load costs meanwhile",
        seconds: [6.0, 40.0, 150.0],
        run: |ctx, machine| machine.experiments.bandwidth = Some(conclude(ctx, machine, bandwidth::run)),
    },
    Entry {
        name: "windows",
        about: "windows at random in areas of all sizes: what a model of the hierarchy is fitted to",
        seconds: [5.0, 35.0, 150.0],
        run: |ctx, machine| machine.experiments.windows = Some(conclude(ctx, machine, windows::run)),
    },
    Entry {
        name: "c2c",
        about: "handing a cache line to another CPU, and the price of false sharing",
        seconds: [2.0, 8.0, 30.0],
        run: |ctx, machine| machine.experiments.c2c = Some(conclude(ctx, machine, c2c::run)),
    },
    Entry {
        name: "yield",
        about: "what it costs to let somebody else run, with the kernel and without",
        seconds: [3.0, 12.0, 40.0],
        run: |ctx, machine| machine.experiments.yields = Some(conclude(ctx, machine, yields::run)),
    },
];

pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|e| e.name == name)
}

/// Runs it, and tells how it ended, whatever that is.
pub(crate) fn conclude<T>(
    ctx: &mut Context<'_>,
    known: &Machine,
    run: impl FnOnce(&mut Context<'_>, &Machine) -> Result<T, Refused>,
) -> Outcome<T> {
    let began = Instant::now();
    let result = defect::caught(|| run(ctx, known));
    let seconds = began.elapsed().as_secs_f64();
    let interrupted = ctx.stop.asked();
    let empty = Outcome { status: Status::Done, why: None, would_help: None, seconds, result: None };
    let (defect, result) = match result {
        Ok(result) => (false, result),
        Err(defect) => (true, Err(defect)),
    };
    match result {
        Ok(result) if interrupted => Outcome {
            status: Status::Interrupted,
            why: Some("stopped before its end".to_owned()),
            result: Some(result),
            ..empty
        },
        Ok(result) => Outcome { result: Some(result), ..empty },
        Err(refused) if interrupted && !defect => {
            Outcome { status: Status::Interrupted, why: Some(refused.why), ..empty }
        }
        Err(refused) => Outcome {
            status: if refused.not_possible { Status::NotPossible } else { Status::Failed },
            why: Some(refused.why),
            would_help: refused.would_help,
            ..empty
        },
    }
}
