//! Other allocators in place of libc's, where they are installed.

use super::prepared::Start;
use crate::built::built;
use records::recipe::Setting;
use std::path::{Path, PathBuf};

/// Names of the libraries, as distributions have them.
const KNOWN: [(&str, &[&str]); 3] = [
    ("mimalloc", &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"]),
    ("jemalloc", &["libjemalloc.so.2", "libjemalloc.so"]),
    ("tcmalloc", &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"]),
];
/// Where they lie.
const PLACES: [&str; 6] = [
    "/usr/local/lib",
    "/usr/local/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib",
];

/// Those that are installed, each with its library as it is now.
pub(crate) fn installed() -> Vec<Setting> {
    let places: Vec<PathBuf> = PLACES.iter().map(PathBuf::from).collect();
    among(&places)
}

fn among(places: &[PathBuf]) -> Vec<Setting> {
    let of = |(name, files): &(&str, &[&str])| {
        let found = files.iter().flat_map(|file| places.iter().map(move |place| place.join(file)));
        let library = found.into_iter().find_map(|path| built(&path).ok())?;
        Some(Setting::Allocator { name: (*name).to_owned(), library })
    };
    KNOWN.iter().filter_map(of).collect()
}

pub(crate) fn start(settings: &[Setting], start: &mut Start) {
    for setting in settings {
        if let Setting::Allocator { library, .. } = setting {
            let path: &Path = &records::path_of(&library.path);
            start.in_front("LD_PRELOAD", path.as_os_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_proposed() {
        let files = tempfile::tempdir().unwrap();
        assert_eq!(among(&[files.path().to_owned()]), []);
        std::fs::write(files.path().join("libjemalloc.so.2"), "a library").unwrap();
        let found = among(&[files.path().to_owned()]);
        assert!(matches!(&found[..], [Setting::Allocator { name, .. }] if name == "jemalloc"), "{found:?}");
        let mut start_with = Start::default();
        start(&found, &mut start_with);
        assert!(start_with.environment[0].1.to_str().unwrap().contains("libjemalloc.so.2"));
    }
}
