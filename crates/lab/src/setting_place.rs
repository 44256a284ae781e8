//! Where a host setting is: a file with one line of text, or a model-specific register.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where a setting is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    pub file: PathBuf,
    /// A register of eight bytes at this offset of the file; `None` is a file that holds one line
    /// of text.
    pub register: Option<u64>,
}

impl SettingPlace {
    /// A file with one value in it, as in sysfs.
    pub fn text(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), register: None }
    }

    /// A model-specific register of one CPU, as the file `msr` shows it.
    pub fn msr(root: &Path, cpu: usize, register: u32) -> Self {
        Self { file: root.join(format!("dev/cpu/{cpu}/msr")), register: Some(register.into()) }
    }

    pub fn read(&self) -> io::Result<Vec<u8>> {
        match self.register {
            None => {
                let mut text = Vec::new();
                File::open(&self.file)?.read_to_end(&mut text)?;
                Ok(text)
            }
            Some(offset) => {
                let mut value = vec![0; 8];
                File::open(&self.file)?.read_exact_at(&mut value, offset)?;
                Ok(value)
            }
        }
    }

    /// Writes a value; what is there afterwards is for the caller to look at.
    pub fn write(&self, value: &[u8]) -> io::Result<()> {
        match self.register {
            None => OpenOptions::new().write(true).truncate(true).open(&self.file)?.write_all(value),
            Some(offset) => OpenOptions::new().write(true).open(&self.file)?.write_all_at(value, offset),
        }
    }

    /// Writes a value and makes sure that it is there.
    pub fn write_verified(&self, value: &[u8]) -> io::Result<()> {
        self.write(value)?;
        let now = self.read()?;
        if self.same(&now, value) {
            return Ok(());
        }
        Err(io::Error::other(format!("it is now {} instead of {}", self.show(&now), self.show(value))))
    }

    /// The same value: a file's text may end in a line's end or not.
    pub fn same(&self, a: &[u8], b: &[u8]) -> bool {
        a == b || (self.register.is_none() && a.trim_ascii() == b.trim_ascii())
    }

    pub fn show(&self, value: &[u8]) -> String {
        match (self.register, <[u8; 8]>::try_from(value)) {
            (Some(_), Ok(bytes)) => format!("{:#x}", u64::from_le_bytes(bytes)),
            _ => format!("'{}'", String::from_utf8_lossy(value).trim()),
        }
    }
}

impl std::fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.register {
            None => write!(f, "{}", self.file.display()),
            Some(offset) => write!(f, "register {offset:#x} in {}", self.file.display()),
        }
    }
}
