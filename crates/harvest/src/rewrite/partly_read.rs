//! Rewritten files of which not all is read.

use image::elf::partial::last_code;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The contents of a file, but for those of its last segment of code, which are zeros and take no
/// memory: in a rewritten file that is most of it, and says nothing that its tables do not.
pub(crate) fn read_without_last_code(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut data = vec![0; size];
    let hole = last_code(&mut data, |place, at| file.read_exact_at(place, at).ok()).unwrap_or(0..0);
    file.read_exact_at(&mut data[..hole.start], 0)?;
    file.read_exact_at(&mut data[hole.end..], hole.end as u64)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Image;

    #[test]
    fn all_is_there_but_the_last_code() {
        let own = std::env::current_exe().unwrap();
        let (all, most) = (std::fs::read(&own).unwrap(), read_without_last_code(&own).unwrap());
        let image = Image::parse(&most).unwrap();
        let code = image.loads().iter().rfind(|load| load.is_executable()).unwrap();
        let (begin, end) = (code.offset as usize, (code.offset + code.file_size) as usize);
        assert!(end - begin > 4096 && most[begin..end].iter().all(|&byte| byte == 0));
        assert!(most[..begin] == all[..begin] && most[end..] == all[end..]);
    }

    #[test]
    fn what_is_no_such_file_is_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut wrong = own[..256].to_vec();
        wrong[32..40].fill(0xff); // headers far behind the end
        for contents in [&b""[..], b"text", &own[..100], &wrong] {
            std::fs::write(file.path(), contents).unwrap();
            assert_eq!(read_without_last_code(file.path()).unwrap(), contents);
        }
        assert!(read_without_last_code(Path::new("/nowhere")).is_err());
    }
}
