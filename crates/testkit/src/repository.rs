//! Where the repository lies while its tests run.

use std::path::{Path, PathBuf};

/// The repository's top directory.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/testkit lies two below the top").to_owned()
}
