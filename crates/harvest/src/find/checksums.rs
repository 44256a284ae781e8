//! By what it is found what was seen of a file, and planned for it.

use store::cache::checksum;

/// The checksums of a file and of its separate debug information, if it has some.
pub(crate) struct Checksums {
    pub(crate) data: String,
    pub(crate) debug: String,
}

impl Checksums {
    pub(crate) fn of(data: &[u8], debug: Option<&[u8]>) -> Self {
        Self { data: checksum(data), debug: debug.map(checksum).unwrap_or_default() }
    }
}
