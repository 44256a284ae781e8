//! `gleaner sites`: where samples of each load of a file land, as a table.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save;
use clap::Args;
use export::sites::Site;
use insight::Landing;
use sampler::stored::sites::{SitesOf, sites};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Write where samples of each load of a program land: a table to join stored samples with
///
/// A sample of time lands on the instruction behind the load that the core waits for. The table has
/// a row for each instruction at which a sample means that, by build ID, file offset and address:
/// with it, a database that keeps samples by build ID and address tells the loads that a fleet
/// waits for, without the programs. It is the same for the same file, wherever it is made; tables
/// of several files are put together by putting their rows together.
#[derive(Debug, Args)]
pub(crate) struct SitesArgs {
    /// Write to this file, by its ending .parquet, .csv or .json; or into this directory, as
    /// ID.parquet for each file's build ID, unless that is there already [default: CSV to standard
    /// output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Look for separate debug information in this directory first; may be given several times
    #[arg(long, value_name = "DIR")]
    binaries: Vec<PathBuf>,

    /// Programs and libraries (ELF files)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Parquet,
    Csv,
    Json,
}

pub(crate) fn run(args: &SitesArgs, console: &Console) -> anyhow::Result<Exit> {
    let output = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(directory) = output.filter(|path| path.is_dir()) {
        return into_directory(args, directory, console);
    }
    let form = match output {
        Some(path) => form_of(path)?,
        None if console.json() => Form::Json,
        None => Form::Csv,
    };
    if let Some(path) = output {
        save::check(path)?;
    }
    let mut rows = Vec::new();
    for file in &args.files {
        rows.extend(rows_of(file, args)?.1);
    }
    let bytes = written(form, &rows)?;
    match output {
        Some(path) => {
            save::bytes(path, &bytes)?;
            console.remark(&format!(
                "wrote {}: {} rows, {}",
                path.display(),
                rows.len(),
                units::Bytes(bytes.len() as u64)
            ));
        }
        None => console.stdout_bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

/// A file each, by what names it: one that is there already is the same.
fn into_directory(args: &SitesArgs, directory: &Path, console: &Console) -> anyhow::Result<Exit> {
    for file in &args.files {
        let (of, rows) = rows_of(file, args)?;
        // Go's build IDs have slashes.
        let name = of.build_id.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_");
        let path = directory.join(format!("{name}.parquet"));
        if path.exists() {
            console.remark(&format!("{} is there already: {}", path.display(), of.file));
            continue;
        }
        save::bytes(&path, &written(Form::Parquet, &rows)?)?;
        console.remark(&format!("wrote {}: {} rows of {}", path.display(), rows.len(), of.file));
    }
    Ok(Exit::Done)
}

fn form_of(path: &Path) -> Result<Form, Refusal> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("parquet") => Ok(Form::Parquet),
        Some("csv") => Ok(Form::Csv),
        Some("json") => Ok(Form::Json),
        _ => {
            let what = format!("-o {}", path.display());
            Err(Refusal::wrong_use(what, "its name ends in none of .parquet, .csv and .json"))
        }
    }
}

fn rows_of(file: &Path, args: &SitesArgs) -> Result<(SitesOf, Vec<Site>), Refusal> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut rows = Vec::new();
    let mut names: Option<(Arc<str>, Arc<str>)> = None;
    let mut add = |of: &SitesOf, landing: Landing| {
        let names = names.get_or_insert_with(|| (of.build_id.as_str().into(), of.file.as_str().into()));
        rows.push(row(names, landing));
    };
    let of = crate::threads::shared(|| sites(file, &args.binaries, home.as_deref(), &mut add))
        .map_err(|e| Refusal::wrong_use(file.display().to_string(), e.to_string()))?;
    Ok((of, rows))
}

fn row((build_id, file): &(Arc<str>, Arc<str>), landing: Landing) -> Site {
    let (from, to) = landing.offsets;
    let load = landing.waits_for;
    Site {
        build_id: Arc::clone(build_id),
        file: Arc::clone(file),
        from_offset: from.0,
        to_offset: to.0,
        from_address: landing.address.0,
        to_address: landing.address.0 + (to.0 - from.0),
        load_offset: load.offset.0,
        load_address: load.address.0,
        kind: if load.is_store { "store" } else { "load" },
        pattern: load.pattern.word(),
        function: load.function,
        source: load.file,
        line: load.line,
    }
}

fn written(form: Form, rows: &[Site]) -> anyhow::Result<Vec<u8>> {
    match form {
        Form::Csv => Ok(export::sites::csv(rows).into_bytes()),
        Form::Json => Ok(export::sites::json(rows).into_bytes()),
        #[cfg(feature = "parquet")]
        Form::Parquet => Ok(export::sites::parquet(rows)?),
        #[cfg(not(feature = "parquet"))]
        Form::Parquet => {
            let why = "this gleaner was built without Parquet";
            let help = "packages have it, and so has a build with '--features parquet'; a name that ends in .csv has the same rows";
            Err(Refusal::not_possible_here("-o", why).would_help(help).into())
        }
    }
}
