//! `gleaner doctor`: what works on this host, what does not and why, and what would help.

mod caches;
mod page;
mod rights;
mod sections;
mod skid;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use clap::Args;
use host::Source;
use host::probe::{Prober, RecordedProber};
use page::Style;
use std::path::{Path, PathBuf};

/// Show what works on this host, what does not and why, and what would help
///
/// Gleaner tries counters, watchpoints and prefetcher controls, and runs pairs of CPUs at once to
/// find those that share a core; it changes no setting. All other figures are claims of the
/// hardware, which 'gleaner measure' checks.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Show another machine: a directory laid out like /, or a file written by --record
    #[arg(long, value_name = "PATH", default_value = "/")]
    root: PathBuf,

    /// Write what was read to FILE ('-' for standard output), to show it elsewhere with --root; the
    /// file has no host name, serial numbers or command lines, but it has the paths of control
    /// groups
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Show where samples by time land behind a load that stalls, on this processor: it takes a
    /// second, and tells how far stored samples of such a processor name loads
    #[arg(long, conflicts_with_all = ["root", "record"])]
    skid: bool,
}

pub(crate) fn run(args: &DoctorArgs, console: &Console) -> anyhow::Result<Exit> {
    if args.skid {
        return skid::run(console);
    }
    let source = open(&args.root)?;
    let (live, recorded) = (lab::probe::LiveProber, RecordedProber::of(&source));
    let prober: &dyn Prober = if source.is_live() { &live } else { &recorded };
    if let Some(file) = &args.record {
        record(&host::record(&source, prober), file, console)?;
        return Ok(Exit::Done);
    }
    let mut host = host::read_with(&source, prober);
    if source.is_live() {
        crate::live::try_siblings(&mut host);
    }
    if console.json() {
        console.value(&serde_json::to_value(&host)?)?;
    } else {
        let style = Style { colour: console.colour(), width: width(console) };
        console.text(&sections::render(&host, style))?;
    }
    Ok(Exit::Done)
}

fn open(root: &Path) -> Result<Source, Refusal> {
    Source::open_checked(root)
        .map_err(|e| Refusal::wrong_use(format!("--root {}", root.display()), e.to_string()))
}

fn record(text: &str, file: &Path, console: &Console) -> anyhow::Result<()> {
    if file == Path::new("-") {
        return Ok(console.stdout(text)?);
    }
    crate::save::bytes(file, text.as_bytes())?;
    console.remark(&format!("wrote {}; 'gleaner doctor --root {0}' shows it", file.display()));
    Ok(())
}

/// The terminal's width, within what reads well; half of the narrowest is left for the text.
fn width(console: &Console) -> usize {
    match console.width() {
        usize::MAX => IN_FILES,
        width => width.clamp(NARROWEST, WIDEST),
    }
}

/// Widths of the page, in characters.
const IN_FILES: usize = 100;
const WIDEST: usize = 120;
const NARROWEST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use host::Tree;

    fn machines() -> Vec<PathBuf> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/fixtures");
        let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_file())
            .collect();
        found.retain(|p| p.extension().is_some_and(|e| e == "tree"));
        found.sort();
        found
    }

    /// Committed so that people read it: each page must make sense for its machine.
    #[test]
    fn the_page_of_every_recorded_machine_is_the_committed_one() {
        let machines = machines();
        assert!(machines.len() >= 8, "{machines:?}");
        for machine in machines {
            let text = sections::render(&host::read(&machine), Style { colour: false, width: 100 });
            let name = machine.file_stem().unwrap().to_string_lossy().into_owned();
            testkit::golden(&format!("crates/cli/tests/golden/doctor/{name}.txt"), &text);
        }
    }

    #[test]
    fn every_no_comes_with_a_help_and_every_line_fits() {
        for machine in machines() {
            let text = sections::render(&host::read(&machine), Style { colour: false, width: 80 });
            let lines: Vec<&str> = text.lines().collect();
            for line in &lines {
                assert!(line.chars().count() <= 80, "{line}");
            }
            let refusals = lines.iter().filter(|l| l.trim_start().starts_with('✗')).count();
            let helps = lines.iter().filter(|l| l.contains("would help:")).count();
            assert_eq!(refusals, helps, "{}:\n{text}", machine.display());
        }
    }

    #[test]
    fn nonsense_in_every_file_still_gets_a_page() {
        for machine in machines() {
            let text = std::fs::read_to_string(&machine).unwrap();
            for nonsense in ["-1", "18446744073709551615", "[never]", "0-65535", "1 2 3 4 5 6 7 8 9 10"] {
                let mut tree = Tree::default();
                for path in text.lines().filter(|l| !l.starts_with(['\t', '#'])) {
                    tree.insert(
                        path.split('\t').next().unwrap().replace("{0-", "").replace('}', ""),
                        nonsense,
                    );
                }
                let source = Source::recorded(tree);
                let host = host::read_with(&source, &RecordedProber::of(&source));
                assert!(
                    sections::render(&host, Style { colour: true, width: NARROWEST }).contains("Verdict")
                );
            }
        }
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_still_gets_a_page() {
        let text = sections::render(&host::Host::default(), Style { colour: true, width: NARROWEST });
        assert!(text.contains("Verdict"));
    }

    #[test]
    fn refuses_what_is_no_machine() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        assert!(open(&file).is_err());
        std::fs::write(&file, "hello").unwrap();
        assert!(open(&file).unwrap_err().to_string().contains("not a recorded machine"));
    }

    #[test]
    fn this_machine_recorded_reads_like_this_machine() {
        let source = Source::open(Path::new("/"));
        let prober = lab::probe::LiveProber;
        let live = host::read_with(&source, &prober);
        let tree = Tree::parse(&host::record(&source, &prober)).unwrap();
        let source = Source::recorded(tree);
        let again = host::read_with(&source, &host::probe::RecordedProber::of(&source));
        assert_eq!(again.processor, live.processor);
        assert_eq!(again.cpus, live.cpus);
        assert_eq!(again.caches, live.caches);
        assert_eq!(again.counters, live.counters);
        assert_eq!(again.prefetch, live.prefetch);
        assert_eq!(again.limits, live.limits);
        assert_eq!(again.virtualization, live.virtualization);
        assert_eq!(again.pages.thp, live.pages.thp);
        assert_eq!(again.memory.cgroup_limit, live.memory.cgroup_limit);
        assert_eq!(again.clocks, live.clocks);
    }
}
