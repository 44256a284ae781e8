//! `gleaner help`: the help that `--help` gives, as git and perf have it.

use crate::Cli;
use crate::console::Console;
use crate::failure::Exit;
use crate::{plain, usage};
use clap::{Args, Parser};

/// Show this help, or the help of a verb
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// One of the verbs
    #[arg(value_name = "VERB")]
    verb: Option<String>,
}

pub(crate) fn run(args: &HelpArgs, console: &Console) -> anyhow::Result<Exit> {
    let words = ["gleaner"].into_iter().chain(args.verb.as_deref()).chain(["--help"]);
    match Cli::try_parse_from(words) {
        Err(help) if help.use_stderr() => Err(usage::refusal(&help).into()),
        Err(help) => {
            let text = help.render();
            let text = if console.colour() { text.ansi().to_string() } else { text.to_string() };
            console.stdout(&if plain::only_ascii() { plain::ascii(&text) } else { text })?;
            Ok(Exit::Done)
        }
        Ok(_) => Ok(Exit::Done), // "--help" is always an answer of its own
    }
}
