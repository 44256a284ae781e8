//! `gleaner run`: starts a program as its recipe says.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use clap::Args;
use records::Document;
use records::recipe::{Recipe, Setting};
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use store::recipes::{self, Kept};
use trials::Program;

/// Run a program faster, by the recipe that gleaner speed has kept for it
///
/// Becomes the program at once, with its arguments, streams and exit code. Where there is no recipe
/// for this build of it, or one of its files is of another build now, it runs as it is; so do
/// programs with more rights than their user (setuid).
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Take the recipe from this file, and not the one that is kept
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,

    /// The program, with its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &RunArgs, console: &Console) -> anyhow::Result<Exit> {
    let program = Program::of(args.command.clone());
    let kept = match &args.recipe {
        Some(path) => Some(from_file(path, &program)?),
        None => kept_for(&program, console),
    };
    let start = kept.map(|(settings, directory)| trials::start(&settings, &directory, &program));
    let why = program.command(&start.unwrap_or_default()).exec();
    let name = records::text_of(Path::new(&args.command[0]));
    Err(Refusal::wrong_use(name, records::plain(&why)).into())
}

type Ready = (Vec<Setting>, PathBuf);

/// The recipe that is kept for this build; a remark where it is of another one.
fn kept_for(program: &Program, console: &Console) -> Option<Ready> {
    let file = program.file()?;
    let built = trials::built(&file.canonicalize().ok()?).ok()?;
    if has_more_rights(&file) {
        return None;
    }
    let Some(Kept { directory, document }) = recipes::find(&built.build) else {
        if recipes::build_at(&built.path).is_some() {
            console.remark(&format!(
                "{} was built anew since its recipe was made: it runs as it is; gleaner speed makes a new one",
                built.path
            ));
        }
        return None;
    };
    let mut recipe = document.body;
    recipe.is_at(&built.path);
    match unfit(&recipe) {
        None => Some((recipe.settings, directory)).filter(|(settings, _)| !settings.is_empty()),
        Some(other) => {
            console.remark(&format!(
                "{other} was built anew since the recipe was made: the program runs as it is; gleaner speed makes a \
                 new one"
            ));
            None
        }
    }
}

/// A recipe of a file: what it needs is made at its first use.
fn from_file(path: &Path, program: &Program) -> anyhow::Result<Ready> {
    let mut document: Document<Recipe> = records::read(path)?;
    let shown = path.display().to_string();
    let own = program.file().and_then(|file| file.canonicalize().ok());
    let built = own.and_then(|file| trials::built(&file).ok());
    let own_build = &document.body.program.file;
    let Some(built) = built.filter(|built| built.build == own_build.build) else {
        let why = format!("it is a recipe for another build than this one, of {}", own_build.path);
        return Err(Refusal::wrong_use(shown, why).into());
    };
    document.body.is_at(&built.path);
    let recipe = &document.body;
    if let Some(other) = unfit(recipe) {
        return Err(Refusal::wrong_use(shown, format!("it is for another build of {other}")).into());
    }
    if recipe.settings.is_empty() {
        return Ok((Vec::new(), PathBuf::new()));
    }
    let directory = recipes::beside(&document, &|directory| trials::write(&recipe.settings, directory))
        .map_err(|why| Refusal::failed(shown, why))?;
    Ok((recipe.settings.clone(), directory))
}

/// A file of the recipe that is of another build now.
fn unfit(recipe: &Recipe) -> Option<&str> {
    recipe.files.iter().find(|file| !trials::is_as_built(file)).map(|file| &*file.path)
}

/// The loader does not look at the environment of such a program, and its file is not copied.
fn has_more_rights(file: &Path) -> bool {
    const SET_USER_OR_GROUP: u32 = 0o6000;
    file.metadata().is_ok_and(|about| {
        let mode = about.permissions().mode();
        mode & SET_USER_OR_GROUP != 0
            && (about.uid() != rustix::process::geteuid().as_raw() || mode & 0o2000 != 0)
    })
}
