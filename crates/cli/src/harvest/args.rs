//! The command line of `gleaner harvest`.

use ::harvest::find::linked::Wanted;
use ::harvest::machine_prices::Costs;
use ::harvest::plan::{Asked, Choice, MAX_ABSENCE_SECONDS, MAX_SLOWDOWN, Wishes};
use ::harvest::session::{self, Commands, Homes, Participants, PlanSource, Request, SessionError};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use records::host::CpuList;
use records::plan::Part;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Run a program, and other programs in its memory stalls
///
/// No file is changed: rewritten copies run in place of the programs. Before a load that may miss,
/// a copy prefetches the line and switches to another program. The primary's standard streams, its
/// signals and its exit code are as if it ran alone; a summary follows on standard error (-q leaves
/// it out). If the harvest cannot start, Gleaner prints the reason on standard error and exits with
/// 2 or 3; the primary is then not run. Scavengers run in the primary's address space: each of them
/// can read and write the primary's memory, so run only programs that you trust as much as the
/// primary. Scavengers are killed when the primary ends.
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command line")]
#[derive(Debug, Args)]
pub(crate) struct HarvestArgs {
    /// A program to run in the primary's stalls, with its arguments, quoted as for a shell; may be
    /// given several times
    #[arg(long = "scavenger", value_name = "CMD")]
    scavenger: Vec<OsString>,

    /// Several copies of one scavenger: '12 x CMD'; at most 64 in all
    #[arg(long = "scavengers", value_name = "N x CMD", value_parser = OsStringValueParser::new().try_map(Copies::of))]
    scavengers: Vec<Copies>,

    /// Where the scavengers' output goes: a file for all of them, or a directory (an existing one,
    /// or a name that ends in '/') with a file for each; without this option it is discarded
    #[arg(long, value_name = "PATH")]
    scavenger_out: Option<PathBuf>,

    /// Most scavengers that share one thread of the primary at once (its guests) [default: as many
    /// as can run while one miss is served]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    ring: Option<u32>,

    /// CPUs for scavengers while they are off the primary, as 0-3,8 [default: the primary's]
    ///
    /// A scavenger is off the primary for system calls, in libraries that are not rewritten, and
    /// whenever the primary's rings are full. Scavengers off the primary run under SCHED_IDLE.
    #[arg(long, value_name = "CPUS", value_parser = home_cpus)]
    home_cpus: Option<CpuList>,

    /// Keep scavengers in the primary's stalls even where a CPU is idle and they would run faster
    /// there, and where a profile says that stalls are not worth it; for measuring what stalls are
    /// worth, or to leave idle CPUs to others
    #[arg(long)]
    stay_aboard: bool,

    /// How much slower the primary may become: the rate of its yields with guests, against the rate
    /// without, measured while it runs
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    max_slowdown: Share,

    /// How long the primary may be off its thread each time it yields: a target, not a hard limit;
    /// a guest that repeatedly runs longer is sent back to its own thread for a while
    #[arg(long, value_name = "TIME", default_value = "10us")]
    max_absence: Time,

    /// Costs of misses and yields on this machine, as 'gleaner measure -o FILE' writes them
    /// [default: the record that 'gleaner measure' leaves in the user's cache directory; without
    /// one, what plans need is measured in two seconds, once]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,

    /// Assume the costs of a common machine, rather than using or measuring those of this one
    #[arg(long, conflicts_with = "machine")]
    assume_costs: bool,

    /// Choose sites by what 'gleaner profile -o FILE' saw these programs wait for; may be given
    /// several times, for the primary and for scavengers
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    profile: Vec<PathBuf>,

    /// Use a plan made by --dry-run --record FILE instead of making one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["choose", "least_gain", "most_sites", "exclude", "no_coalescing", "without", "ring", "max_slowdown", "max_absence", "machine", "library_time", "program_time"])]
    plan: Option<PathBuf>,

    /// Make the plan, explain it, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Write the run record to this file; with --dry-run, the plan
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Show a status line on the terminal: how many guests are aboard, and how much they slow the
    /// primary down
    #[arg(long)]
    pub(super) live: bool,

    /// Sample the primary while guests are aboard, and say where the time of a turn goes: waiting,
    /// computing and yielding, of the primary and of its guests
    #[arg(long)]
    pub(super) explain_turns: bool,

    /// Ignore the cache of analysed and rewritten programs, and do not write to it
    #[arg(long)]
    no_cache: bool,

    /// Parked: threads of the primary as each other's guests
    #[arg(long, hide = true)]
    pub(super) siblings: bool,

    /// Parked: several programs in each other's stalls, none of them before the others
    #[arg(long, hide = true)]
    pub(super) together: bool,

    /// Parked: guests where the primary busy-waits, which this left out
    #[arg(long, hide = true)]
    pub(super) no_spins: bool,

    /// Shared libraries to rewrite too: names, as libz or libz.so.1, separated by commas, 'all' or
    /// 'none' [default: all libraries of scavengers, none of the primary]
    #[arg(long, value_name = "NAMES", value_parser = libraries)]
    libraries: Option<Wanted>,

    /// How long rewriting the scavengers' libraries may delay the start; those that are left run as
    /// they are, and further launches go on with them. libc's and the C++ library are always ready;
    /// --dry-run and --libraries take the time for all
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::times::time)]
    library_time: Duration,

    /// How long rewriting one program may delay the start, without its libraries: one that would
    /// take longer, by its size, runs as it is. --dry-run, --no-cache and --stay-aboard take the
    /// time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::times::time)]
    program_time: Duration,

    /// Which loads become yield sites
    #[arg(long, value_enum, default_value_t = Chosen::Paying, help_heading = "Choosing sites")]
    choose: Chosen,

    /// Choose a site only if its expected gain is more than this number of cycles per execution
    #[arg(
        long,
        value_name = "CYCLES",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        value_parser = cycles,
        help_heading = "Choosing sites"
    )]
    least_gain: f64,

    /// Choose at most this many sites of each file: those in the deepest loops
    #[arg(long, value_name = "N", help_heading = "Choosing sites")]
    most_sites: Option<usize>,

    /// Do not choose the load at this address of the file, as --dry-run prints it; may be given
    /// several times
    #[arg(long, value_name = "ADDRESS", help_heading = "Choosing sites")]
    exclude: Vec<Address>,

    /// Give each load its own yield; by default one yield prefetches for several neighbouring loads
    #[arg(long, help_heading = "Choosing sites")]
    no_coalescing: bool,

    /// Leave out one optimisation or bound, to measure what it gains; may be given several times
    #[arg(long, value_enum, value_name = "PART", help_heading = "Choosing sites")]
    without: Vec<Without>,

    /// The program whose latency matters, with its arguments
    #[arg(value_name = "PRIMARY", required = true, trailing_var_arg = true)]
    primary: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Chosen {
    /// Loads whose yield is expected to gain more than it costs
    Paying,
    /// Of those, pointer chases only: the address comes from the same load, one iteration earlier
    Chases,
    /// Every load in a loop
    EveryLoad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Without {
    /// Scavengers yield at their sites only; they may exceed --max-absence
    Bounds,
    /// Each yield saves all registers, not only those that are live
    LiveRegisters,
    /// Registers that a loop does not change are saved at each of its yields, not once before it
    #[value(alias = "saving-ahead")]
    HoistedSaves,
    /// Registers that a scavenger's loop does not use are loaded at each yield, not once behind it
    #[value(alias = "left-in-slots")]
    SunkRestores,
    /// Registers whose slots hold them are not saved again to balance a yield's loads and stores
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
    /// The programs of this command line, found.
    pub(super) fn participants(&self) -> Result<Participants, SessionError> {
        let once = self.scavenger.iter().map(|command| session::Copies { count: 1, command });
        let several = self.scavengers.iter().map(Copies::borrowed);
        let scavengers: Vec<session::Copies<'_>> = once.chain(several).collect();
        Participants::find(&Commands {
            primary: &self.primary,
            scavengers: &scavengers,
            output: self.scavenger_out.as_deref(),
        })
    }

    /// What is asked of the preparation for these programs.
    pub(super) fn request(&self, participants: &Participants) -> Request {
        let plan = match &self.plan {
            Some(path) => PlanSource::Given(path.clone()),
            None => PlanSource::Made {
                wishes: self.wishes(participants),
                costs: self.costs(),
                profiles: self.profile.clone(),
            },
        };
        let libraries = self.libraries.clone().unwrap_or_default();
        Request {
            plan,
            libraries,
            library_time: self.library_time,
            program_time: self.program_time,
            use_cache: !self.no_cache,
            dry_run: self.dry_run,
            decide: !self.stay_aboard && !self.no_cache && !participants.scavengers.is_empty(),
        }
    }

    fn wishes(&self, participants: &Participants) -> Wishes {
        Wishes {
            choice: self.choose.into(),
            coalesce: !self.no_coalescing,
            least_gain: self.least_gain,
            most_sites: self.most_sites,
            excluded: self.exclude.iter().map(|address| address.0).collect(),
            explained: self.dry_run,
            without: self.left_out(),
            asked: Asked {
                scavengers: participants.guests().count() as u32,
                ring: self.ring,
                max_slowdown: self.max_slowdown.0,
                max_absence_seconds: self.max_absence.0,
            },
        }
    }

    /// Where the plan's costs come from.
    fn costs(&self) -> Costs {
        match &self.machine {
            Some(path) => Costs::Of(path.clone()),
            None if self.assume_costs => Costs::Assumed,
            None => Costs::Usual,
        }
    }

    pub(super) fn homes(&self) -> Homes {
        let cpus = self.home_cpus.as_ref().map(|cpus| cpus.iter().collect());
        Homes { cpus, stay_aboard: self.stay_aboard }
    }

    /// What is left out of the harvest, each once.
    fn left_out(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.without.iter().copied().map(Part::from).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

fn libraries(text: &str) -> Result<Wanted, String> {
    Wanted::of(text)
        .ok_or_else(|| "not the name of a library; write for example libz,libxml2 or all".to_owned())
}

fn home_cpus(text: &str) -> Result<CpuList, String> {
    let cpus: CpuList = text.parse().map_err(|why: records::host::ParseCpuListError| why.to_string())?;
    let first = cpus.iter().next();
    first
        .map(|_| cpus)
        .ok_or_else(|| "not a list of CPUs; write for example 0-3,8, or leave out the option".to_owned())
}

fn cycles(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("'{text}' is not a number of cycles; write for example 20")),
    }
}

/// `12 x CMD`.
#[derive(Clone, Debug)]
struct Copies {
    count: u64,
    command: OsString,
}

impl Copies {
    fn borrowed(&self) -> session::Copies<'_> {
        session::Copies { count: self.count, command: &self.command }
    }

    #[expect(clippy::needless_pass_by_value, reason = "so parsers of arguments are called")]
    fn of(words: OsString) -> Result<Self, String> {
        let wrong = || format!("'{}' is not '12 x CMD'", words.display());
        let text = words.as_bytes();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, command) = text.split_at(digits);
        // More than can be counted is more than there can be.
        let number = std::str::from_utf8(number).ok().filter(|number| !number.is_empty());
        let count = number.map(|number| number.parse().unwrap_or(u64::MAX));
        let command = command.trim_ascii_start().strip_prefix(b"x").ok_or_else(wrong)?.trim_ascii();
        match count {
            Some(count @ 1..) if !command.is_empty() => {
                Ok(Self { count, command: OsStr::from_bytes(command).to_owned() })
            }
            _ => Err(wrong()),
        }
    }
}

/// `5%` or `0.05`. Without the sign, 1 and more are refused: `5` would mean 500 %.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share(f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a share; write for example 5% or 0.05");
        let percent = text.strip_suffix('%');
        let number: f64 = percent.unwrap_or(text).trim().parse().map_err(|_| wrong())?;
        if percent.is_none() && (1.0..f64::INFINITY).contains(&number) {
            return Err(format!("'{text}' could be {text}% or {}%; write {text}%", 100.0 * number));
        }
        let share = if percent.is_some() { number / 100.0 } else { number };
        if share > *MAX_SLOWDOWN.end() {
            return Err(format!("'{text}' is more than {}%", 100.0 * MAX_SLOWDOWN.end()));
        }
        if MAX_SLOWDOWN.contains(&share) { Ok(Self(share)) } else { Err(wrong()) }
    }
}

/// `500ns`, `10us`, `1ms`, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Time(f64);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a time; write for example 500ns, 10us or 1ms");
        let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        let (number, scale) = units
            .into_iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
            .ok_or_else(wrong)?;
        let seconds = number.trim().parse::<f64>().map_err(|_| wrong())? * scale;
        if seconds > 0.0 && seconds < *MAX_ABSENCE_SECONDS.start() {
            return Err(format!("'{text}' is less than a nanosecond"));
        }
        if seconds > *MAX_ABSENCE_SECONDS.end() {
            return Err(format!("'{text}' is more than {}s", MAX_ABSENCE_SECONDS.end()));
        }
        if MAX_ABSENCE_SECONDS.contains(&seconds) { Ok(Self(seconds)) } else { Err(wrong()) }
    }
}

/// `0x1234`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address(u64);

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
        assert_eq!(of("99999999999999999999 x a"), Ok((u64::MAX, "a".into())));
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
        assert!("0".parse::<Share>().is_ok() && "0.999".parse::<Share>().is_ok());
        assert!(close("500%".parse::<Share>().unwrap().0, 5.0));
        let refused = "'5' could be 5% or 500%; write 5%";
        assert_eq!("5".parse::<Share>(), Err(refused.to_owned()));
        for ambiguous in ["1", "1.5", "100", "1e308%", "inf", "nan", "-0.1", ""] {
            assert!(ambiguous.parse::<Share>().is_err(), "{ambiguous}");
        }
        for extreme in ["1e-300s", "0.5ns", "1e300s", "infs", "nanus", "-1s"] {
            assert!(extreme.parse::<Time>().is_err(), "{extreme}");
        }
        assert!("1ns".parse::<Time>().is_ok() && "1000000s".parse::<Time>().is_ok());
        assert!(close("10us".parse::<Time>().unwrap().0, 1e-5));
        assert!(close("500ns".parse::<Time>().unwrap().0, 5e-7));
        assert!(
            "5".parse::<Time>().is_err() && "-5%".parse::<Share>().is_err() && "0s".parse::<Time>().is_err()
        );
        assert_eq!("0x12ab".parse::<Address>(), Ok(Address(0x12ab)));
    }
}
