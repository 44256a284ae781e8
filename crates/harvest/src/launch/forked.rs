//! Switches the yields of a primary's forked children off. A child inherits them as they were at
//! the fork, but no guest ever comes aboard it.
//!
//! The launcher writes to the child's memory (`/proc/PID/mem`): so it also works in a child under
//! strict seccomp. Only children that live on for a while (a server's workers) are switched, not
//! those that execute another program at once. Where the kernel forbids it, their yields stay on.

use super::page::Page;
use super::request::Program;
use crate::rewrite::rewritten::RewrittenFile;
use runtime_abi::control::{Control, FORKED, ON};
use std::fs::{File, OpenOptions};
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A jump, or a `nop` of the same length.
type Instruction = [u8; 5];

pub(super) struct Forked {
    /// The primary's rewritten files, its own first.
    files: Vec<PathBuf>,
    /// How many forks are known.
    known: u64,
    /// Children that were new at the last look.
    young: Vec<u32>,
    /// Of each, by its addresses: the instruction that switches, as it is while switched off; its
    /// first byte says which.
    switches: Option<Vec<Vec<(u64, Instruction)>>>,
}

impl Forked {
    pub(super) fn new(primary: &Program) -> Self {
        let libraries = primary.modules.iter().map(|module| &module.file);
        let files = std::iter::once(&primary.file).chain(libraries).cloned().collect();
        Self { files, known: 0, young: Vec::new(), switches: None }
    }

    /// Switches the children off that were new at the last look and still live, and notes new ones.
    pub(super) fn look(&mut self, page: &Page) {
        for pid in std::mem::take(&mut self.young) {
            if let Some(memory) = self.memory(pid) {
                self.switch_off(&memory, page);
            }
        }
        let forks = page.u64(offset_of!(Control, forks));
        for fork in self.known.max(forks.saturating_sub(FORKED as u64))..forks {
            let at = offset_of!(Control, forked) + size_of::<u32>() * (fork as usize % FORKED);
            self.young.push(page.u32(at));
        }
        self.known = forks;
    }

    /// The memory of a process, if it runs the primary's file. That is asked once its memory is
    /// open: what it executes from then on has another.
    fn memory(&self, pid: u32) -> Option<File> {
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).ok()?;
        let (its, ours) =
            (std::fs::metadata(format!("/proc/{pid}/exe")).ok()?, self.files.first()?.metadata().ok()?);
        ((its.dev(), its.ino()) == (ours.dev(), ours.ino())).then_some(memory)
    }

    fn switch_off(&mut self, memory: &File, page: &Page) {
        let all = || self.files.iter().map(|file| switches(file).unwrap_or_default()).collect();
        let switches = self.switches.get_or_insert_with(all);
        for (module, switches) in switches.iter().enumerate() {
            let Some(bias) = page.bias(module) else { continue };
            for &(place, off) in switches {
                let at = place.wrapping_add(bias);
                let mut there = Instruction::default();
                // Anything else there is a breakpoint, or another program's code.
                let on = [&[ON], &off[1..]].concat();
                if memory.read_exact_at(&mut there, at).is_ok() && there[..] == on {
                    let _ = memory.write_all_at(&off[..1], at);
                }
            }
        }
    }
}

fn switches(file: &Path) -> Option<Vec<(u64, Instruction)>> {
    let bytes = std::fs::read(file).ok()?;
    let image = image::Image::parse(&bytes).ok()?;
    let there =
        |place| bytes.get(image.file_offset(units::Svma(place))?.0 as usize..)?.first_chunk().copied();
    let rows = RewrittenFile::of(&bytes)?.switches().rows;
    rows.iter().map(|row| Some((row.place, there(row.place)?))).collect()
}
