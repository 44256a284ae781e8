//! `gleaner generate`: man pages and shell completions, made from the definition of the command line.
//!
//! For packagers, and for the test that keeps the committed ones current.

use crate::failure::{Exit, Refusal};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Write man pages or shell completions into a directory
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct GenerateArgs {
    what: What,
    #[arg(value_name = "DIR")]
    into: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Man,
    Completions,
}

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Exit> {
    let command = crate::Cli::command().disable_help_subcommand(true);
    let files = match args.what {
        What::Man => man(command)?,
        What::Completions => completions(command),
    };
    for (name, bytes) in files {
        write(&args.into.join(name), &bytes)?;
    }
    Ok(Exit::Done)
}

type Files = Vec<(String, Vec<u8>)>;

/// `gleaner.1`, and a page for each verb.
fn man(mut command: clap::Command) -> anyhow::Result<Files> {
    command.build();
    let mut files = vec![page(&command)?];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        files.push(page(verb)?);
    }
    Ok(files)
}

fn page(command: &clap::Command) -> anyhow::Result<(String, Vec<u8>)> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let version = concat!("gleaner ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command.clone()).source(version).manual("Gleaner");
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    Ok((format!("{name}.1"), bytes))
}

fn completions(mut command: clap::Command) -> Files {
    let shells = [(Shell::Bash, "gleaner.bash"), (Shell::Zsh, "_gleaner"), (Shell::Fish, "gleaner.fish")];
    shells
        .into_iter()
        .map(|(shell, name)| {
            let mut bytes = Vec::new();
            clap_complete::generate(shell, &mut command, "gleaner", &mut bytes);
            (name.to_owned(), bytes)
        })
        .collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    records::write_bytes_atomically(path, bytes)
        .map_err(|e| Refusal::failed(format!("cannot write {}", e.path.display()), records::plain(&e.why)))
}
