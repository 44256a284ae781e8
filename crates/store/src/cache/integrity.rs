//! Whether a file is as it was written. Against accidents, not against enemies: nobody else can
//! write to the cache, and what could would change the checksum, too.

use std::fs::File;
use std::io::{self, Read};
use twox_hash::XxHash3_128;

pub(super) fn of(bytes: &[u8]) -> String {
    told(XxHash3_128::oneshot(bytes))
}

/// Read piece by piece: memory for all of a large file takes longer to get than the file to read.
pub(super) fn of_file(file: &mut File) -> io::Result<String> {
    let (mut hash, mut piece) = (XxHash3_128::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(told(hash.finish_128())),
            Ok(count) => hash.write(&piece[..count]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

fn told(hash: u128) -> String {
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_checksums_of_their_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for size in [0, 1, 1000, 1 << 18, (1 << 18) + 1, 3 << 18] {
            let bytes: Vec<u8> = (0..size).map(|at: u64| (at * at / 7) as u8).collect();
            std::fs::write(file.path(), &bytes).unwrap();
            assert_eq!(of_file(&mut File::open(file.path()).unwrap()).unwrap(), of(&bytes), "{size}");
        }
        assert_ne!(of(b"a"), of(b"b"));
    }
}
