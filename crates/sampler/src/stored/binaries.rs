//! The files that stored samples are in: by their paths, or by their build ids in the directories
//! where copies are kept.

use super::decoded::Module;
use super::unpacked::unpacked;
use crate::partly::elf;
use image::Image;
use image::elf::bytes::{hex, u32_at};
use std::path::{Path, PathBuf};

/// Where files are looked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Binaries {
    /// As they were named: first of all.
    named: Vec<PathBuf>,
    /// Where tools of this machine keep copies.
    kept: Vec<PathBuf>,
}

/// A file, with what is known of it.
pub(super) struct Found {
    pub path: PathBuf,
    pub data: Vec<u8>,
    pub debug: Option<Vec<u8>>,
    /// Its build id is that of the file that was sampled.
    pub is_proved: bool,
}

/// Why there is none.
pub(super) const NO_FILE: &str = "there is no such file";
const OTHER_FILE: &str = "the file has another build ID";

impl Binaries {
    /// `home` is the user's, with what perf and debuginfod clients keep there.
    pub(super) fn of(named: &[PathBuf], home: Option<&Path>) -> Self {
        let mut kept = vec![PathBuf::from("/usr/lib/debug"), PathBuf::from("/usr/lib")];
        if let Some(home) = home {
            kept.extend([home.join(".debug"), home.join(".cache/debuginfod_client")]);
        }
        Self { named: named.to_vec(), kept }
    }

    /// The file of a mapping.
    pub(super) fn find(&self, module: &Module) -> Result<Found, &'static str> {
        let mut why = NO_FILE;
        for path in self.candidates(module) {
            let Some(data) = elf(&path) else { continue };
            let Ok(image) = Image::parse(&data) else { continue };
            let is_it = is_it(&image, module.build_id.as_deref());
            if is_it == Some(false) {
                why = OTHER_FILE;
                continue;
            }
            let separate = gnu_build_id(&image).and_then(|id| self.debug(id));
            let debug = match separate {
                Some(separate) => unpacked(&separate).or(Some(separate)),
                None => unpacked(&data),
            };
            let is_proved = is_it == Some(true);
            return Ok(Found { path, data, debug, is_proved });
        }
        Err(why)
    }

    /// Where the file may be, the likeliest first.
    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let path = Path::new(&module.path);
        let id = module.build_id.as_deref().filter(|id| is_hex(id));
        let mut all = Vec::new();
        for folder in &self.named {
            all.extend(id.into_iter().flat_map(|id| by_id(folder, id)));
            if let Ok(below) = path.strip_prefix("/") {
                all.push(folder.join(below));
            }
            all.extend(path.file_name().map(|name| folder.join(name)));
        }
        if path.is_absolute() {
            all.push(path.to_owned());
        }
        for folder in &self.kept {
            all.extend(id.into_iter().flat_map(|id| by_id(folder, id)));
        }
        all
    }

    /// Separate debug information of a file with this build id.
    pub(super) fn debug(&self, id: &[u8]) -> Option<Vec<u8>> {
        let usual = image::names::separate_debug_file(id);
        let id = hex(id);
        let (first, rest) = id.split_at_checked(2)?;
        let of_folder = |folder: &PathBuf| {
            [
                folder.join(".build-id").join(first).join(format!("{rest}.debug")),
                folder.join(&id).join("debuginfo"),
                folder.join("buildid").join(&id).join("debuginfo"),
            ]
        };
        let all = self.named.iter().chain(&self.kept).flat_map(of_folder);
        all.chain(usual).find_map(|path| elf(&path))
    }
}

/// Where a folder of copies may have the one with a build id: as distributions and perf lay them
/// out, as a debuginfod client does, and as its server's addresses are.
fn by_id(folder: &Path, id: &str) -> Vec<PathBuf> {
    let id = id.to_ascii_lowercase();
    let Some((first, rest)) = id.split_at_checked(2) else { return Vec::new() };
    let usual = folder.join(".build-id").join(first).join(rest);
    vec![
        usual.join("elf"),
        usual,
        folder.join(&id).join("executable"),
        folder.join("buildid").join(&id).join("executable"),
    ]
}

fn is_hex(id: &str) -> bool {
    id.len() >= 8 && id.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a file is the one that was sampled; none where nothing tells.
fn is_it(image: &Image<'_>, wanted: Option<&str>) -> Option<bool> {
    let wanted = wanted?;
    let go = || image.notes().find(|(owner, kind, _)| *owner == b"Go\0\0" && *kind == 4).map(|(.., id)| id);
    if let Some(go) = go().filter(|_| !is_hex(wanted)) {
        return Some(go == wanted.as_bytes());
    }
    let own = gnu_build_id(image)?;
    is_hex(wanted).then(|| hex(own).eq_ignore_ascii_case(wanted))
}

/// The linker's build ID: by the segments of notes, or, as of Go's linker, by its section alone.
pub(super) fn gnu_build_id<'d>(image: &Image<'d>) -> Option<&'d [u8]> {
    /// Sizes of name and body, and the kind.
    const HEAD: [u32; 2] = [4, 3];
    image.build_id().or_else(|| {
        let note = image.section_bytes(image.section(".note.gnu.build-id")?)?;
        let is_it = [u32_at(note, 0)?, u32_at(note, 8)?] == HEAD && note.get(12..16)? == b"GNU\0";
        note.get(16..16 + u32_at(note, 4)? as usize).filter(|_| is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_for_where_tools_keep_them() {
        let binaries = Binaries::of(&[PathBuf::from("/copies")], Some(Path::new("/users/u")));
        let module = Module {
            path: "/opt/a b".to_owned(),
            build_id: Some("ABCDEF0123".to_owned()),
            ..Module::default()
        };
        let all: Vec<String> =
            binaries.candidates(&module).iter().map(|path| path.display().to_string()).collect();
        for expected in [
            "/copies/.build-id/ab/cdef0123",
            "/copies/buildid/abcdef0123/executable",
            "/copies/opt/a b",
            "/copies/a b",
            "/opt/a b",
            "/usr/lib/debug/.build-id/ab/cdef0123",
            "/users/u/.debug/.build-id/ab/cdef0123/elf",
            "/users/u/.cache/debuginfod_client/abcdef0123/executable",
        ] {
            assert!(all.iter().any(|path| path == expected), "{expected}: {all:?}");
        }
        let relative = Module { path: "a".to_owned(), ..Module::default() };
        assert_eq!(binaries.candidates(&relative), [PathBuf::from("/copies/a")]);
    }

    #[test]
    fn a_file_is_known_by_its_build_id() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let image = Image::parse(&own).unwrap();
        let Some(id) = image.build_id().map(hex) else { return }; // a linker may make none
        assert_eq!(is_it(&image, Some(&id.to_ascii_uppercase())), Some(true));
        assert_eq!(is_it(&image, Some("0123456789abcdef")), Some(false));
        assert_eq!((is_it(&image, None), is_it(&image, Some("of-no/known/form"))), (None, None));
    }
}
