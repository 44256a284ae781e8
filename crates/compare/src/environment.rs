//! What else differs between the sides: a kernel, a microcode, neighbours. It stands before the
//! figures, since it may explain all of them.

use crate::machine;
use records::Header;
use records::host::{Fact, Host, ThpMode};
use records::machine::{Effort, Machine, Verdict};
use records::profile::Profile;
use records::recipe::Recipe;
use records::run::Run;
use serde::Serialize;
use std::fmt::Display;
use units::median;

/// One thing that runs are taken under, and how it was in one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Circumstance {
    topic: &'static str,
    /// As text for people; a share is compared by its number.
    what: String,
    share: Option<f64>,
}

/// Something that differs between the sides, or within one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub topic: String,
    /// What the runs of each side say, each thing once.
    pub base: Vec<String>,
    pub new: Vec<String>,
}

/// Shares that are closer than this are the same.
const SHARES_DIFFER: f64 = 0.10;

pub(crate) fn of_machine(header: &Header, machine: &Machine) -> Vec<Circumstance> {
    let mut all = of_host(header, &machine.host);
    let run = &machine.run;
    all.push(text("measured on CPU", run.cpu));
    all.push(text(
        "effort",
        match run.effort {
            Effort::Quick => "quick",
            Effort::Normal => "normal",
            Effort::Thorough => "thorough",
        },
    ));
    all.push(text(
        "grade",
        match run.grade.verdict {
            Verdict::Quiet => "quiet",
            Verdict::Fair => "fair",
            Verdict::Noisy => "noisy",
        },
    ));
    let shown = |had: f64| format!("{:.0}%", 100.0 * had);
    let huge = machine::huge_pages(machine).into_iter();
    all.extend(huge.map(|(topic, had)| Circumstance { topic, what: shown(had), share: Some(had) }));
    let blocks = &run.blocks;
    let every = blocks.valid + blocks.voided;
    all.extend(share("blocks void", blocks.voided, every));
    all.extend(share("blocks beside other tasks", blocks.in_company, blocks.valid));
    all.extend(share("blocks with the core shared", blocks.core_shared, blocks.valid));
    all.extend(share("blocks with stolen time", blocks.stolen, every));
    all
}

pub(crate) fn of_profile(header: &Header, profile: &Profile) -> Vec<Circumstance> {
    let mut all = vec![text("gleaner", &header.gleaner), text("program", profile.program.command.join(" "))];
    if let Some(system) = &profile.system {
        all.push(text("sampled", system.cgroup.as_deref().unwrap_or("all processes")));
    }
    all.push(text("backend", format!("{:?}", profile.sampling.backend).to_lowercase()));
    all.push(text("kernel sampled", if profile.sampling.sees_kernel { "yes" } else { "no" }));
    let file = profile.program.perf_data.as_ref();
    all.extend(file.and_then(|file| file.processor.as_ref()).map(|processor| text("processor", processor)));
    all
}

pub(crate) fn of_run(header: &Header, run: &Run) -> Vec<Circumstance> {
    let commands: Vec<String> = run.scavengers.iter().map(|s| s.process.command.join(" ")).collect();
    let without: Vec<String> = run.without.iter().map(|part| format!("{part:?}")).collect();
    let mut all = vec![text("gleaner", &header.gleaner), text("primary", run.primary.command.join(" "))];
    all.push(text("scavengers", if commands.is_empty() { "none".to_owned() } else { commands.join("; ") }));
    all.push(text("left out", if without.is_empty() { "nothing".to_owned() } else { without.join(", ") }));
    all.push(text("--max-slowdown", &run.bounds.max_slowdown));
    all.push(text("--max-absence", &run.bounds.max_absence));
    all
}

pub(crate) fn of_recipe(header: &Header, recipe: &Recipe) -> Vec<Circumstance> {
    let settings: Vec<String> = recipe.settings.iter().map(|setting| format!("{setting:?}")).collect();
    vec![
        text("gleaner", &header.gleaner),
        text("processor", &recipe.processor),
        text("command", recipe.program.command.join(" ")),
        text("build", &recipe.program.file.build),
        text("kept", if settings.is_empty() { "nothing".to_owned() } else { settings.join("; ") }),
    ]
}

fn of_host(header: &Header, host: &Host) -> Vec<Circumstance> {
    let mut all = vec![text("gleaner", &header.gleaner)];
    all.extend(fact("kernel", &host.identity.kernel));
    all.extend(fact("distribution", &host.identity.distribution));
    all.extend(fact("firmware", &host.identity.firmware));
    all.extend(fact("processor", &host.processor.name));
    all.extend(fact("microarchitecture", &host.processor.microarchitecture));
    all.extend(fact("microcode", &host.processor.microcode));
    all.extend(fact("hypervisor", &host.virtualization.hypervisor));
    all.push(text("cloud", host.virtualization.cloud.as_deref().unwrap_or("none seen")));
    all.push(text("container", host.virtualization.container.as_deref().unwrap_or("none seen")));
    all.extend(fact("CPUs online", &host.topology.online));
    all.extend(fact("CPUs allowed", &host.topology.allowed));
    all.extend(fact("hyperthreads", &host.topology.smt.control));
    let thp = host.pages.thp.effective().map(|mode| match mode {
        ThpMode::Always => "always",
        ThpMode::Madvise => "madvise",
        ThpMode::Never => "never",
        ThpMode::Inherit => "inherit",
    });
    all.extend(fact("transparent huge pages", &thp));
    all.extend(fact("THP defrag", &host.pages.thp.defrag));
    for pool in &host.pages.hugetlb {
        let total = pool.total.get().map(|total| format!("{total} of {}", pool.size));
        all.extend(
            total.filter(|_| pool.total.value() != Some(0)).map(|total| text("huge pages reserved", total)),
        );
    }
    all.extend(fact("memory", &host.memory.total));
    let limit =
        host.memory.cgroup_limit.clone().map(|limit| limit.map_or("none".to_owned(), |l| l.to_string()));
    all.extend(fact("memory limit", &limit));
    let clocks = &host.clocks;
    all.extend(fact("clock source", &clocks.clocksource));
    all.extend(fact("frequency driver", &clocks.frequency.driver));
    all.extend(fact("governor", &clocks.frequency.governors.clone().map(|all| all.join(", "))));
    all.extend(fact("turbo", &clocks.frequency.turbo.clone().map(|on| if on { "on" } else { "off" })));
    all
}

fn text(topic: &'static str, what: impl Display) -> Circumstance {
    Circumstance { topic, what: what.to_string(), share: None }
}

fn fact<T: Display>(topic: &'static str, fact: &Fact<T>) -> Option<Circumstance> {
    fact.get().map(|what| text(topic, what))
}

fn share(topic: &'static str, part: usize, whole: usize) -> Option<Circumstance> {
    let share = (whole > 0).then(|| part as f64 / whole as f64)?;
    Some(Circumstance { topic, what: format!("{:.0}%", 100.0 * share), share: Some(share) })
}

/// What differs between two sides, in the order of the topics.
pub(crate) fn differences(base: &[Vec<Circumstance>], new: &[Vec<Circumstance>]) -> Vec<Difference> {
    let differ = |topic: &str| {
        let (base, new) = (said(base, topic), said(new, topic));
        let apart = match (middle(&base), middle(&new)) {
            (Some(a), Some(b)) => (a - b).abs() >= SHARES_DIFFER,
            _ => words(&base) != words(&new),
        };
        apart.then(|| Difference { topic: topic.to_owned(), base: words(&base), new: words(&new) })
    };
    topics(base.iter().chain(new)).into_iter().filter_map(differ).collect()
}

/// What differs among the runs of one side, and would not if they were runs of the same thing.
pub(crate) fn mixed(side: &[Vec<Circumstance>]) -> Vec<String> {
    let mixed = |topic: &str| {
        let said = said(side, topic);
        let words = words(&said);
        let expected = said.iter().all(|c| c.share.is_some()) || topic == "grade";
        (words.len() > 1 && !expected).then(|| format!("its runs differ in {topic}: {}", words.join("; ")))
    };
    topics(side.iter()).into_iter().filter_map(mixed).collect()
}

fn topics<'a>(runs: impl Iterator<Item = &'a Vec<Circumstance>>) -> Vec<&'static str> {
    let mut topics = Vec::new();
    for circumstance in runs.flatten() {
        if !topics.contains(&circumstance.topic) {
            topics.push(circumstance.topic);
        }
    }
    topics
}

fn said<'a>(side: &'a [Vec<Circumstance>], topic: &str) -> Vec<&'a Circumstance> {
    side.iter().flatten().filter(|c| c.topic == topic).collect()
}

fn middle(said: &[&Circumstance]) -> Option<f64> {
    let shares: Vec<f64> = said.iter().filter_map(|c| c.share).collect();
    (!shares.is_empty()).then(|| median(&shares))
}

/// Each thing once; of shares the least and the most.
fn words(said: &[&Circumstance]) -> Vec<String> {
    let mut shares: Vec<&&Circumstance> = said.iter().filter(|c| c.share.is_some()).collect();
    shares.sort_by(|a, b| a.share.unwrap_or(0.0).total_cmp(&b.share.unwrap_or(0.0)));
    if let [first, .., last] = shares[..] {
        let range = if first.what == last.what {
            first.what.clone()
        } else {
            format!("{} to {}", first.what, last.what)
        };
        return vec![range];
    }
    let mut words: Vec<String> = said.iter().map(|c| c.what.clone()).collect();
    words.sort();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let run = |kernel: &str, void: usize| {
            vec![text("kernel", kernel), text("cloud", "none seen"), share("blocks void", void, 100).unwrap()]
        };
        let (base, new) = ([run("6.1", 2), run("6.1", 4)], [run("6.8", 9)]);
        let kernel = Difference { topic: "kernel".into(), base: vec!["6.1".into()], new: vec!["6.8".into()] };
        assert_eq!(differences(&base, &new), [kernel]);
        let noisy = differences(&base, &[run("6.1", 40)]);
        assert_eq!((noisy[0].base[0].as_str(), noisy[0].new[0].as_str()), ("2% to 4%", "40%"));
        assert!(mixed(&base).is_empty());
        assert_eq!(mixed(&[run("6.1", 2), run("6.8", 2)]), ["its runs differ in kernel: 6.1; 6.8"]);
    }
}
