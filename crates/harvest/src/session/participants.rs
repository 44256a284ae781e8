//! The programs that take part: a primary and its scavengers, with the libraries that are rewritten
//! with them.

use super::error::SessionError;
use crate::find::library::LinkedLibrary;
use crate::find::linked::{Chosen, NotListed, Wanted};
use crate::find::program::{Program, ProgramError, words};
use crate::launch::Stream;
use records::plan::Role;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A command line, and how often it runs.
#[derive(Clone, Copy, Debug)]
pub struct Copies<'c> {
    pub count: u64,
    pub command: &'c OsStr,
}

/// The commands of a harvest, as the user gave them.
#[derive(Clone, Copy, Debug)]
pub struct Commands<'c> {
    pub primary: &'c [OsString],
    pub scavengers: &'c [Copies<'c>],
    /// Where the scavengers' output goes: a file for all, or a directory with a file for each;
    /// `None`: it is discarded.
    pub output: Option<&'c Path>,
}

/// A scavenger that was asked for.
#[derive(Clone, Debug)]
pub struct WantedScavenger {
    pub program: Program,
    /// Which of the copies of its command, from 1.
    pub copy: u32,
    pub stdout: Stream,
    pub stderr: Stream,
    /// Where its output goes, in words.
    pub output: String,
}

impl WantedScavenger {
    /// Whether it may be a guest of the primary; else it runs as it is beside it.
    pub(crate) fn is_guest(&self) -> bool {
        self.program.as_it_is.is_none()
    }
}

/// What a run record says of output that is discarded.
pub const NO_OUTPUT: &str = "nowhere";

/// All programs of a harvest.
#[derive(Debug)]
pub struct Participants {
    pub primary: Program,
    pub scavengers: Vec<WantedScavenger>,
    /// Pipes and devices that scavengers write to, open until all have ended: a process that reads
    /// a pipe would take it for ended if no other process had it open before the first scavenger.
    pub(super) _outputs: Vec<File>,
}

/// A library that was to be rewritten, and is not: it is loaded as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    pub file: PathBuf,
    pub why: String,
    /// A user who asks for all libraries expects that some cannot be rewritten, and hears only of
    /// this: a rewrite that was not proven, or a program without any rewritten library.
    pub is_news: bool,
}

impl LeftAlone {
    pub(super) fn new(file: &Path, why: &str) -> Self {
        Self { file: file.to_owned(), why: format!("not rewritten: {why}"), is_news: false }
    }
}

impl Participants {
    /// Finds the programs of these commands, and makes the files for the scavengers' output.
    pub fn find(commands: &Commands<'_>) -> Result<Self, SessionError> {
        const MAX: usize = runtime_abi::control::SCAVENGERS;
        let count = commands.scavengers.iter().fold(0, |sum: u64, copies| sum.saturating_add(copies.count));
        if count > MAX as u64 {
            return Err(SessionError::TooMany { count, max: MAX });
        }
        let path = std::env::var_os("PATH");
        let (mut scavengers, mut outputs) = (Vec::new(), Outputs::default());
        let primary = Program::find(commands.primary, path.as_deref()).map_err(SessionError::Primary)?;
        for copies in commands.scavengers {
            let words = words(copies.command).map_err(SessionError::Scavenger)?;
            let program = Program::find(&words, path.as_deref()).map_err(SessionError::Scavenger)?;
            for copy in 1..=copies.count as u32 {
                let number = scavengers.len() + 1;
                let (stream, output) = match commands.output {
                    None => (Stream::Null, NO_OUTPUT.to_owned()),
                    Some(path) => outputs.of(path, &program, number, count)?,
                };
                let (stdout, stderr) = (stream.clone(), stream);
                scavengers.push(WantedScavenger { program: program.clone(), copy, stdout, stderr, output });
            }
        }
        Ok(Self { primary, scavengers, _outputs: outputs.streams })
    }

    /// The scavengers that may be guests of the primary; others run as they are beside it.
    pub fn guests(&self) -> impl Iterator<Item = &WantedScavenger> {
        self.scavengers.iter().filter(|scavenger| scavenger.is_guest())
    }

    /// Scavengers of this file are no guests this time.
    pub(super) fn run_as_it_is(&mut self, file: &Path, why: &str) {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        for scavenger in self.scavengers.iter_mut().filter(|it| absolute(&it.program.file) == file) {
            scavenger.program.as_it_is = Some(why.to_owned());
        }
    }

    /// Refuses programs that cannot take part.
    pub fn check(&self) -> Result<(), ProgramError> {
        self.primary.check(Role::Primary)?;
        self.scavengers.iter().try_for_each(|scavenger| scavenger.program.check(Role::Scavenger))
    }

    /// Takes in the wanted ones of the programs' libraries. Returns which of them cannot be
    /// rewritten.
    pub(super) fn with_libraries(&mut self, wanted: &Wanted) -> Result<Vec<LeftAlone>, SessionError> {
        let mut left = Vec::new();
        let mut unknown = match wanted {
            Wanted::None => return Ok(left),
            Wanted::All | Wanted::OfScavengers => Vec::new(),
            Wanted::Named(names) => names.clone(),
        };
        let guests = self.scavengers.iter_mut().filter(|scavenger| scavenger.is_guest());
        let scavengers = guests.map(|scavenger| (&mut scavenger.program, Role::Scavenger));
        // Several copies of one program are linked alike.
        let mut known: Vec<(PathBuf, Role, Chosen)> = Vec::new();
        for (program, role) in std::iter::once((&mut self.primary, Role::Primary)).chain(scavengers) {
            let is_it = |(file, of, _): &&(PathBuf, Role, _)| *file == program.file && *of == role;
            if let Some((_, _, chosen)) = known.iter().find(is_it) {
                program.linked = chosen.clone();
                continue;
            }
            if *wanted == Wanted::OfScavengers && role != Role::Scavenger {
                continue;
            }
            let mut refused = Vec::new();
            match program.linked_to() {
                Ok(linked) => program.linked = wanted.among(&linked, role, &mut unknown, &mut refused),
                Err(NotListed::Static) => {}
                Err(why) => {
                    let why = format!("its libraries are not rewritten: {why}");
                    let is_news = *wanted != Wanted::OfScavengers;
                    left.push(LeftAlone { file: program.file.clone(), why, is_news });
                }
            }
            left.extend(refused.into_iter().map(|(file, why)| LeftAlone::new(&file, &why.to_string())));
            known.push((program.file.clone(), role, program.linked.clone()));
        }
        if unknown.is_empty() { Ok(left) } else { Err(SessionError::NoSuchLibrary(unknown.join(", "))) }
    }

    /// The files to be rewritten, each role's once.
    pub(super) fn files(&self) -> Vec<(&Path, Role)> {
        let mut files = Vec::new();
        for (program, role) in self.programs() {
            let libraries = program.linked.rewritten.iter().map(|library| library.file.as_path());
            for file in std::iter::once(program.file.as_path()).chain(libraries) {
                if !files.contains(&(file, role)) {
                    files.push((file, role));
                }
            }
        }
        files
    }

    /// The programs that are rewritten.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&Program, Role)> {
        let scavengers = self.guests().map(|scavenger| (&scavenger.program, Role::Scavenger));
        std::iter::once((&self.primary, Role::Primary)).chain(scavengers)
    }

    /// Whether this file is a library that every program calls all the time, its libc for one.
    pub(super) fn always_calls(&self, file: &Path) -> bool {
        let libraries = self.programs().flat_map(|(program, _)| &program.linked.rewritten);
        libraries.filter(|library| library.file == file).any(LinkedLibrary::is_languages)
    }

    /// Whether this file is no program of the harvest, but a library of one.
    pub(super) fn is_library(&self, file: &Path) -> bool {
        self.programs().all(|(program, _)| program.file != file)
    }
}

/// The files for the output of scavengers.
#[derive(Default)]
struct Outputs {
    /// The one file for all of them, links followed.
    shared: Option<PathBuf>,
    streams: Vec<File>,
}

impl Outputs {
    /// The file for the output of scavenger `number` of `count`, made anew; it is added to by both
    /// of its streams.
    fn of(
        &mut self,
        path: &Path,
        program: &Program,
        number: usize,
        count: u64,
    ) -> Result<(Stream, String), SessionError> {
        let cannot = |path: &Path, why| SessionError::Output { path: path.display().to_string(), why };
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir();
        if let Some(shared) = self.shared.as_ref().filter(|_| !is_directory) {
            return Ok((Stream::Append(shared.clone()), path.display().to_string()));
        }
        let (file, shown) = if is_directory {
            let directory = records::create_directory(path).map_err(|why| cannot(path, why))?;
            let name = Path::new(&program.command[0]).file_name().unwrap_or_default().to_string_lossy();
            let width = count.to_string().len();
            let name = format!("{number:0width$}-{name}.out");
            (directory.join(&name), path.join(name))
        } else {
            (path.to_owned(), path.to_owned())
        };
        let (made, file) = records::create_output(&file).map_err(|why| cannot(&shown, why))?;
        if !made.metadata().is_ok_and(|metadata| metadata.is_file()) {
            self.streams.push(made);
        }
        if !is_directory {
            self.shared = Some(file.clone());
        }
        Ok((Stream::Append(file), shown.display().to_string()))
    }
}
