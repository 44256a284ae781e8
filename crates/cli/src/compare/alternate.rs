//! `gleaner compare --ab A B`: runs of two settings in turns (A B, B A, A B, …), so that a machine
//! that drifts does so for both.

use super::sides;
use crate::console::Console;
use crate::failure::Refusal;
use crate::measure::repeat;
use crate::save;
use ::compare::Side;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a setting's words ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Setting {
    /// For 'gleaner measure'.
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    small_pages: bool,
}

/// Measures both settings this number of times, and reads the records.
pub(crate) fn measure(
    settings: &[String],
    runs: u32,
    directory: &Path,
    console: &Console,
) -> anyhow::Result<Vec<Side>> {
    let parsed: Result<Vec<Setting>, Refusal> = settings.iter().map(|words| setting(words)).collect();
    let parsed = parsed?;
    let directories = ["a", "b"].map(|name| directory.join(name));
    for directory in &directories {
        repeat::prepare(directory)?;
    }
    for (turn, (side, number)) in order(runs).into_iter().enumerate() {
        console.remark(&format!("run {} of {}: {}", turn + 1, 2 * runs, settings[side]));
        let record = directories[side].join(repeat::file_name(number, runs));
        save::check(&record)?;
        one(&parsed[side], &settings[side], &record)?;
    }
    let names = directories.iter().map(|directory| directory.display().to_string());
    let mut both = sides::read(names.collect::<Vec<_>>().iter())?;
    for (side, (letter, words)) in both.iter_mut().zip(["A", "B"].iter().zip(settings)) {
        side.name = format!("{letter}: {words}");
    }
    Ok(both)
}

/// Sides and numbers of runs: A B, B A, and so on.
fn order(runs: u32) -> Vec<(usize, u32)> {
    (1..=runs)
        .flat_map(
            |number| if number % 2 == 1 { [(0, number), (1, number)] } else { [(1, number), (0, number)] },
        )
        .collect()
}

fn setting(words: &str) -> Result<Setting, Refusal> {
    let mut setting = Setting::default();
    let refuse = |why: &str| Err(Refusal::wrong_use(format!("--ab '{words}'"), why));
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some(("thp", "never")) => setting.small_pages = true,
            Some(("thp", "asis")) => {}
            Some(("thp", _)) => return refuse("thp is 'never' or 'asis'"),
            Some((name, value)) if is_variable(name) => {
                setting.variables.push((name.to_owned(), value.to_owned()));
            }
            _ => setting.arguments.push(word.to_owned()),
        }
    }
    let taken = ["-o", "--output", "--json", "--repeat", "--csv", "--format"];
    let names = |word: &String| taken.iter().any(|t| word == t || word.starts_with(&format!("{t}=")));
    if setting.arguments.iter().any(names) {
        return refuse("where and how often is measured is the comparison's own choice");
    }
    Ok(setting)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn one(setting: &Setting, words: &str, record: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("measure").args(&setting.arguments).args(["--quiet", "--output"]).arg(record);
    command.envs(setting.variables.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::null());
    // The child inherits it; nothing is measured in this process.
    if setting.small_pages {
        rustix::thread::disable_transparent_huge_pages(true)?;
    }
    let status = command.status();
    if setting.small_pages {
        rustix::thread::disable_transparent_huge_pages(false)?;
    }
    let status = status?;
    if status.success() {
        return Ok(());
    }
    let why = "this run failed, see above; nothing is compared";
    Err(match status.code() {
        Some(2) => Refusal::wrong_use(format!("--ab '{words}'"), why),
        Some(3) => Refusal::not_possible_here(format!("--ab '{words}'"), why),
        _ => Refusal::failed(format!("--ab '{words}'"), why),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_taken() {
        let sides: String = order(4).iter().map(|&(side, _)| ["A", "B"][side]).collect();
        assert_eq!(sides, "ABBAABBA");
        assert_eq!(order(2), [(0, 1), (1, 1), (1, 2), (0, 2)]);
    }

    #[test]
    fn words_are_told_apart() {
        let read = setting("clock --quick --cpu=0 GLIBC_TUNABLES=a=b thp=never").unwrap();
        assert_eq!(read.arguments, ["clock", "--quick", "--cpu=0"]);
        assert_eq!(read.variables, [("GLIBC_TUNABLES".to_owned(), "a=b".to_owned())]);
        assert!(read.small_pages);
        for wrong in ["-o x", "--output=x", "thp=no", "--json"] {
            assert!(setting(wrong).is_err(), "{wrong}");
        }
    }
}
