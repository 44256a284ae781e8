//! What a recipe does, as settings of those who start the program without Gleaner.

use super::Kind;
use records::recipe::Recipe;
use std::ffi::OsStr;
use std::path::Path;
use store::recipes::Kept;
use trials::{Program, Start};

pub(super) fn text(kind: Kind, kept: &Kept, program: &Program) -> String {
    let recipe = &kept.document.body;
    let own = recipe.program.command.iter().map(|word| records::path_of(word).into()).collect();
    let own = Program::of(own);
    let program = if program.command.is_empty() { &own } else { program };
    let start = trials::start(&recipe.settings, &kept.directory, program);
    let variables: Vec<String> =
        start.environment.iter().map(|(name, value)| format!("{}={}", shown(name), shown(value))).collect();
    let other_file = start.program.as_deref();
    let mut lines: Vec<String> = match kind {
        Kind::Env => variables,
        Kind::Systemd => variables.iter().map(|one| format!("Environment=\"{one}\"")).collect(),
        Kind::Docker => variables.iter().map(|one| format!("--env {}", quoted(one))).collect(),
        Kind::Shell => {
            let exports = variables.iter().map(|one| format!("export {}", quoted(one)));
            std::iter::once("#!/bin/sh".to_owned()).chain(exports).collect()
        }
    };
    match (kind, other_file) {
        (Kind::Env, Some(file)) => lines.push(in_its_place(file)),
        (Kind::Systemd, Some(file)) => lines.push(exec(file, recipe)),
        (Kind::Docker, _) => {
            if needs_files(&start) {
                let place = kept.directory.display();
                lines.push(format!("--volume {}", quoted(&format!("{place}:{place}"))));
            }
            lines.extend(other_file.map(in_its_place));
        }
        (Kind::Shell, _) => {
            let file = other_file.map_or(recipe.program.file.path.clone(), |file| file.display().to_string());
            lines.push(format!("exec {} \"$@\"", quoted(&file)));
        }
        (Kind::Env | Kind::Systemd, None) => {}
    }
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

fn shown(text: &OsStr) -> String {
    records::text_of(text.as_ref())
}

fn quoted(text: &str) -> String {
    shell_words::quote(text).into_owned()
}

/// Whether something of the recipe lies in its directory.
fn needs_files(start: &Start) -> bool {
    start.program.is_some() || start.environment.iter().any(|(name, _)| name != "GLIBC_TUNABLES")
}

fn in_its_place(file: &Path) -> String {
    format!("# and execute {} in the place of the program's file", file.display())
}

fn exec(file: &Path, recipe: &Recipe) -> String {
    let words = recipe.program.command.iter().skip(1).map(|word| quoted(word));
    let words: Vec<String> = std::iter::once(file.display().to_string()).chain(words).collect();
    format!("ExecStart={}", words.join(" "))
}
