//! The costs that plans need, measured shortly where `gleaner measure` has left no record of this
//! machine: once, since what was found stays in the user's cache directory.

use crate::console::Console;
use crate::live;
use experiments::catalogue;
use experiments::choices::{self, CpuChoice};
use experiments::stride_choice::StrideChoice;
use lab::stop::Stop;
use records::Document;
use records::host::Host;
use records::machine::{Effort, Machine};
use std::thread;
use store::machine_record;

/// Where this fails, costs are assumed, and the summary says so.
pub(super) fn measure_if_missing(console: &Console) {
    // To look at the host takes its time.
    if machine_record::is_there() {
        return;
    }
    let host = live::host_without_trying();
    if !machine_record::short_is_missing(&host) {
        return;
    }
    console.remark("gleaner: measuring what misses and yields cost on this machine, once (two seconds)");
    let keep = |machine| machine_record::keep_short(&Document::now(machine));
    if let Err(why) = measured(&host, console).and_then(keep) {
        console.remark(&format!("gleaner: {why}: the costs of a common machine are assumed"));
    }
}

fn measured(host: &Host, console: &Console) -> Result<Machine, String> {
    let CpuChoice { cpu, claim } = choices::cpu(None).map_err(|refused| refused.why)?;
    let _claim = claim.ok_or("another gleaner measures now")?;
    let memory = choices::memory(None, host).map_err(|_| "too little memory is available")?;
    let request = experiments::Request {
        experiments: vec![&catalogue::COSTS],
        effort: Effort::Quick,
        seconds: None,
        cpu,
        seed: choices::seed(),
        max_memory: memory.areas,
        strides: StrideChoice::default(),
        // Ctrl-C ends this process, as it would while a plan is made.
        stop: Stop::never(),
    };
    let mut progress = console.progress();
    // A measuring thread keeps to one CPU; the primary, started later, shall not.
    let found = thread::scope(|scope| {
        let measuring = || experiments::measure(&request, host, progress.as_mut());
        let started = thread::Builder::new().spawn_scoped(scope, measuring);
        started.map_err(|why| records::plain(&why)).map(thread::ScopedJoinHandle::join)
    });
    progress.finish();
    match found? {
        Ok(found) => found.map_err(|refused| refused.why),
        Err(_) => Err("the measurement failed".to_owned()),
    }
}
