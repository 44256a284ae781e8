//! Libraries that a program is linked to, and which of them are rewritten with it.
//!
//! The program's own loader lists them (`ld-linux --list`): it will look for them again in the same
//! places, and it runs nothing of the program. The rewritten libraries lie in a directory that the
//! loader looks into first; libraries that they look for beside themselves (`$ORIGIN`) are linked
//! there, too.

use crate::find::callers::{behind_resolvers, is_audited, is_first};
use crate::find::library::{LinkedLibrary, defines, read};
use image::Image;
use image::elf::abi;
use image::libraries::{asks_for, from_origin, needed_by, places_of};
use records::plan::Role;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::Svma;

/// Which libraries are rewritten with their programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    None,
    /// All of scavengers, but for very large ones; none of primaries.
    #[default]
    OfScavengers,
    All,
    /// `libz.so.1`, or `libz` for whatever version there is.
    Named(Vec<String>),
}

/// Why a library is not rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRewritten {
    #[error("part of its code runs before the runtime is initialised")]
    Early,
    #[error(
        "it may load libraries relative to its own directory ($ORIGIN), and its rewritten copy lies elsewhere"
    )]
    Origin,
    #[error("{0} is initialised before all others (DF_1_INITFIRST), and may call it")]
    BehindFirst(String),
    #[error(
        "{0} has indirect functions (IFUNC), whose resolvers may call it before the runtime is initialised"
    )]
    BehindResolvers(String),
    #[error(
        "it is so large that its twins take long to make; --libraries all, or its name, has it rewritten"
    )]
    Large,
    #[error("an audit library (LD_AUDIT) may be linked to it")]
    Audited,
}

/// Why a program's libraries are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotListed {
    #[error("it has no dynamic loader")]
    Static,
    #[error("its dynamic loader, {0}, is not that of glibc")]
    Loader(String),
    #[error("its dynamic loader does not list them: {0}")]
    Failed(String),
}

/// All that is loaded with a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub libraries: Vec<LinkedLibrary>,
    /// Why none of them may be rewritten.
    none: Option<NotRewritten>,
}

/// Which of a program's libraries are rewritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    pub rewritten: Vec<LinkedLibrary>,
    /// What rewritten ones look for beside themselves, and is to be found with them: as it is,
    /// unless it is rewritten, too.
    pub beside: Vec<LinkedLibrary>,
}

/// Where loaders look without being told: the directories of the system's libraries.
const USUAL: [&str; 6] =
    ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"];

impl Wanted {
    /// `all`, `none`, or names with commas between them; none of it is no answer.
    pub fn of(text: &str) -> Option<Self> {
        let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        match &names[..] {
            [] => None,
            ["none"] => Some(Self::None),
            names if names.contains(&"all") => Some(Self::All),
            names => Some(Self::Named(names.iter().map(|&name| name.to_owned()).collect())),
        }
    }

    /// Those of a program's that are to be rewritten for this role; with the names that are its
    /// libraries' at all taken off the `unknown` ones, and what was asked for by its name and
    /// cannot be added to `refused`.
    pub(crate) fn among(
        &self,
        listing: &Listing,
        role: Role,
        unknown: &mut Vec<String>,
        refused: &mut Vec<(PathBuf, NotRewritten)>,
    ) -> Chosen {
        let mut chosen = Chosen::default();
        let linked = &listing.libraries[..];
        let asks_for = |library: &LinkedLibrary| match self {
            Self::None => false,
            Self::OfScavengers => role == Role::Scavenger,
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| library.is(name)),
        };
        // A scavenger's threads have areas from their first instruction, its loader's too; those
        // that it makes later are known by the calls of its libc.
        let from_its_start = role == Role::Scavenger
            && linked.iter().any(|library| asks_for(library) && library.is_libc_with_known_threads());
        let behind =
            if *self == Self::None || from_its_start { Vec::new() } else { behind_resolvers(linked) };
        let none = listing.none.clone().filter(|why| !from_its_start || *why == NotRewritten::Audited);
        for library in linked {
            let asked = asks_for(library);
            unknown.retain(|name| !library.is(name));
            if !asked {
                continue;
            }
            let whose =
                || behind.iter().find(|(name, _)| *name == library.name).map(|(_, whose)| whose.clone());
            let is_early = if from_its_start { library.is_loader() } else { library.is_early() };
            let others = if is_early {
                Err(NotRewritten::Early)
            } else if *self == Self::OfScavengers && library.is_large() {
                Err(NotRewritten::Large)
            } else if let Some(why) = none.clone().or_else(|| whose().map(NotRewritten::BehindResolvers)) {
                Err(why)
            } else {
                library.beside(linked)
            };
            match others {
                Ok(others) => {
                    chosen.rewritten.push(library.clone());
                    chosen.beside.extend(others);
                }
                Err(NotRewritten::Early) if matches!(self, Self::All | Self::OfScavengers) => {}
                Err(why) => refused.push((library.file.clone(), why)),
            }
        }
        chosen.beside.sort_by(|a, b| a.name.cmp(&b.name));
        chosen.beside.dedup();
        chosen
    }
}

impl LinkedLibrary {
    /// Whether it is of what begins before there is an area.
    fn is_early(&self) -> bool {
        // Whose `malloc` it is, the loader itself calls.
        self.is_libcs() || self.read(|image| defines(image, b"malloc")).unwrap_or(false)
    }

    /// Whether its first rewriting would keep a user waiting.
    fn is_large(&self) -> bool {
        const LARGE_BYTES: u64 = 32 << 20;
        std::fs::metadata(&self.file).is_ok_and(|metadata| metadata.len() > LARGE_BYTES)
    }

    /// Of these, what it and they need, and would not be found from elsewhere, since it is looked
    /// for beside them.
    fn beside(&self, linked: &[Self]) -> Result<Vec<Self>, NotRewritten> {
        let mut found: Vec<Self> = Vec::new();
        let mut work = vec![self.clone()];
        while let Some(library) = work.pop() {
            // The rewriter will say what is wrong with a library that cannot be read.
            let needed = library.read(|image| {
                let from_here = library.looks_beside_itself(image);
                // By which names, only it knows.
                let loads = || asks_for(image, b"dlopen") || asks_for(image, b"dlmopen");
                from_here.then(|| if loads() { None } else { Some(needed_by(image)) })
            });
            let needed = match needed.flatten() {
                None => continue,
                Some(None) => return Err(NotRewritten::Origin),
                Some(Some(needed)) => needed,
            };
            for name in needed.iter().filter(|name| !name.starts_with("ld-linux")) {
                let other = linked.iter().find(|other| other.name == name.as_str());
                let other = other.ok_or(NotRewritten::Origin)?;
                if !other.is_in_its_usual_place() && !found.contains(other) {
                    found.push(other.clone());
                    work.push(other.clone());
                }
            }
        }
        Ok(found)
    }

    /// Whether it names places relative to its own that are not looked into anyway.
    fn looks_beside_itself(&self, image: &Image<'_>) -> bool {
        let Some(places) = places_of(image) else { return false };
        // The loader takes what leads to the file for its place, not where the file is.
        let origin = self.file.parent().unwrap_or(Path::new("/")).as_os_str().as_bytes();
        places.split(|&byte| byte == b':').filter(|place| place.contains(&b'$')).any(|place| {
            let place = from_origin(place, origin);
            let path = Path::new(OsStr::from_bytes(&place));
            place.contains(&b'$') || path.exists() && !is_usual(path)
        })
    }

    fn is_in_its_usual_place(&self) -> bool {
        self.file.parent().is_some_and(is_usual)
    }
}

fn is_usual(place: &Path) -> bool {
    let Ok(place) = place.canonicalize() else { return false };
    USUAL.iter().any(|usual| Path::new(usual).canonicalize().is_ok_and(|it| it == place))
}

/// What this program's loader would load, but for what is preloaded.
pub(crate) fn linked(program: &Path) -> Result<Listing, NotListed> {
    let failed = |error: io::Error| NotListed::Failed(records::plain(&error));
    let data = std::fs::read(program).map_err(failed)?;
    let image = Image::parse(&data).map_err(|e| NotListed::Failed(e.to_string()))?;
    let segment =
        image.segments().iter().find(|segment| segment.kind == abi::PT_INTERP).ok_or(NotListed::Static)?;
    let named = image.bytes_from(Svma(segment.address)).unwrap_or(&[]).split(|&byte| byte == 0).next();
    let loader = Path::new(OsStr::from_bytes(named.unwrap_or(&[])));
    // Other loaders list libraries too, but without their places.
    let is_glibcs = loader.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux"));
    if !is_glibcs {
        return Err(NotListed::Loader(loader.display().to_string()));
    }
    // By a name with a slash in it: else it would be looked for as a library is.
    let program = std::path::absolute(program).map_err(failed)?;
    let mut command = Command::new(loader);
    command.arg("--list").arg(program).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(failed)?;
    if !output.status.success() {
        return Err(NotListed::Failed(output.status.to_string()));
    }
    let first = paths(&output.stdout).find(|path| read(path, is_first) == Some(true));
    let none = if is_audited(&image) {
        Some(NotRewritten::Audited)
    } else {
        first.map(|path| NotRewritten::BehindFirst(path.display().to_string()))
    };
    Ok(Listing { libraries: listed(&output.stdout), none })
}

/// What a loader's list names with their places, `libz.so.1 => /lib/libz.so.1 (0x00007f…)`, a line
/// each; what has no arrow was named by its path, or is the kernel's.
fn places(text: &[u8]) -> impl Iterator<Item = (Option<&[u8]>, &Path)> {
    const ARROW: &[u8] = b" => ";
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii();
        let line = &line[..line.windows(4).rposition(|window| window == b" (0x")?];
        let arrow = line.windows(ARROW.len()).position(|window| window == ARROW);
        let path = arrow.map_or(line, |arrow| &line[arrow + ARROW.len()..]);
        Some((arrow.map(|arrow| &line[..arrow]), Path::new(OsStr::from_bytes(path))))
    })
}

/// All files of such a list, and such as were named by their paths or are preloaded.
fn paths(text: &[u8]) -> impl Iterator<Item = &Path> {
    places(text).map(|(_, path)| path).filter(|path| path.as_os_str().as_bytes().contains(&b'/'))
}

/// Those that are looked for by a name.
fn listed(text: &[u8]) -> Vec<LinkedLibrary> {
    let looked_for = places(text).filter_map(|(name, path)| Some((name?, path)));
    let found = looked_for.filter(|(name, path)| path.is_absolute() && !name.contains(&b'/'));
    found
        .map(|(name, path)| LinkedLibrary { name: OsStr::from_bytes(name).to_owned(), file: path.to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, file: &str) -> LinkedLibrary {
        LinkedLibrary { name: name.into(), file: file.into() }
    }

    #[test]
    fn a_loaders_list_is_read() {
        let text = b"\tlinux-vdso.so.1 (0x00007ffc)\n\tliba.so.1 => /x y/liba.so.1 (0x00007f12)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tlibb.so => not found\n\tlibc.so.6 => ./libc.so.6 (0x1)\n";
        assert_eq!(listed(text), [library("liba.so.1", "/x y/liba.so.1")]);
        let all: Vec<&Path> = paths(text).collect();
        assert_eq!(all, ["/x y/liba.so.1", "/lib64/ld-linux-x86-64.so.2", "./libc.so.6"].map(Path::new));
        assert!(listed(b"\tstatically linked\n").is_empty());
    }

    #[test]
    fn libraries_are_named_with_their_version_or_without() {
        let z = library("libz.so.1", "/lib/libz.so.1");
        assert!(z.is("libz") && z.is("libz.so.1"));
        assert!(z.is("libz.so") && !z.is("lib") && !z.is("libz.s") && !z.is("libzip"));
        assert_eq!([Wanted::of("all"), Wanted::of("libz,all")], [Some(Wanted::All), Some(Wanted::All)]);
        assert_eq!(
            Wanted::of("libz, libm,"),
            Some(Wanted::Named(vec!["libz".to_owned(), "libm".to_owned()]))
        );
        assert_eq!([Wanted::of(""), Wanted::of(" ,")], [None, None]);
    }

    #[test]
    fn what_was_asked_for_and_is_not_there_is_left_over() {
        let libraries = vec![library("libz.so.1", "/none"), library("libm.so.6", "/none")];
        let linked = Listing { libraries, none: None };
        let mut unknown = vec!["libz".to_owned(), "libq".to_owned()];
        let (mut refused, wanted) = (Vec::new(), Wanted::Named(unknown.clone()));
        assert_eq!(
            wanted.among(&linked, Role::Scavenger, &mut unknown, &mut refused).rewritten,
            linked.libraries[..1]
        );
        assert_eq!((unknown, refused.len()), (vec!["libq".to_owned()], 0));
        let named = Wanted::Named(vec!["libm".to_owned()]);
        assert_eq!(named.among(&linked, Role::Scavenger, &mut Vec::new(), &mut refused), Chosen::default());
        assert_eq!(refused, [("/none".into(), NotRewritten::Early)]);
        assert_eq!(
            Wanted::All.among(&linked, Role::Scavenger, &mut Vec::new(), &mut refused).rewritten,
            linked.libraries[..1]
        );
        assert_eq!(refused.len(), 1);
    }
}
