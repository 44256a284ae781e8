//! Separate debug information of files: where the distribution's packages install it, where
//! debuginfod's client keeps what it once fetched, and what that client fetches now.
//!
//! This program itself uses no network. Only where `DEBUGINFOD_URLS` names servers, as for other
//! tools, and `debuginfod-find` is installed, that is asked, for files without any debug
//! information of their own. A server that does not answer is asked no more in this run.

use crate::partly::elf;
use image::Image;
use image::elf::bytes::hex;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The separate debug information of a file, if it can be had.
pub(crate) fn of(data: &[u8]) -> Option<Vec<u8>> {
    let image = Image::parse(data).ok()?;
    let build_id = image.build_id()?;
    let installed = image::names::separate_debug_file(build_id).and_then(|path| elf(&path));
    installed.or_else(|| {
        if image.section(".debug_info").is_some() || image.section(".zdebug_info").is_some() {
            return None;
        }
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let kept = caches(variable).into_iter().find_map(|cache| kept(&cache, build_id));
        kept.or_else(|| variable("DEBUGINFOD_URLS").and_then(|_| fetched(build_id)))
    })
}

/// Where debuginfod's client keeps files: as its manual has it, the older place, too.
fn caches(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(path) = variable("DEBUGINFOD_CACHE_PATH") {
        return vec![path.into()];
    }
    let home = variable("HOME").map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(home.as_ref()?.join(".cache")));
    let new = cache.map(|cache| cache.join("debuginfod_client"));
    let old = home.map(|home| home.join(".debuginfod_client_cache"));
    new.into_iter().chain(old).collect()
}

fn kept(cache: &Path, build_id: &[u8]) -> Option<Vec<u8>> {
    checked(&cache.join(hex(build_id)).join("debuginfo"), build_id)
}

/// What has another build id, or none, is of another file.
fn checked(path: &Path, build_id: &[u8]) -> Option<Vec<u8>> {
    let data = elf(path)?;
    let is_it = Image::parse(&data).is_ok_and(|image| image.build_id() == Some(build_id));
    is_it.then_some(data)
}

/// Asks `debuginfod-find`, which prints where it has put the file.
fn fetched(build_id: &[u8]) -> Option<Vec<u8>> {
    /// More than that nobody waits for names.
    const LONGEST: Duration = Duration::from_secs(30);
    const POLL: Duration = Duration::from_millis(20);
    static GIVEN_UP: AtomicBool = AtomicBool::new(false);
    if GIVEN_UP.load(Relaxed) {
        return None;
    }
    let mut command = Command::new("debuginfod-find");
    command.args(["debuginfo", &hex(build_id)]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        GIVEN_UP.store(true, Relaxed);
        return None;
    };
    let began = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if began.elapsed() >= LONGEST {
            GIVEN_UP.store(true, Relaxed);
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(POLL);
    }
    let mut printed = Vec::new();
    std::io::Read::read_to_end(&mut child.stdout.take()?, &mut printed).ok()?;
    let path = printed.trim_ascii();
    checked(Path::new(std::ffi::OsStr::from_bytes(path)), build_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_where_the_client_has_them() {
        let of = |set: &[(&str, &str)]| {
            caches(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[("DEBUGINFOD_CACHE_PATH", "/c"), ("HOME", "/h")]), [Path::new("/c")]);
        let of_home = [Path::new("/h/.cache/debuginfod_client"), Path::new("/h/.debuginfod_client_cache")];
        assert_eq!(of(&[("HOME", "/h")]), of_home);
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x")]), [Path::new("/x/debuginfod_client")]);
        assert_eq!(of(&[]), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_file_of_another_build_is_not_taken() {
        let cache = tempfile::tempdir().unwrap();
        let data = std::fs::read("/proc/self/exe").unwrap();
        let own = Image::parse(&data).unwrap().build_id().map(<[u8]>::to_vec);
        let Some(own) = own else { return }; // a linker may be told to make none
        for id in [own.clone(), vec![1; 20]] {
            let folder = cache.path().join(hex(&id));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("debuginfo"), &data).unwrap();
        }
        assert!(kept(cache.path(), &own).is_some_and(|found| found == data));
        assert!(kept(cache.path(), &[1; 20]).is_none());
        assert!(kept(cache.path(), &[2; 20]).is_none());
    }
}
