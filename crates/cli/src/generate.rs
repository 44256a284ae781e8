//! `gleaner generate`: man pages and shell completions, made from the definition of the command
//! line.
//!
//! For `make install` and packages, which make them from the binary that they install.

mod pages;

use crate::failure::Exit;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

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
        crate::save::bytes(&args.into.join(name), &bytes)?;
    }
    Ok(Exit::Done)
}

type Files = Vec<(String, Vec<u8>)>;

/// `gleaner.1`, and a page for each verb.
fn man(mut command: clap::Command) -> anyhow::Result<Files> {
    command.build();
    let verbs: Vec<&clap::Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    let names: Vec<String> = std::iter::once(&command).chain(verbs.iter().copied()).map(name).collect();
    std::iter::once(&command).chain(verbs.iter().copied()).map(|command| page(command, &names)).collect()
}

fn name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn page(command: &clap::Command, all: &[String]) -> anyhow::Result<(String, Vec<u8>)> {
    let name = name(command);
    let version = concat!("gleaner ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command.clone()).source(version).manual("Gleaner");
    let mut bytes = Vec::new();
    page.render_title(&mut bytes)?;
    page.render_name_section(&mut bytes)?;
    page.render_synopsis_section(&mut bytes)?;
    page.render_description_section(&mut bytes)?;
    page.render_options_section(&mut bytes)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut bytes)?;
    }
    let mut rest = String::from(".SH \"EXIT STATUS\"\n");
    for (code, meaning) in EXIT_STATUS {
        rest += &format!(".TP\n\\fB{code}\\fR\n{}\n", roff(meaning));
    }
    if name == "gleaner-harvest" {
        rest += &format!(
            ".PP\n{}\n",
            roff("Once the primary runs, its exit status is that of 'gleaner harvest'.")
        );
    }
    rest += &examples(pages::examples(&name));
    rest += &listed("FILES", pages::files(&name), "I");
    rest += &listed("ENVIRONMENT", &pages::environment(&name), "B");
    let own = all.iter().filter(|other| **other != name).map(|other| format!("{other}(1)"));
    let others: Vec<String> = own.chain(pages::see_also(&name).iter().map(|&page| page.to_owned())).collect();
    rest += &format!(
        ".SH \"SEE ALSO\"\n{}\n",
        others.iter().map(|page| reference(page)).collect::<Vec<_>>().join(",\n")
    );
    bytes.extend(rest.into_bytes());
    Ok((format!("{name}.1"), bytes))
}

const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Done."),
    ("1", "An experiment, a program, a rewrite or a check failed."),
    ("2", "Wrong use of the command line."),
    ("3", "Not possible on this host."),
];

fn examples(examples: &[pages::Entry]) -> String {
    if examples.is_empty() {
        return String::new();
    }
    let example = |(command, effect): &pages::Entry| {
        format!(".PP\n{}\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", roff(effect), roff(command))
    };
    format!(".SH EXAMPLES\n{}", examples.iter().map(example).collect::<String>())
}

fn listed(title: &str, entries: &[pages::Entry], font: &str) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let entry = |(name, text): &pages::Entry| format!(".TP\n\\f{font}{}\\fR\n{}\n", roff(name), roff(text));
    format!(".SH {title}\n{}", entries.iter().map(entry).collect::<String>())
}

/// `perf(1)`, its name in bold.
fn reference(page: &str) -> String {
    let (name, section) = page.split_once('(').unwrap_or((page, "1)"));
    format!("\\fB{}\\fR({section}", roff(name))
}

/// Text of one line as roff takes it: no sign of its own, and none that begins a request.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq").replace('~', "\\(ti");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_examples_and_related_pages() {
        let files = man(crate::Cli::command()).unwrap();
        assert!(files.len() > 7, "{}", files.len());
        for (name, bytes) in files {
            let text = String::from_utf8(bytes).unwrap();
            for section in [".SH EXAMPLES", ".SH ENVIRONMENT", ".SH \"SEE ALSO\"", ".SH \"EXIT STATUS\""] {
                assert!(text.contains(section), "{name}: no {section}");
            }
        }
        let harvest =
            man(crate::Cli::command()).unwrap().into_iter().find(|(name, _)| name == "gleaner-harvest.1");
        assert!(String::from_utf8(harvest.unwrap().1).unwrap().contains(".SH FILES"));
    }

    #[test]
    fn text_is_no_request() {
        assert_eq!(roff(".levels -x 'a\\n'"), "\\&.levels \\-x \\*(Aqa\\en\\*(Aq");
        assert_eq!(roff("'gleaner'"), "\\*(Aqgleaner\\*(Aq");
    }
}
