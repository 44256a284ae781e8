//! The program's files with trace twins: rewritten, proven, and put where the program finds them.
//! They are kept from run to run, in the same cache as those of harvests; what a run uses is a
//! copy, since the program may go on as a user who may not read the cache.

use crate::places::Places;
use image::Module;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use store::cache::{self, Cache, Key, Made};
use trials::Program;
use twin::Mode;

/// Files with twins, as long as this lives.
pub(crate) struct Rewritten {
    pub directory: tempfile::TempDir,
    /// The program itself, if it has twins.
    pub program: Option<PathBuf>,
    /// By the number in their entries.
    pub modules: Vec<RewrittenModule>,
    pub left_out: Vec<(PathBuf, String)>,
}

pub(crate) struct RewrittenModule {
    pub path: PathBuf,
    pub data: Vec<u8>,
    pub places: Places,
}

impl Rewritten {
    /// Rewrites these files of a program, as far as that can be done.
    pub(crate) fn of(program: &Program, paths: &[PathBuf], told: &dyn Fn(&str)) -> std::io::Result<Self> {
        let directory = records::temporary_directory("gleaner-")?;
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711))?;
        let mut all = Self { directory, program: None, modules: Vec::new(), left_out: Vec::new() };
        // None where there is no place for it.
        let cache = Cache::of_user().ok();
        for path in paths {
            if !is_loader(path) {
                told(&format!("{}: rewriting", records::text_of(path)));
            }
            match all.add(program, path, cache.as_ref()) {
                Ok(module) => all.modules.push(module),
                Err(why) => all.left_out.push((path.clone(), why)),
            }
        }
        Ok(all)
    }

    /// Where libraries with twins lie.
    pub(crate) fn libraries(&self) -> &Path {
        self.directory.path()
    }

    fn add(
        &mut self,
        program: &Program,
        path: &Path,
        cache: Option<&Cache>,
    ) -> Result<RewrittenModule, String> {
        if is_loader(path) {
            return Err("the dynamic loader runs as it is".to_owned());
        }
        let number = u16::try_from(self.modules.len()).map_err(|_| "too many files")?;
        let data = fs::read(path).map_err(|e| records::plain(&e))?;
        let name = path.file_name().unwrap_or(OsStr::new("file"));
        let rewritten = match cache {
            Some(cache) => kept(cache, name, &data, number)?,
            None => rewritten(&data, number)?,
        };
        let places = Places::of(&Module::analyse(&data, None).map_err(|e| e.to_string())?);
        let is_program = program.file().is_some_and(|file| is_same(&file, path));
        let place = if is_program {
            let own = self.directory.path().join("program");
            fs::create_dir_all(&own).map_err(|e| records::plain(&e))?;
            own.join(path.file_name().unwrap_or(OsStr::new("program")))
        } else {
            self.directory.path().join(path.file_name().unwrap_or(OsStr::new("library")))
        };
        let write = || {
            fs::write(&place, &rewritten)?;
            fs::set_permissions(&place, PermissionsExt::from_mode(0o755))
        };
        write().map_err(|e| format!("{}: {}", place.display(), records::plain(&e)))?;
        if is_program {
            self.program = Some(place);
        } else {
            self.name_as_linked(path, &place);
        }
        Ok(RewrittenModule { path: path.to_owned(), data, places })
    }

    /// Programs name a library by one of the links that lead to it.
    fn name_as_linked(&self, path: &Path, place: &Path) {
        let Ok(whole) = fs::canonicalize(path) else { return };
        let beside = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        for entry in beside.into_iter().flatten().filter_map(Result::ok) {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link && fs::canonicalize(entry.path()).is_ok_and(|to| to == whole) {
                let _ = symlink(place, self.directory.path().join(entry.file_name()));
            }
        }
    }

    /// What the environment has to say besides.
    pub(crate) fn environment(&self) -> (OsString, OsString) {
        let mut paths = self.libraries().as_os_str().to_owned();
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
            paths.push(":");
            paths.push(before);
        }
        (OsString::from("LD_LIBRARY_PATH"), paths)
    }
}

/// A file with trace twins, proven.
fn rewritten(data: &[u8], number: u16) -> Result<Vec<u8>, String> {
    let rewritten = twin::rewrite(data, None, Mode::Trace(number)).map_err(|e| e.to_string())?;
    proof::check(data, &rewritten.bytes).map_err(|why| format!("the rewritten file is not proven: {why}"))?;
    Ok(rewritten.bytes)
}

/// The same, as it was kept by an earlier run, or for later ones.
fn kept(cache: &Cache, name: &OsStr, data: &[u8], number: u16) -> Result<Vec<u8>, String> {
    let (content, versions) = (cache::checksum(data), [proof::VERSION, twin_format::VERSION]);
    let versions = versions.map(u32::to_le_bytes).concat();
    let key = Key::of(&[b"trace", content.as_bytes(), &number.to_le_bytes(), &versions]);
    let make = || Ok::<_, NotMade>(Made { bytes: rewritten(data, number)?, note: () });
    let entry = cache.get(&key, name, make).map_err(|NotMade(why)| why)?;
    fs::read(&entry.file).map_err(|e| records::plain(&e))
}

/// Why there is no such file.
struct NotMade(String);

impl From<std::io::Error> for NotMade {
    fn from(error: std::io::Error) -> Self {
        Self(records::plain(&error))
    }
}

impl From<String> for NotMade {
    fn from(why: String) -> Self {
        Self(why)
    }
}

fn is_loader(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"))
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().is_some_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}
