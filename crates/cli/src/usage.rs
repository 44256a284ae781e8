//! Wrong use, told in one line: clap's own report has five.

use crate::failure::{self, Exit, OutputError, Refusal};
use crate::plain;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints help or the version as asked, or tells what is wrong with the command line.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Clap colours it itself, for a terminal only, and hears NO_COLOR.
            let printed = if plain::only_ascii() {
                io::stdout().write_all(plain::ascii(&error.render().to_string()).as_bytes())
            } else {
                error.print()
            };
            match printed {
                Ok(()) => Exit::Done.into(),
                Err(e) => failure::report(&OutputError(e).into()),
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            failure::tell("no verb given; see gleaner --help");
            Exit::WrongUse.into()
        }
        _ => {
            failure::tell(&one_line(error));
            Exit::WrongUse.into()
        }
    }
}

/// What is wrong with a command line that was put together here.
pub(crate) fn refusal(error: &clap::Error) -> Refusal {
    Refusal::wrong_use("help", one_line(error))
}

fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if let Some(similar) = suggestion(error) {
        line = format!("{line}; did you mean '{similar}'?");
    }
    line
}

fn suggestion(error: &clap::Error) -> Option<String> {
    [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| match error.get(kind)? {
            ContextValue::String(one) => Some(one.clone()),
            ContextValue::Strings(several) => several.first().cloned(),
            _ => None,
        })
}
