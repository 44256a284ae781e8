//! `gleaner twin`: rewrites a program so that every function has a twin.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use ::twin::{Bounds, Coverage, Knowledge, Mode, Reach, Rewritten, Sites, VectorWidth, Which};
use clap::{ArgGroup, Args, ValueEnum};
use std::fmt::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Rewrite a program or library so that every function has a twin: a second copy, beside the untouched original
///
/// The result is an ordinary ELF file. What is copied without insertions is checked by 'gleaner proof' before it is kept;
/// poisoned twins and those that yield at every load, which are for tests, are not. What could not be rewritten runs as it did; it is listed with its reasons.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("mode").required(true))]
pub(crate) struct TwinArgs {
    /// An x86-64 ELF executable or shared object
    #[arg(value_name = "BINARY")]
    binary: PathBuf,

    /// Twins are copies, with nothing put in
    #[arg(long, group = "mode")]
    identity: bool,

    /// Fill whatever is claimed dead with garbage before every instruction: a test of those claims
    #[arg(long, group = "mode")]
    poison: bool,

    /// Yield before every load: a test of yields. 'all' means also those from the stack and from fixed places
    #[arg(long, group = "mode", value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "usual")]
    every_load: Option<Loads>,

    /// What the program will be in a harvest
    #[arg(long, requires = "every_load", default_value = "primary")]
    role: Role,

    /// Cycles, by static estimate, between two yields of a scavenger
    #[arg(long, requires = "every_load", value_name = "CYCLES", default_value_t = Bounds::default().quantum)]
    quantum: u32,

    /// Separate debug information of the binary, for the names in it
    #[arg(long, value_name = "FILE")]
    debug: Option<PathBuf>,

    /// Where the rewritten file goes
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Which loads are yielded at.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Loads {
    /// Those whose address is computed
    Usual,
    /// All
    All,
}

/// Who a program is in a harvest.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    /// Others run while it waits for memory
    Primary,
    /// It runs while others wait
    Scavenger,
}

pub(crate) fn run(args: &TwinArgs, console: &Console) -> anyhow::Result<Exit> {
    let refuse = |why: String| Refusal::wrong_use(args.binary.display().to_string(), why);
    let metadata = std::fs::metadata(&args.binary).map_err(|e| refuse(records::plain(&e)))?;
    if !metadata.is_file() {
        return Err(refuse("not a regular file".to_owned()).into());
    }
    if metadata.mode() & 0o6000 != 0 {
        return Err(
            refuse("setuid or setgid: a rewritten copy would run without its rights".to_owned()).into()
        );
    }
    crate::save::check(&args.output)?;
    let data = std::fs::read(&args.binary).map_err(|e| refuse(records::plain(&e)))?;
    let debug = args.debug.as_deref().map(read_debug).transpose()?;
    let reach = match args.every_load {
        Some(Loads::All) => Reach::All,
        _ => Reach::Usual,
    };
    let sites = Sites {
        which: Which::EveryLoad(reach),
        width: VectorWidth::of_this_machine(),
        knowledge: Knowledge::OfCallers,
        saves_ahead: true,
    };
    let mode = match (args.every_load, args.role) {
        (None, _) if args.poison => Mode::Poison(VectorWidth::of_this_machine()),
        (None, _) => Mode::Identity,
        (Some(_), Role::Primary) => Mode::Primary(&sites),
        (Some(_), Role::Scavenger) => {
            Mode::Scavenger(&sites, Bounds { quantum: args.quantum, ..Bounds::default() })
        }
    };
    let Rewritten { bytes, coverage } =
        ::twin::rewrite(&data, debug.as_deref(), mode).map_err(|e| refuse(e.to_string()))?;
    if mode == Mode::Identity {
        prove(&args.binary, &data, &bytes)?;
    }
    write(&args.output, &bytes, metadata.mode())?;
    if console.json() {
        console.stdout(&format!("{:#}\n", serde_json::to_value(&coverage)?))?;
    } else {
        console.text(&table(&coverage))?;
    }
    Ok(Exit::Done)
}

/// A rewrite that the independent checker does not accept is not used.
fn prove(binary: &Path, original: &[u8], rewritten: &[u8]) -> Result<(), Refusal> {
    ::proof::check(original, rewritten).map(|_| ()).map_err(|why| {
        Refusal::failed(
            binary.display().to_string(),
            format!("the rewrite was not proven, and not kept: {why}"),
        )
        .would_help("please report this program as a fault of Gleaner")
    })
}

fn read_debug(path: &Path) -> Result<Vec<u8>, Refusal> {
    std::fs::read(path).map_err(|e| Refusal::wrong_use(path.display().to_string(), records::plain(&e)))
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refusal> {
    let failed =
        |e: &std::io::Error| Refusal::failed(format!("cannot write {}", path.display()), records::plain(e));
    records::write_bytes_atomically(path, bytes).map_err(|e| failed(&e.why))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o777)).map_err(|e| failed(&e))
}

fn table(coverage: &Coverage) -> String {
    let mut text = String::new();
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let c = coverage;
    let _ = writeln!(
        text,
        "functions     {} of {} twinned ({:.2}%), {} entries lead to their twins",
        c.functions_twinned,
        c.functions_with_unwind_entry,
        share(c.functions_twinned, c.functions_with_unwind_entry),
        c.entries_patched,
    );
    let _ = writeln!(
        text,
        "instructions  {} of {} ({:.2}%)",
        c.instructions_twinned,
        c.instructions_known,
        share(c.instructions_twinned, c.instructions_known),
    );
    let _ = writeln!(text, "jump tables   {} of {} indirect jumps", c.jump_tables, c.indirect_jumps);
    let _ = writeln!(text, "bytes         {} became {}", c.bytes_before, c.bytes_after);
    for (reason, count) in &c.refusals {
        let _ = writeln!(text, "no twin       {count:>7}  {reason}");
    }
    for (reason, count) in &c.entries_kept {
        let _ = writeln!(text, "entry kept    {count:>7}  {reason}");
    }
    if let Some(harvest) = &c.harvest {
        let _ = writeln!(text, "yields        {} sites, {} bounds", harvest.sites, harvest.bounds);
        let _ = writeln!(
            text,
            "going home    {} leaves, {} return checks",
            harvest.leaves, harvest.return_checks
        );
        let through = harvest.thread_local;
        let _ = writeln!(
            text,
            "thread-local  {through} by way of contexts, {} at home",
            harvest.thread_local_left
        );
        for (reason, count) in &harvest.left_out {
            let _ = writeln!(text, "no yield      {count:>7}  {reason}");
        }
    }
    let seconds = c.phases.iter().map(|phase| phase.nanos).sum::<u64>() as f64 / 1e9;
    let _ = writeln!(text, "time          {seconds:.2} s");
    text
}
