//! The program that a command line means: found as a shell finds it, with scripts followed to their
//! interpreters as the kernel follows them, and refused where it cannot be harvested.
//!
//! To add something that cannot be harvested: a variant of [`ProgramError`], a test in
//! [`check_rights`], a case below.

use crate::find::linked::{self, Chosen, Listing, NotListed};
use crate::find::unfit;
use image::Image;
use image::libraries::{self, Libraries};
use records::plan::Role;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use store::cache::checksum;

/// A program, with the arguments that the file which really runs is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// As it was asked for.
    pub command: Vec<OsString>,
    /// The ELF file that runs: the interpreter, for a script.
    pub file: PathBuf,
    /// What it is given, from `argv[0]` on.
    pub arguments: Vec<OsString>,
    pub linkage: Linkage,
    /// Why it runs as it is where it is a scavenger, and is never a guest.
    pub as_it_is: Option<String>,
    libraries: Beside,
    /// Those of its libraries that are rewritten with it.
    pub linked: Chosen,
}

/// Where libraries are looked for beside a program; an error where its copy's loader cannot be
/// told.
type Beside = Result<Option<Libraries>, ()>;

/// Whether a dynamic loader starts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// By a dynamic loader, which can preload.
    Dynamic,
    Static,
}

/// Why a program cannot be run, or not be harvested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("{0}: no such program in PATH")]
    NotInPath(String),
    #[error("{0}: no such program")]
    NotThere(String),
    #[error("{0}: {1}")]
    Unreadable(String, String),
    #[error("{0}: a directory, not a program")]
    Directory(String),
    #[error("{0}: no permission to run it")]
    NotExecutable(String),
    #[error("{0}: neither a program nor a script")]
    NoProgram(String),
    #[error("{0}: its interpreter {1} does not exist")]
    NoInterpreter(String, String),
    #[error("{0}: too many levels of script interpreters")]
    TooDeep(String),
    #[error("{0}: a 32-bit program")]
    NotWide(String),
    #[error("{0}: a program for another processor")]
    ForeignProcessor(String),
    #[error("{0}: a damaged program: {1}")]
    Damaged(String, String),
    #[error("{0}: setuid or setgid: a rewritten copy would run without its privileges")]
    SetId(String),
    #[error("{0}: has file capabilities, which a rewritten copy would not have")]
    Capabilities(String),
    #[error(
        "{0}: statically linked; a primary must be dynamically linked, since its loader loads the runtime"
    )]
    StaticPrimary(String),
    #[error(
        "{0}: its loader searches libraries relative to the program ($ORIGIN), in directories that cannot be passed to the loader of the rewritten copy"
    )]
    OriginLibraries(String),
    #[error("no program given")]
    Empty,
    #[error("'{0}' is not a command line: {1}")]
    Words(String, String),
}

/// How many scripts may interpret each other, as the kernel has it.
const DEEPEST: usize = 5;
/// How much of a file the kernel looks at for its first line.
const HEAD: usize = 256;

/// Splits a command line into words as a shell does: quotes and backslashes count, nothing is
/// expanded.
pub fn words(command: &OsStr) -> Result<Vec<OsString>, ProgramError> {
    // Arguments are bytes. All that means something to a shell is ASCII, so each may stand for the
    // character of its number.
    let text: String = command.as_bytes().iter().map(|&byte| char::from(byte)).collect();
    let bytes = |word: String| word.chars().map(|c| u8::try_from(c).expect("they were bytes")).collect();
    let words = shell_words::split(&text)
        .map_err(|e| ProgramError::Words(command.to_string_lossy().into_owned(), e.to_string()))?;
    if words.is_empty() {
        return Err(ProgramError::Empty);
    }
    Ok(words.into_iter().map(|word| OsString::from_vec(bytes(word))).collect())
}

impl Program {
    /// The program that this command means. `path` is the `PATH` to look in.
    pub fn find(command: &[OsString], path: Option<&OsStr>) -> Result<Self, ProgramError> {
        let name = command.first().filter(|name| !name.is_empty()).ok_or(ProgramError::Empty)?;
        let mut file = locate(name, path)?;
        let mut arguments = command.to_vec();
        for _ in 0..=DEEPEST {
            let told = file.display().to_string();
            let head = head_of(&file, &told)?;
            if head.starts_with(b"\x7fELF") {
                let (linkage, libraries, as_it_is) = contents_of(&file, &told)?;
                let (command, linked) = (command.to_vec(), Chosen::default());
                return Ok(Self { command, file, arguments, linkage, as_it_is, libraries, linked });
            }
            let (interpreter, argument) = match interpreter(&head) {
                Some(line) => line,
                // What `execvp` and every shell do with a text that names no interpreter.
                None if is_text(&head) => (PathBuf::from("/bin/sh"), None),
                None => return Err(ProgramError::NoProgram(told)),
            };
            if !interpreter.exists() {
                return Err(ProgramError::NoInterpreter(told, interpreter.display().to_string()));
            }
            let mut with: Vec<OsString> = vec![interpreter.clone().into_os_string()];
            with.extend(argument);
            with.push(file.into_os_string());
            with.extend(arguments.into_iter().skip(1));
            arguments = with;
            file = interpreter;
        }
        Err(ProgramError::TooDeep(name.to_string_lossy().into_owned()))
    }

    /// By which records of it are kept: its build and its arguments. None where it cannot be read.
    pub fn key(&self) -> Option<String> {
        let data = std::fs::read(&self.file).ok()?;
        let image = Image::parse(&data).ok();
        let id = image.as_ref().and_then(Image::build_id);
        let build = id.map_or_else(|| checksum(&data).into_bytes(), <[u8]>::to_vec);
        let words = self.arguments.iter().skip(1).map(|word| word.as_bytes());
        let parts = std::iter::once(&*build).chain(words);
        // Each with its length, so that none can stand for another.
        let text = parts.fold(Vec::new(), |mut text, part| {
            text.extend(part.len().to_le_bytes());
            text.extend(part);
            text
        });
        Some(checksum(&text))
    }

    /// Whether it can take part in this role at all.
    pub fn check(&self, role: Role) -> Result<(), ProgramError> {
        let told = self.file.display().to_string();
        if role != Role::Scavenger && self.linkage == Linkage::Static {
            return Err(ProgramError::StaticPrimary(told));
        }
        self.libraries()?;
        check_rights(&self.file, &told)
    }

    /// The libraries that it is linked to.
    pub fn linked_to(&self) -> Result<Listing, NotListed> {
        linked::linked(&self.file)
    }

    /// Where its libraries are looked for, as far as that is beside it.
    pub fn libraries(&self) -> Result<Option<Libraries>, ProgramError> {
        let found = self.libraries.clone();
        found.map_err(|()| ProgramError::OriginLibraries(self.file.display().to_string()))
    }
}

/// The file that a name means: itself if there is a slash in it, the first one in `PATH` that may
/// be run otherwise.
fn locate(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let told = || name.to_string_lossy().into_owned();
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match std::fs::metadata(&file) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(ProgramError::NotThere(told())),
            Err(e) => Err(ProgramError::Unreadable(told(), records::plain(&e))),
            Ok(m) if m.is_dir() => Err(ProgramError::Directory(told())),
            Ok(m) if m.permissions().mode() & 0o111 == 0 => Err(ProgramError::NotExecutable(told())),
            Ok(_) => Ok(file),
        };
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut seen_without_permission = false;
    for directory in path.as_bytes().split(|&byte| byte == b':') {
        let directory =
            if directory.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(directory)) };
        let file = directory.join(name);
        match std::fs::metadata(&file) {
            Ok(m) if m.is_file() && m.permissions().mode() & 0o111 != 0 => return Ok(file),
            Ok(m) if m.is_file() => seen_without_permission = true,
            _ => {}
        }
    }
    Err(if seen_without_permission {
        ProgramError::NotExecutable(told())
    } else {
        ProgramError::NotInPath(told())
    })
}

fn head_of(file: &Path, told: &str) -> Result<Vec<u8>, ProgramError> {
    let unreadable = |e: std::io::Error| ProgramError::Unreadable(told.to_owned(), records::plain(&e));
    // Only files are executed, and reading from a pipe would wait for a writer.
    let metadata = std::fs::metadata(file).map_err(unreadable)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(ProgramError::NotExecutable(told.to_owned()));
    }
    let mut head = Vec::with_capacity(HEAD);
    File::open(file).map_err(unreadable)?.take(HEAD as u64).read_to_end(&mut head).map_err(unreadable)?;
    Ok(head)
}

/// The interpreter of a first line `#!interpreter argument`, and its one argument: all that is left
/// of the line.
fn interpreter(head: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
    let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let line = line.trim_ascii();
    let end = line.iter().position(blank).unwrap_or(line.len());
    let (path, rest) = line.split_at(end);
    if path.is_empty() {
        return None;
    }
    let rest = rest.trim_ascii();
    let argument = (!rest.is_empty()).then(|| OsString::from_vec(rest.to_vec()));
    Some((PathBuf::from(OsStr::from_bytes(path)), argument))
}

fn is_text(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or(head);
    !line.contains(&0)
}

/// What the file's contents tell; a large file takes long to read.
fn contents_of(file: &Path, told: &str) -> Result<(Linkage, Beside, Option<String>), ProgramError> {
    const PT_INTERP: u32 = 3;
    let data =
        std::fs::read(file).map_err(|e| ProgramError::Unreadable(told.to_owned(), records::plain(&e)))?;
    match (data.get(4), data.get(18..20)) {
        (Some(1), _) => return Err(ProgramError::NotWide(told.to_owned())),
        (Some(2), Some([62, 0])) => {}
        _ => return Err(ProgramError::ForeignProcessor(told.to_owned())),
    }
    let image = Image::parse(&data).map_err(|e| ProgramError::Damaged(told.to_owned(), e.to_string()))?;
    let has_loader = image.segments().iter().any(|segment| segment.kind == PT_INTERP);
    let (linkage, libraries) = if has_loader {
        (Linkage::Dynamic, libraries::beside(&image, file))
    } else {
        // No loader looks for its libraries, and no runtime would restore the variable.
        (Linkage::Static, Ok(None))
    };
    Ok((linkage, libraries, unfit::why(&image, has_loader).map(str::to_owned)))
}

/// Refuses rights of a file that a copy would not have.
fn check_rights(file: &Path, told: &str) -> Result<(), ProgramError> {
    let opened =
        File::open(file).map_err(|e| ProgramError::Unreadable(told.to_owned(), records::plain(&e)))?;
    let metadata =
        opened.metadata().map_err(|e| ProgramError::Unreadable(told.to_owned(), records::plain(&e)))?;
    if metadata.mode() & 0o6000 != 0 {
        return Err(ProgramError::SetId(told.to_owned()));
    }
    let mut none = [0u8; 0];
    if rustix::fs::fgetxattr(&opened, "security.capability", &mut none).is_ok() {
        return Err(ProgramError::Capabilities(told.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn strings(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn words_are_a_shells() {
        let words = |text: &str| super::words(OsStr::new(text));
        assert_eq!(words("a 'b c' d\\ e \"$f\"").unwrap(), strings(&["a", "b c", "d e", "$f"]));
        assert_eq!(words("é '\u{a0}\u{2003}ü'").unwrap(), strings(&["é", "\u{a0}\u{2003}ü"]));
        assert_eq!(words("  "), Err(ProgramError::Empty));
        assert!(words("a 'b").unwrap_err().to_string().starts_with("'a 'b' is not a command line: "));
        let bytes = super::words(OsStr::from_bytes(b"a\xff '\x85 \xa0'\xe9")).unwrap();
        assert_eq!(
            bytes,
            [b"a\xff".as_slice(), b"\x85 \xa0\xe9"].map(|word| OsStr::from_bytes(word).to_owned())
        );
    }

    #[test]
    fn first_lines_are_read_as_the_kernel_reads_them() {
        let of = |text: &str| interpreter(text.as_bytes());
        assert_eq!(of("#!/bin/sh\necho"), Some((PathBuf::from("/bin/sh"), None)));
        let env = of("#! /usr/bin/env  -S python3 -u \n");
        assert_eq!(env, Some((PathBuf::from("/usr/bin/env"), Some(OsString::from("-S python3 -u")))));
        assert_eq!(of("#!\n"), None);
        assert_eq!(of("echo"), None);
    }

    #[test]
    fn scripts_lead_to_their_interpreters() {
        let directory = tempfile::tempdir().unwrap();
        let inner = script(directory.path(), "inner", "#!/bin/sh -e\necho $1\n", 0o755);
        let outer = script(directory.path(), "outer", &format!("#!{} x y\n", inner.display()), 0o755);
        let bare = script(directory.path(), "bare", "echo\n", 0o755);
        let empty = script(directory.path(), "empty", "", 0o755);
        let found = |name: &str, rest: &[&str]| {
            let command: Vec<_> = strings(&[name]).into_iter().chain(strings(rest)).collect();
            Program::find(&command, Some(directory.path().as_os_str())).unwrap()
        };
        let (inner, outer, bare) = (inner.to_str().unwrap(), outer.to_str().unwrap(), bare.to_str().unwrap());
        assert_eq!(found("inner", &["z"]).arguments, strings(&["/bin/sh", "-e", inner, "z"]));
        assert_eq!(found("outer", &["z"]).arguments, strings(&["/bin/sh", "-e", inner, "x y", outer, "z"]));
        assert_eq!(found("bare", &[]).arguments, strings(&["/bin/sh", bare]));
        assert_eq!(found("empty", &[]).arguments, strings(&["/bin/sh", empty.to_str().unwrap()]));
        assert_eq!(
            (found("inner", &[]).file, found("inner", &[]).linkage),
            (PathBuf::from("/bin/sh"), Linkage::Dynamic)
        );
    }

    #[test]
    fn what_cannot_run_is_told_in_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        script(directory.path(), "plain", "#!/bin/sh\n", 0o644);
        script(directory.path(), "lost", "#!/no/such/interpreter\n", 0o755);
        script(directory.path(), "junk", "\0\0\0", 0o755);
        let looped = at("loop");
        script(directory.path(), "loop", &format!("#!{looped}\n"), 0o755);
        let pipe = rustix::fs::Mode::from_raw_mode(0o755);
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), pipe).unwrap();
        script(directory.path(), "piped", &format!("#!{}\n", at("pipe")), 0o755);
        let error = |name: &str| {
            Program::find(&strings(&[name]), Some(directory.path().as_os_str())).unwrap_err().to_string()
        };
        assert_eq!(error("plain"), "plain: no permission to run it");
        assert_eq!(error("absent"), "absent: no such program in PATH");
        assert_eq!(error("./absent"), "./absent: no such program");
        assert_eq!(error("/"), "/: a directory, not a program");
        assert_eq!(
            error("lost"),
            format!("{}: its interpreter /no/such/interpreter does not exist", at("lost"))
        );
        assert_eq!(error("junk"), format!("{}: neither a program nor a script", at("junk")));
        assert_eq!(error(&at("pipe")), format!("{}: no permission to run it", at("pipe")));
        assert_eq!(error("piped"), format!("{}: no permission to run it", at("pipe")));
        assert_eq!(error("loop"), "loop: too many levels of script interpreters");
        assert_eq!(Program::find(&[], None), Err(ProgramError::Empty));
    }

    #[test]
    fn foreign_programs_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let mut elf = std::fs::read("/bin/sh").unwrap();
        let mut with = |at: usize, byte: u8| {
            let before = std::mem::replace(&mut elf[at], byte);
            let path = directory.path().join("x");
            std::fs::write(&path, &elf).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            elf[at] = before;
            Program::find(&[path.into_os_string()], None).map(|program| program.linkage)
        };
        assert!(matches!(with(4, 1), Err(ProgramError::NotWide(_))));
        assert!(matches!(with(18, 183), Err(ProgramError::ForeignProcessor(_))));
        assert_eq!(with(4, 2), Ok(Linkage::Dynamic));
    }
}
