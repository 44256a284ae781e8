//! `gleaner report`: one page from any records; what is on it is made by the room of that name.

use crate::console::Console;
use crate::failure::{self, Exit, Refusal};
use crate::save;
use clap::Args;
use report::{Named, Options, Unread};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Write records as one HTML page: figures with intervals, tables, and the records themselves
///
/// The page needs no network and no other file, and can be read without JavaScript. Several records
/// stand one after the other. One among them that is no sound record is named on the page, and the
/// exit code is then 1.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Write to this file ('-' for standard output) [default: the first record's name, with .html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write each figure to this directory, too, as SVG
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// Leave out names of hosts and users, and home directories, of the page and its records
    #[arg(long)]
    share: bool,

    /// Machine, profile, plan or run records ('-' for standard input)
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,
}

pub(crate) fn run(args: &ReportArgs, console: &Console) -> anyhow::Result<Exit> {
    if console.json() {
        return Err(Refusal::wrong_use("--json", "the output is an HTML page").into());
    }
    let output = args.output.clone().unwrap_or_else(|| beside(&args.records[0]));
    let to_stdout = output.as_os_str() == "-";
    if !to_stdout {
        keep_what_is_no_report(&output, args.output.is_some())?;
        save::check(&output)?;
    }
    let (records, unread) = read(&args.records)?;
    let exit = if unread.is_empty() { Exit::Done } else { Exit::Failed };
    let hidden = if args.share { own_names() } else { Vec::new() };
    let made = report::report(&records, &Options { share: args.share, hidden, unread });
    if let Some(directory) = &args.svg {
        save::directory(directory)?;
        for (name, svg) in &made.figures {
            save::bytes(&directory.join(format!("{name}.svg")), svg.as_bytes())?;
        }
    }
    if to_stdout {
        console.stdout_bytes(made.html.as_bytes())?;
        return Ok(exit);
    }
    save::bytes(&output, made.html.as_bytes())?;
    console.remark(&format!("the report is in {}: open it in a browser", output.display()));
    Ok(exit)
}

/// All that are sound, and the others with the reason. Nothing but others makes no page.
fn read(paths: &[PathBuf]) -> anyhow::Result<(Vec<Named>, Vec<Unread>)> {
    let (mut records, mut unread, mut first) = (Vec::new(), Vec::new(), None);
    for path in paths {
        let name = if path.as_os_str() == "-" { "standard input".into() } else { path.to_string_lossy() };
        match records::read_any(path) {
            Ok(record) => records.push(Named { name: name.into_owned(), record }),
            Err(error) => {
                let why = error.problem.to_string();
                unread.push(Unread { name: name.into_owned(), why });
                first.get_or_insert(error);
            }
        }
    }
    if records.is_empty() {
        return Err(first.map_or_else(|| anyhow::anyhow!("no record was named"), Into::into));
    }
    for file in &unread {
        failure::tell(&format!("{}: {}", file.name, file.why));
    }
    Ok((records, unread))
}

/// `machine.json` gives `machine.html` in the same folder; standard input `report.html` here.
fn beside(record: &Path) -> PathBuf {
    if record.as_os_str() == "-" {
        return PathBuf::from("report.html");
    }
    let mut name = record.file_stem().map_or_else(|| OsString::from("report"), OsString::from);
    name.push(".html");
    record.with_file_name(name)
}

/// Refuses to replace a file that is no report: whatever it is, it may be dear to its owner.
fn keep_what_is_no_report(output: &Path, named: bool) -> Result<(), Refusal> {
    let regular = std::fs::metadata(output).is_ok_and(|there| there.is_file() && there.len() > 0);
    if !regular || report::is_report(&save::read(output)?) {
        return Ok(());
    }
    let why = "the file is there and is no report; it is not overwritten";
    let help = if named { "remove it, or name another with -o" } else { "name another file with -o" };
    Err(Refusal::wrong_use(output.display().to_string(), why).would_help(help))
}

/// Names of this host and of this user, which a record may hold without saying what they are.
fn own_names() -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let home = std::env::home_dir();
    let home = home.and_then(|home| Some(home.file_name()?.to_string_lossy().into_owned()));
    let variables = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    variables.chain(home).chain([host]).filter(|name| !name.is_empty()).collect()
}
