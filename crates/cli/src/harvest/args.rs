//! The command line of `gleaner harvest`, and who takes part by it.

use crate::failure::Refusal;
use ::harvest::find::linked::Wanted;
use ::harvest::find::program::{Program, words};
use ::harvest::launch::Stream;
use ::harvest::plan::Choice;
use ::harvest::session::{Cast, WantedScavenger};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use records::plan::Part;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Run a program, and others in the time it waits for memory
///
/// None of them is changed: rewritten copies run in their place, in which loads that may miss give way to others. The
/// primary's standard input, output and error, its signals and its exit code are as if it ran alone; exit codes 2 and 3
/// of Gleaner's own come before it starts, with a line on standard error. Scavengers share the primary's memory, so they
/// must be trusted as much as it; they end with it.
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command line")]
#[derive(Debug, Args)]
pub(crate) struct HarvestArgs {
    /// A program to run in the primary's waits, with its arguments, quoted as for a shell; may be given several times
    #[arg(long = "scavenger", value_name = "CMD")]
    scavenger: Vec<OsString>,

    /// Several copies of one: '12 x CMD'
    #[arg(long = "scavengers", value_name = "N x CMD", value_parser = OsStringValueParser::new().try_map(Copies::of))]
    scavengers: Vec<Copies>,

    /// Where scavengers' output goes: a file for all, or a directory (there, or ending in '/') with a file for each; else nowhere
    #[arg(long, value_name = "PATH")]
    scavenger_out: Option<PathBuf>,

    /// Guests aboard at once; else as many as a miss has time for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) ring: Option<u32>,

    /// CPUs for scavengers while they are at home, as 0-3,8; else those of the primary
    #[arg(long, value_name = "CPUS")]
    pub(super) home_cpus: Option<records::host::CpuList>,

    /// How much slower the primary may become; its pace with guests is compared with its pace alone all the while
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub(super) max_slowdown: Share,

    /// How long the primary may be away at once; guests that stay for longer again and again go home
    #[arg(long, value_name = "TIME", default_value = "10us")]
    pub(super) max_absence: Time,

    /// Figures of this machine, as 'gleaner measure -o FILE' writes them; else machine.json in its directory of the cache
    #[arg(long, value_name = "FILE")]
    pub(super) machine: Option<PathBuf>,

    /// A plan made by --dry-run --record FILE, in place of a new one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["choose", "least_gain", "most_sites", "exclude", "no_coalescing", "no_spins", "without", "ring"])]
    pub(super) plan: Option<PathBuf>,

    /// Make the plan, explain it, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Where the run record goes; with --dry-run, the plan
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Show on the terminal who is aboard and what that costs while it runs, and a summary at the end
    #[arg(long)]
    pub(super) live: bool,

    /// Rewrite anew, and keep nothing
    #[arg(long)]
    pub(super) no_cache: bool,

    /// The threads of the primary as each other's guests, where more of them want to run than there are CPUs
    #[arg(long, conflicts_with = "home_cpus")]
    pub(super) siblings: bool,

    /// Libraries to rewrite with the programs that are linked to them: names, as libz or libz.so.1, with commas between them, or 'all'
    #[arg(long, value_name = "NAMES", conflicts_with = "siblings", value_parser = libraries)]
    libraries: Option<Wanted>,

    /// Which loads give way
    #[arg(long, value_enum, default_value_t = Chosen::Paying, help_heading = "Choosing sites")]
    pub(super) choose: Chosen,

    /// Cycles that a site must be expected to gain
    #[arg(
        long,
        value_name = "CYCLES",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        help_heading = "Choosing sites"
    )]
    pub(super) least_gain: f64,

    /// No more sites of a file than this: those in the deepest loops
    #[arg(long, value_name = "N", help_heading = "Choosing sites")]
    pub(super) most_sites: Option<usize>,

    /// Leave the load at this address alone; may be given several times
    #[arg(long, value_name = "ADDRESS", help_heading = "Choosing sites")]
    pub(super) exclude: Vec<Address>,

    /// A yield of its own for each load
    #[arg(long, help_heading = "Choosing sites")]
    pub(super) no_coalescing: bool,

    /// Do not let guests run where the primary waits by turning round
    #[arg(long, help_heading = "Choosing sites")]
    pub(super) no_spins: bool,

    /// Leave a part of the harvest out, to see what it gains; may be given several times
    #[arg(long, value_enum, value_name = "PART", help_heading = "Choosing sites")]
    without: Vec<Without>,

    /// The program whose pace matters, with its arguments
    #[arg(value_name = "PRIMARY", required = true, trailing_var_arg = true)]
    primary: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Chosen {
    /// Those that are expected to pay
    Paying,
    /// Of those, only loads whose address was loaded by themselves a round before
    Chases,
    /// Every load of a loop
    EveryLoad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Without {
    /// Scavengers yield at their sites only, however long they stay
    Bounds,
    /// Each yield saves all registers, not only those that are live
    LiveRegisters,
    /// Registers that a loop does not change are saved at each of its yields, not once before it
    #[value(alias = "saving-ahead")]
    HoistedSaves,
    /// Registers that a scavenger's loop does not use are loaded at each of its yields, not once behind it
    #[value(alias = "left-in-slots")]
    SunkRestores,
    /// Registers whose slots hold them already are not saved again to balance a yield's loads and stores
    #[value(alias = "stored-again")]
    LoadStoreBalance,
}

impl From<Without> for Part {
    fn from(without: Without) -> Self {
        match without {
            Without::Bounds => Self::Bounds,
            Without::LiveRegisters => Self::LiveRegisters,
            Without::HoistedSaves => Self::HoistedSaves,
            Without::SunkRestores => Self::SunkRestores,
            Without::LoadStoreBalance => Self::LoadStoreBalance,
        }
    }
}

impl From<Chosen> for Choice {
    fn from(chosen: Chosen) -> Self {
        match chosen {
            Chosen::Paying => Self::Paying,
            Chosen::Chases => Self::Chases,
            Chosen::EveryLoad => Self::EveryLoad,
        }
    }
}

impl HarvestArgs {
    /// Everybody who takes part, found; and what scavengers write to that is no file, to be kept open until they have ended: who
    /// reads a pipe would take it for its end if nobody had it open before the first of them.
    pub(super) fn cast(&self) -> Result<(Cast, Vec<File>), Refusal> {
        let path = std::env::var_os("PATH");
        let find = |command: &[OsString], whose: &str| {
            Program::find(command, path.as_deref()).map_err(|e| Refusal::wrong_use(whose, e.to_string()))
        };
        let primary = find(&self.primary, "primary")?;
        let once = self.scavenger.iter().map(|command| (1, command.as_os_str()));
        let several = self.scavengers.iter().map(|copies| (copies.count, copies.command.as_os_str()));
        let commands: Vec<(u32, &OsStr)> = once.chain(several).collect();
        let whole: u32 = commands.iter().map(|(count, _)| count).sum();
        let (mut scavengers, mut open) = (Vec::new(), Vec::new());
        for (count, command) in commands {
            let words = words(command).map_err(|e| Refusal::wrong_use("scavenger", e.to_string()))?;
            let program = find(&words, "scavenger")?;
            for copy in 1..=count {
                let number = scavengers.len() + 1;
                let (stream, output) = self.output(&program, number, whole, &mut open)?;
                scavengers.push(WantedScavenger {
                    program: program.clone(),
                    copy,
                    stdout: stream.clone(),
                    stderr: stream,
                    output,
                });
            }
        }
        Ok((Cast { primary, scavengers, siblings: self.siblings }, open))
    }

    /// Which libraries are to be rewritten.
    pub(super) fn libraries(&self) -> Wanted {
        self.libraries.clone().unwrap_or_default()
    }

    /// What is left out of the harvest, each once.
    pub(super) fn left_out(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.without.iter().copied().map(Part::from).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    pub(super) fn has_scavengers(&self) -> bool {
        !self.scavenger.is_empty() || !self.scavengers.is_empty()
    }

    /// Where a scavenger's output goes.
    fn output(
        &self,
        program: &Program,
        number: usize,
        whole: u32,
        open: &mut Vec<File>,
    ) -> Result<(Stream, String), Refusal> {
        let Some(path) = &self.scavenger_out else { return Ok((Stream::Null, "nowhere".to_owned())) };
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir();
        let file = if is_directory {
            std::fs::create_dir_all(path).map_err(|e| cannot_write(path, &e))?;
            let name = Path::new(&program.command[0]).file_name().unwrap_or_default().to_string_lossy();
            let width = whole.to_string().len();
            path.join(format!("{number:0width$}-{name}.out"))
        } else {
            path.clone()
        };
        if is_directory || number == 1 {
            // Made anew here, so that everybody's two streams can be added to it.
            let made = File::create(&file).map_err(|e| cannot_write(&file, &e))?;
            if !made.metadata().is_ok_and(|metadata| metadata.is_file()) {
                open.push(made);
            }
        }
        Ok((Stream::Append(file.clone()), file.display().to_string()))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::failed(format!("cannot write {}", path.display()), records::plain(error))
}

fn libraries(text: &str) -> Result<Wanted, String> {
    Wanted::of(text).ok_or_else(|| "no name of a library; write for example libz,libxml2 or all".to_owned())
}

/// `12 x CMD`.
#[derive(Clone, Debug)]
pub(crate) struct Copies {
    count: u32,
    command: OsString,
}

impl Copies {
    #[expect(clippy::needless_pass_by_value, reason = "so parsers of arguments are called")]
    fn of(words: OsString) -> Result<Self, String> {
        let wrong = || format!("'{}' is not '12 x CMD'", words.display());
        let text = words.as_bytes();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, command) = text.split_at(digits);
        let count = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        let command = command.trim_ascii_start().strip_prefix(b"x").ok_or_else(wrong)?.trim_ascii();
        match count {
            Some(count @ 1..) if !command.is_empty() => {
                Ok(Self { count, command: OsStr::from_bytes(command).to_owned() })
            }
            _ => Err(wrong()),
        }
    }
}

/// `5%` or `0.05`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(super) f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        match number.trim().parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => Ok(Self(number / scale)),
            _ => Err(format!("'{text}' is not a share; write for example 5% or 0.05")),
        }
    }
}

/// `500ns`, `10us`, `1ms`, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time(pub(super) f64);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a time; write for example 500ns, 10us or 1ms");
        let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        let (number, scale) = units
            .into_iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
            .ok_or_else(wrong)?;
        match number.trim().parse::<f64>() {
            Ok(number) if number > 0.0 && number.is_finite() => Ok(Self(number * scale)),
            _ => Err(wrong()),
        }
    }
}

/// `0x1234`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(super) u64);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16)
            .map(Self)
            .map_err(|_| format!("'{text}' is not an address; write for example 0x1234"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted() {
        let of = |text: &str| Copies::of(text.into()).map(|c| (c.count, c.command));
        assert_eq!(of("12x'a b'"), Ok((12, "'a b'".into())));
        assert_eq!(of("3 x ./chase 64"), Ok((3, "./chase 64".into())));
        for wrong in ["x a", "3 a", "3x", "0x12", "-1xa", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_and_times_are_read_as_people_write_them() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(
            close("5%".parse::<Share>().unwrap().0, 0.05) && close("0.1".parse::<Share>().unwrap().0, 0.1)
        );
        assert!(close("10us".parse::<Time>().unwrap().0, 1e-5));
        assert!(close("500ns".parse::<Time>().unwrap().0, 5e-7));
        assert!(
            "5".parse::<Time>().is_err() && "-5%".parse::<Share>().is_err() && "0s".parse::<Time>().is_err()
        );
        assert_eq!("0x12ab".parse::<Address>(), Ok(Address(0x12ab)));
    }
}
