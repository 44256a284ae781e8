//! `gleaner twin`: rewrites one file so that every function has a twin.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use ::harvest::rewrite::{self, NotPlanned, TwinsError};
use ::twin::report::Phase;
use ::twin::{Ahead, Bounds, Coverage, LoadReach, Mode, Rewritten, VectorWidth};
use clap::{ArgGroup, Args, ValueEnum};
use records::plan::Plan;
use std::fmt::Write;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Rewrite a program or library so that every function has a twin: a second copy, beside the
/// untouched original
///
/// The result is an ordinary ELF file. It is checked by 'gleaner proof' before it is kept.
/// Functions that cannot be rewritten run unchanged and are listed with the reason.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("mode").required(true))]
pub(crate) struct TwinArgs {
    /// An x86-64 ELF executable or shared object
    #[arg(value_name = "BINARY")]
    binary: PathBuf,

    /// Twins are plain copies, without yields
    #[arg(long, group = "mode")]
    identity: bool,

    /// Before every instruction, fill registers and flags that are dead with garbage, to test the
    /// liveness analysis
    #[arg(long, group = "mode")]
    poison: bool,

    /// Prefetch this number of bytes ahead of the load at this address, in the file; functions
    /// without such a load have no twin
    #[arg(long, group = "mode", value_name = "ADDRESS:BYTES", value_delimiter = ',', value_parser = ahead, allow_hyphen_values = true)]
    prefetch: Vec<(u64, i32)>,

    /// Prefetch ahead of every load that can be, this many steps of its index or cache lines, to
    /// test prefetches
    #[arg(long, group = "mode", value_name = "STEPS", num_args = 0..=1, require_equals = true, default_missing_value = "16", allow_hyphen_values = true)]
    prefetch_all: Option<i16>,

    /// Yield before every load, to test yields; 'all' includes loads from the stack and from fixed
    /// addresses
    #[arg(long, group = "mode", value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "usual")]
    every_load: Option<Loads>,

    /// Yield at the sites of this plan, which must be for this file (same build id)
    #[arg(long, group = "mode", value_name = "FILE")]
    plan: Option<PathBuf>,

    /// The program's role in a harvest [default: as the plan says; without a plan, primary]
    #[arg(long, conflicts_with_all = ["identity", "poison", "prefetch", "prefetch_all"])]
    role: Option<Role>,

    /// Cycles between two yields of a scavenger, by static estimate
    #[arg(long, requires = "every_load", value_name = "CYCLES", default_value_t = Bounds::default().quantum)]
    quantum: u32,

    /// Separate debug information of the binary, for its symbols
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    debug: Option<PathBuf>,

    /// Write the rewritten file here
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Which loads are yielded at.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Loads {
    /// Loads whose address is computed
    Usual,
    /// All loads
    All,
}

/// What a program is in a harvest.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    /// Other programs run in its memory stalls
    Primary,
    /// It runs in the memory stalls of another program
    Scavenger,
}

impl Role {
    fn in_plans(self) -> records::plan::Role {
        match self {
            Self::Primary => records::plan::Role::Primary,
            Self::Scavenger => records::plan::Role::Scavenger,
        }
    }
}

pub(crate) fn run(args: &TwinArgs, console: &Console) -> anyhow::Result<Exit> {
    let refuse = |why: String| Refusal::wrong_use(args.binary.display().to_string(), why);
    let metadata = std::fs::metadata(&args.binary).map_err(|e| refuse(records::plain(&e)))?;
    if !metadata.is_file() {
        return Err(refuse("not a regular file".to_owned()).into());
    }
    if metadata.mode() & 0o6000 != 0 {
        return Err(refuse(
            "setuid or setgid: a rewritten copy would run without these privileges".to_owned(),
        )
        .into());
    }
    if args.output.as_os_str() == "-" {
        return Err(Refusal::wrong_use(
            "-o -",
            "a rewritten file cannot go to standard output; give it a name",
        )
        .into());
    }
    crate::save::check(&args.output)?;
    if is_same_file(&metadata, &args.output) {
        return Err(refuse("the output would overwrite the original".to_owned()).into());
    }
    let data = std::fs::read(&args.binary).map_err(|e| refuse(records::plain(&e)))?;
    let Rewritten { bytes, coverage } = match &args.plan {
        Some(plan) => by_plan(args, plan, &data, console)?,
        None => by_mode(args, &data, console)?,
    };
    crate::save::program(&args.output, &bytes, metadata.mode())?;
    if console.json() {
        console.value(&serde_json::to_value(&coverage)?)?;
    } else if !console.quiet() {
        console.text(&table(&coverage))?;
    }
    Ok(Exit::Done)
}

/// Rewrites in one of the modes that need no plan.
fn by_mode(args: &TwinArgs, data: &[u8], console: &Console) -> Result<Rewritten, Refusal> {
    let debug = args.debug.as_deref().map(crate::save::read).transpose()?;
    if let Some(loads) = args.every_load {
        let reach = match loads {
            Loads::All => LoadReach::All,
            Loads::Usual => LoadReach::Usual,
        };
        let role = args.role.map_or(records::plan::Role::Primary, Role::in_plans);
        let planned = rewrite::every_load(&args.binary, data, debug.as_deref(), reach, role, args.quantum)
            .map_err(|e| refusal(args, e))?;
        if let Some(remark) = planned.remark() {
            console.remark(&remark);
        }
        return Ok(planned.rewritten);
    }
    let prefetches = match args.prefetch_all {
        Some(ahead) => ::twin::everywhere(data, i32::from(ahead))
            .map_err(|why| Refusal::wrong_use(args.binary.display().to_string(), why.to_string()))?,
        None => args.prefetch.iter().map(|&(load, ahead)| (load, vec![Ahead::Bytes(ahead)])).collect(),
    };
    let mode = if args.poison {
        Mode::Poison(VectorWidth::of_this_machine())
    } else if args.identity {
        Mode::Identity
    } else {
        Mode::Prefetch(&prefetches)
    };
    rewrite::in_mode(&args.binary, data, debug.as_deref(), mode).map_err(|e| refusal(args, e))
}

/// `0x1520:4096`: a load's address, and how far ahead of it.
fn ahead(text: &str) -> Result<(u64, i32), String> {
    let wrong = || "an address and a number of bytes, as 0x1520:4096".to_owned();
    let (address, bytes) = text.split_once(':').ok_or_else(wrong)?;
    let address = match address.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => address.parse(),
    };
    Ok((address.map_err(|_| wrong())?, bytes.parse().map_err(|_| wrong())?))
}

/// Why a file was not made.
fn refusal(args: &TwinArgs, error: TwinsError) -> Refusal {
    let binary = args.binary.display().to_string();
    match error {
        TwinsError::Refused { why, .. } => Refusal::wrong_use(binary, why),
        TwinsError::Unproven { why, .. } => {
            Refusal::failed(binary, format!("the rewritten file failed the proof and was not kept: {why}"))
                .would_help("this is a bug in Gleaner; please report it")
        }
        error => Refusal::failed(binary, error.to_string()),
    }
}

/// Rewrites as a plan says, if it is for this file.
fn by_plan(args: &TwinArgs, path: &Path, data: &[u8], console: &Console) -> anyhow::Result<Rewritten> {
    let plan = records::read::<Plan>(path)?.body;
    let refuse = |why: String| Refusal::wrong_use(args.binary.display().to_string(), why);
    let role = args.role.map(Role::in_plans);
    let module = rewrite::planned_for(&plan, data, role).map_err(|e| match e {
        NotPlanned::Roles => refuse(e.to_string()).would_help("--role does"),
        NotPlanned::Impossible(why) => Refusal::wrong_use(path.display().to_string(), why.to_string()),
        _ => refuse(e.to_string()),
    })?;
    let planned = rewrite::rewrite(&plan, module, data).map_err(|e| refusal(args, e))?;
    for (at, why) in &planned.dropped {
        console.remark(&format!("site {at:#x} is left out: {why}"));
    }
    if let Some(remark) = planned.remark() {
        console.remark(&remark);
    }
    Ok(planned.rewritten)
}

fn is_same_file(input: &Metadata, output: &Path) -> bool {
    let file = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    std::fs::metadata(output).is_ok_and(|output| file(&output) == file(input))
}

fn table(coverage: &Coverage) -> String {
    let mut text = String::new();
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let c = coverage;
    let _ = writeln!(
        text,
        "functions     {} of {} have twins ({:.2}%), {} entries jump to their twins",
        c.functions_twinned,
        c.functions,
        share(c.functions_twinned, c.functions),
        c.entries_patched,
    );
    let _ = writeln!(
        text,
        "instructions  {} of {} have twins ({:.2}%)",
        c.instructions_twinned,
        c.instructions_known,
        share(c.instructions_twinned, c.instructions_known),
    );
    let _ =
        writeln!(text, "jump tables   known for {} of {} indirect jumps", c.jump_tables, c.indirect_jumps);
    let added = c.bytes_after.saturating_sub(c.bytes_before);
    let _ = writeln!(text, "size          {} bytes, was {}: {added} added", c.bytes_after, c.bytes_before);
    if c.needs_linux_5_18 {
        let _ = writeln!(
            text,
            "runs on       Linux 5.18 and later only, because of the size of its zeroed memory (.bss)"
        );
    }
    for (reason, count) in &c.refusals {
        let _ = writeln!(text, "no twin       {count:>7}  {reason}");
    }
    for (reason, count) in &c.entries_kept {
        let _ = writeln!(text, "entry kept    {count:>7}  {reason}");
    }
    if let Some(harvest) = &c.harvest {
        let _ = writeln!(text, "yields        {} at sites, {} at bounds", harvest.sites, harvest.bounds);
        let _ = writeln!(
            text,
            "going home    {} leaves, {} return checks",
            harvest.leaves, harvest.return_checks
        );
        let through = harvest.thread_local;
        let _ = writeln!(
            text,
            "thread-local  {through} accesses through contexts, {} at home",
            harvest.thread_local_left
        );
        for (reason, count) in &harvest.left_out {
            let _ = writeln!(text, "no yield      {count:>7}  {reason}");
        }
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let whole = seconds(c.phases.iter().map(|phase| phase.nanos).sum());
    let phase = |phase: &Phase| format!("{} {:.3}", phase.name, seconds(phase.nanos));
    let phases: Vec<String> = c.phases.iter().map(phase).collect();
    let _ = writeln!(text, "time          {whole:.3} s: {}", phases.join(", "));
    text
}
