//! The costs that plans need, measured shortly where `gleaner measure` has left no record of this
//! machine: once, since what was found stays in the user's cache directory.

use crate::console::Console;
use crate::live;
use crate::measure::{self, Adapter, MeasureArgs};
use ::harvest::machine_record::{self, Kept};
use experiments::catalogue;
use lab::stop::Stop;
use records::Document;
use std::thread;

/// Where this fails, costs are assumed, and the summary says so.
pub(super) fn measure_if_missing(console: &Console) {
    let host = live::host_without_trying();
    if !machine_record::is_missing(&host) {
        return;
    }
    console.remark("gleaner: measuring what misses and yields cost on this machine, once (two seconds)");
    let args = MeasureArgs { quick: true, ..MeasureArgs::only(&[]) };
    let Ok((mut request, _claim)) = measure::request(&args, &host, console) else { return };
    request.experiments = vec![&catalogue::COSTS];
    // Ctrl-C ends this process, as it would while a plan is made.
    request.stop = Stop::never();
    let mut progress = console.progress();
    // A measuring thread keeps to one CPU; whoever is started later shall not.
    let measured = thread::scope(|scope| {
        let measuring = || experiments::measure(&request, &host, &mut Adapter(progress.as_mut()));
        scope.spawn(measuring).join()
    });
    progress.finish();
    let why = match measured {
        Ok(Ok(machine)) => match machine_record::keep_short(&Document::now(machine)) {
            Kept::Nowhere(why) => why,
            Kept::Written(_) | Kept::Older(..) => return,
        },
        Ok(Err(refused)) => refused.why,
        Err(_) => "the measurement failed".to_owned(),
    };
    console.remark(&format!("gleaner: {why}: the costs of a common machine are assumed"));
}
