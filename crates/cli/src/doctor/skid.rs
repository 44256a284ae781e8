//! `gleaner doctor --skid`: where samples by time land behind a load that stalls.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::figures::percent;
use crate::figures::table::{draw, row};
use sampler::skid::Skid;
use serde_json::json;
use std::fmt::Write;

/// From this share on, one sample names its load.
const SHARP: f64 = 0.95;

pub(super) fn run(console: &Console) -> anyhow::Result<Exit> {
    let host = host::read(std::path::Path::new("/"));
    let processor = host.processor.name.get().map_or("unknown processor".to_owned(), ToString::to_string);
    let virtual_machine = host.virtualization.hypervisor.get().filter(|name| *name != "none").cloned();
    let skid = sampler::skid::measure().map_err(|why| {
        Refusal::not_possible_here("--skid", why).would_help("sysctl kernel.perf_event_paranoid=2 or lower")
    })?;
    if console.json() {
        let steps: Vec<_> = skid
            .steps
            .iter()
            .map(|step| {
                json!({
                    "behind": step.behind,
                    "instruction": step.instruction,
                    "samples": step.samples,
                    "share": serde_json::to_value(&step.share).unwrap_or_default(),
                })
            })
            .collect();
        console.value(&json!({
            "processor": processor,
            "hypervisor": virtual_machine,
            "samples": skid.samples,
            "elsewhere": skid.elsewhere,
            "steps": steps,
        }))?;
        return Ok(Exit::Done);
    }
    let guest = virtual_machine.map_or(String::new(), |it| format!(", a guest of {it}"));
    console.text(&text(&skid, &format!("{processor}{guest}"), super::width(console)))?;
    Ok(Exit::Done)
}

fn text(skid: &Skid, machine: &str, width: usize) -> String {
    let mut text = format!("Where samples by time land behind a load that stalls: {machine}\n");
    let _ = writeln!(text, "  {} samples of a second of a chain of loads through 32 MiB\n", skid.samples);
    let mut rows = vec![row(["behind", "share", "samples", "instruction"])];
    for step in &skid.steps {
        let behind = if step.behind == 0 { "the load".to_owned() } else { step.behind.to_string() };
        rows.push(vec![behind, percent(&step.share), step.samples.to_string(), step.instruction.clone()]);
    }
    text.push_str(&draw(&rows, width));
    let right_behind = skid.steps.get(1).and_then(|step| step.share.estimate());
    let on_it = skid.steps.first().and_then(|step| step.share.value());
    let verdict = match (right_behind, on_it) {
        _ if skid.samples == 0 => "no sample came: nothing is known".to_owned(),
        (Some(share), _) if share.lo >= SHARP => {
            "samples that profilers take by time on such a processor name the load: --pprof, --otlp, --perf-data".to_owned()
        }
        (_, Some(on_it)) if on_it >= SHARP => {
            "samples land on the load itself: profiles here would name the instruction in front of it".to_owned()
        }
        _ => "samples land apart: loads that stored samples name may be neighbours of those that stall".to_owned(),
    };
    let _ = writeln!(text, "\n  {verdict}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use insight::measured_share;
    use sampler::skid::SkidStep;

    fn of(samples: &[u64]) -> Skid {
        let all = samples.iter().sum();
        let step = |(behind, &samples): (usize, &u64)| SkidStep {
            behind: behind as u64,
            instruction: "add rax,1".to_owned(),
            samples,
            share: measured_share(samples, all),
        };
        Skid { samples: all, elsewhere: 0, steps: samples.iter().enumerate().map(step).collect() }
    }

    #[test]
    fn the_verdict_is_what_the_shares_say() {
        for (samples, says) in [
            (&[0, 3990, 10][..], "name the load"),
            (&[3990, 10, 0], "on the load itself"),
            (&[100, 2000, 1500], "land apart"),
            (&[0, 19, 1], "land apart"), // too few to tell
            (&[0, 0, 0], "nothing is known"),
        ] {
            let text = text(&of(samples), "a processor", 80);
            assert!(text.contains(says), "{text}");
        }
    }
}
