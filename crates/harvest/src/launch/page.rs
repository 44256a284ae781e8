//! The control page as the launcher sees it: written before the start, read and given orders
//! through afterwards.

use super::blob::{Blob, memory_file};
use super::environment::{self, assignment};
use super::error::LaunchError;
use super::request::{Harvest, Module, Program, Scavenger, Stream};
use crate::rewrite::partly_read::read_without_last_code;
use crate::rewrite::rewritten::{RewrittenFile, Switches, TwinCode};
use image::libraries;
use rayon::prelude::*;
use runtime_abi::control::{self, Control, EntryRow, ModuleRow, ScavengerRow, SwitchRow};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) struct Page {
    file: File,
    path: PathBuf,
}

/// Where the row of a scavenger begins.
pub(super) const fn row(index: usize) -> usize {
    offset_of!(Control, scavenger) + index * size_of::<ScavengerRow>()
}

impl Page {
    pub(super) fn new(harvest: &Harvest, blob: &Blob) -> Result<Self, LaunchError> {
        let (file, path) = memory_file("gleaner-control")?;
        let image = Image::of(harvest, blob)?;
        file.write_all_at(&image.bytes, 0).map_err(LaunchError::Memfd)?;
        Ok(Self { file, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn u32(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        // A memory file of ours that is long enough: reading it cannot fail. What is not written
        // yet is 0.
        self.file.read_exact_at(&mut bytes, offset as u64).map_or(0, |()| u32::from_ne_bytes(bytes))
    }

    pub(super) fn u64(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset as u64).map_or(0, |()| u64::from_ne_bytes(bytes))
    }

    /// A floating-point number by its bits.
    pub(super) fn f64(&self, offset: usize) -> f64 {
        f64::from_bits(self.u64(offset))
    }

    /// How far from where its file says one of the primary's modules is loaded, its own file first;
    /// none if that is not known.
    pub(super) fn bias(&self, module: usize) -> Option<u64> {
        let first = self.u32(offset_of!(Control, first_module)) as usize;
        let row = first + module * size_of::<ModuleRow>();
        // It is there before the harvest begins to run.
        let found = self.u32(row + offset_of!(ModuleRow, found)) != 0;
        found.then(|| self.u64(row + offset_of!(ModuleRow, bias)))
    }

    pub(super) fn order_u32(&self, offset: usize, value: u32) -> std::io::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), offset as u64)
    }
}

/// The page being put together.
struct Image {
    bytes: Vec<u8>,
}

impl Image {
    fn of(harvest: &Harvest, blob: &Blob) -> Result<Self, LaunchError> {
        let mut image = Self { bytes: vec![0; size_of::<Control>()] };
        image.put64(offset_of!(Control, magic), control::MAGIC);
        image.put(offset_of!(Control, version), control::VERSION);
        image.put(offset_of!(Control, scavengers), harvest.scavengers.len() as u32);
        image.put(offset_of!(Control, launcher), std::process::id());
        image.put(offset_of!(Control, ring), harvest.ring);
        if let Some(contract) = harvest.contract {
            image.put(offset_of!(Control, watched), 1);
            let millionths = (contract.max_slowdown * 1e6).clamp(0.0, f64::from(u32::MAX));
            image.put(offset_of!(Control, max_slowdown), millionths as u32);
            image.put64(offset_of!(Control, max_absence_ns), contract.max_absence.as_nanos() as u64);
            image.put64(offset_of!(Control, soon_ns), contract.hit_below.as_nanos() as u64);
        }
        image.put64(offset_of!(Control, recall_ns), harvest.recall.as_nanos() as u64);
        image.put64(offset_of!(Control, ignored), harvest.inherited.ignored);
        image.put64(offset_of!(Control, blocked), harvest.inherited.blocked);
        image.put(offset_of!(Control, closed), harvest.inherited.closed);
        image.put(offset_of!(Control, outlive_launcher), u32::from(harvest.outlive_launcher));
        image.put(offset_of!(Control, stay_aboard), u32::from(harvest.homes.stay_aboard));
        if let Some(cpus) = &harvest.homes.cpus {
            let mask = cpus.iter().filter(|cpu| **cpu < 64).fold(0_u64, |mask, cpu| mask | 1 << cpu);
            image.put(offset_of!(Control, home_cpus_known), 1);
            image.put64(offset_of!(Control, home_cpus), mask);
        }
        let whose = &harvest.primary.file;
        let (first, count) = image.modules(&harvest.primary, true)?;
        image.put(offset_of!(Control, first_module), first);
        image.put(offset_of!(Control, modules), count);
        let preload = image.string(blob.path().as_os_str(), whose)?;
        image.put(offset_of!(Control, preload), preload);
        let (file, original) = image.files(&harvest.primary)?;
        image.put(offset_of!(Control, file), file);
        image.put(offset_of!(Control, original), original);
        if let Some(before) = std::env::var_os("LD_PRELOAD") {
            let before = image.string(&before, whose)?;
            image.put(offset_of!(Control, preload_before), before);
        }
        if let Some(before) = std::env::var_os(libraries::VARIABLE) {
            let before = image.string(&before, whose)?;
            image.put(offset_of!(Control, libraries_before), before);
        }
        image.put(offset_of!(Control, libraries), u32::from(harvest.primary.libraries.is_some()));
        let own = environment::whole();
        let first = image.strings(&own, whose)?;
        image.put(offset_of!(Control, envp), first);
        image.put(offset_of!(Control, envc), own.len() as u32);
        for (index, scavenger) in harvest.scavengers.iter().enumerate() {
            image.scavenger(row(index), scavenger, &own, first)?;
        }
        Ok(image)
    }

    fn scavenger(
        &mut self,
        row: usize,
        scavenger: &Scavenger,
        own: &[OsString],
        first_own: u32,
    ) -> Result<(), LaunchError> {
        let whose = &scavenger.program.file;
        let (file, original) = self.files(&scavenger.program)?;
        self.put(row + offset_of!(ScavengerRow, file), file);
        self.put(row + offset_of!(ScavengerRow, original), original);
        let (first, count) = self.modules(&scavenger.program, false)?;
        self.put(row + offset_of!(ScavengerRow, first_module), first);
        self.put(row + offset_of!(ScavengerRow, modules), count);
        let libc = scavenger.program.modules.iter().any(Module::is_libc);
        self.put(row + offset_of!(ScavengerRow, libc_has_twins), u32::from(libc));
        let argv = self.strings(&scavenger.program.argv, whose)?;
        self.put(row + offset_of!(ScavengerRow, argv), argv);
        self.put(row + offset_of!(ScavengerRow, argc), scavenger.program.argv.len() as u32);
        let given = scavenger.environment.as_ref();
        let given = given.map(|variables| {
            variables.iter().map(|(name, value)| assignment(name, value)).collect::<Vec<OsString>>()
        });
        let theirs = given.as_deref().unwrap_or(own);
        let mut for_loader = None;
        if let Some(libraries) = &scavenger.program.libraries {
            let users = value_of(theirs, libraries::VARIABLE);
            for_loader = Some(with(theirs, libraries::VARIABLE, &libraries.with(users)));
            self.put(row + offset_of!(ScavengerRow, libraries), 1);
            let before = users.map_or(Ok(0), |users| self.string(users, whose))?;
            self.put(row + offset_of!(ScavengerRow, libraries_before), before);
        }
        let (envp, envc) = match for_loader.or(given) {
            None => (first_own, own.len()),
            Some(variables) => (self.strings(&variables, whose)?, variables.len()),
        };
        self.put(row + offset_of!(ScavengerRow, envp), envp);
        self.put(row + offset_of!(ScavengerRow, envc), envc as u32);
        if let Some(directory) = &scavenger.directory {
            let directory = self.string(directory.as_os_str(), whose)?;
            self.put(row + offset_of!(ScavengerRow, directory), directory);
        }
        let mut append = 0;
        for (number, stream) in
            [&scavenger.stdin, &scavenger.stdout, &scavenger.stderr].into_iter().enumerate()
        {
            let path = match stream {
                Stream::Primarys => continue,
                Stream::Null => Path::new("/dev/null"),
                Stream::File(path) => path,
                Stream::Append(path) => {
                    append |= 1 << number;
                    path
                }
            };
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            let at = self.string(path.as_os_str(), whose)?;
            self.put(row + offset_of!(ScavengerRow, streams) + 4 * number, at);
        }
        self.put(row + offset_of!(ScavengerRow, append), append);
        Ok(())
    }

    /// A program's file, and what it was rewritten from, as the kernel would name it.
    fn files(&mut self, program: &Program) -> Result<(u32, u32), LaunchError> {
        let whose = &program.file;
        let file = self.string(whose.as_os_str(), whose)?;
        let original = match &program.original {
            None => 0,
            Some(path) => {
                let named = path.canonicalize().unwrap_or_else(|_| path.clone());
                self.string(named.as_os_str(), whose)?
            }
        };
        Ok((file, original))
    }

    /// Rows for a program's rewritten files, its own first; a primary's tell by what their yields
    /// are switched on. Returns where the first is.
    fn modules(&mut self, program: &Program, primary: bool) -> Result<(u32, u32), LaunchError> {
        let whose = &program.file;
        let libraries = program.modules.iter().map(|module| (Some(module), &module.file));
        let modules: Vec<(Option<&Module>, &PathBuf)> =
            std::iter::once((None, whose)).chain(libraries).collect();
        self.bytes.resize(self.bytes.len().next_multiple_of(align_of::<ModuleRow>()), 0);
        let first = self.bytes.len();
        self.bytes.resize(first + modules.len() * size_of::<ModuleRow>(), 0);
        let read: Vec<_> = modules.par_iter().map(|(_, file)| of_file(file, primary)).collect();
        for (index, ((library, _), (switches, code))) in modules.iter().zip(read).enumerate() {
            let row = first + index * size_of::<ModuleRow>();
            if let Some(library) = library {
                let name = self.string(library.name.as_os_str(), whose)?;
                self.put(row + offset_of!(ModuleRow, name), name);
                let original = self.string(library.original.as_os_str(), whose)?;
                self.put(row + offset_of!(ModuleRow, original), original);
            }
            if let Some(switches) = switches {
                self.switches(row, switches);
            }
            if let Some(code) = code {
                self.twins(row, code);
            }
        }
        Ok((first as u32, modules.len() as u32))
    }

    /// Where a file's twins are that may run aboard, and their originals.
    fn twins(&mut self, row: usize, code: TwinCode) {
        self.put64(row + offset_of!(ModuleRow, entry), code.entry);
        let words = [code.twins, code.originals].into_iter().flatten();
        for (index, address) in words.enumerate() {
            self.put64(row + offset_of!(ModuleRow, twins) + index * size_of::<u64>(), address);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(align_of::<EntryRow>()), 0);
        self.put(row + offset_of!(ModuleRow, first_entry), self.bytes.len() as u32);
        self.put(row + offset_of!(ModuleRow, entries), code.entries.len() as u32);
        for entry in code.entries {
            self.bytes.extend([entry.original.to_ne_bytes(), entry.twin.to_ne_bytes()].as_flattened());
        }
    }

    /// By what a file's yields are switched on.
    fn switches(&mut self, row: usize, switches: Switches) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align_of::<SwitchRow>()), 0);
        self.put64(row + offset_of!(ModuleRow, entry), switches.entry);
        for (index, address) in switches.code.into_iter().enumerate() {
            self.put64(row + offset_of!(ModuleRow, code) + index * size_of::<u64>(), address);
        }
        self.put(row + offset_of!(ModuleRow, first_switch), self.bytes.len() as u32);
        self.put(row + offset_of!(ModuleRow, switches), switches.rows.len() as u32);
        for row in switches.rows {
            self.bytes.extend([row.place.to_ne_bytes(), row.resume.to_ne_bytes()].as_flattened());
        }
    }

    fn put(&mut self, offset: usize, value: u32) {
        self.bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn put64(&mut self, offset: usize, value: u64) {
        self.bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
    }

    fn string(&mut self, text: &OsStr, whose: &Path) -> Result<u32, LaunchError> {
        if text.as_bytes().contains(&0) {
            return Err(LaunchError::ZeroByte(whose.to_owned()));
        }
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        Ok(at)
    }

    fn strings(&mut self, texts: &[OsString], whose: &Path) -> Result<u32, LaunchError> {
        let at = self.bytes.len() as u32;
        for text in texts {
            self.string(text, whose)?;
        }
        Ok(at)
    }
}

/// What a rewritten file says of its yields, if it is a `primary`'s, and of the twins that guests
/// run. One that cannot be read is refused when it is started.
fn of_file(file: &Path, primary: bool) -> (Option<Switches>, Option<TwinCode>) {
    let bytes = read_without_last_code(file).unwrap_or_default();
    let Some(rewritten) = RewrittenFile::of(&bytes) else { return (None, None) };
    (primary.then(|| rewritten.switches()), rewritten.twin_code())
}

fn is_of(text: &OsStr, name: &str) -> bool {
    text.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
}

fn value_of<'v>(variables: &'v [OsString], name: &str) -> Option<&'v OsStr> {
    let text = variables.iter().find(|text| is_of(text, name))?;
    Some(OsStr::from_bytes(&text.as_bytes()[name.len() + 1..]))
}

/// An environment with one variable changed, or more than it had.
fn with(variables: &[OsString], name: &str, value: &OsStr) -> Vec<OsString> {
    let changed = assignment(OsStr::new(name), value);
    let mut all = variables.to_vec();
    match all.iter_mut().find(|text| is_of(text, name)) {
        Some(text) => *text = changed,
        None => all.push(changed),
    }
    all
}
