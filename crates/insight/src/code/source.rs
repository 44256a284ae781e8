//! A file that was mapped: its code around what was sampled, and the names in it.

use crate::code::cause::Code;
use crate::code::names::demangled;
use image::Module;
use image::elf::imports::Import;
use image::names::{Frame, Line, Names, ToldFrames};
use std::collections::BTreeMap;
use std::path::Path;
use units::{FileOffset, Svma};

/// A file that was mapped, with its bytes.
pub struct ModuleFile {
    /// The number of its mapping in the tally.
    pub what: u32,
    /// As the record spells it.
    pub path: String,
    pub data: Vec<u8>,
    /// Its separate debug information.
    pub debug: Option<Vec<u8>>,
    /// Functions and lines of code that was made at run time, as its runtime tells them.
    pub told: ToldFrames,
}

/// The same, read.
pub(crate) struct Source<'d> {
    pub file: &'d ModuleFile,
    pub code: Code<'d>,
    pub names: Names<'d>,
}

/// The functions and lines at an address, the innermost inlined one first; the last one has code of
/// its own.
pub(crate) type Frames = Vec<NamedFrame>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedFrame {
    pub function: Option<String>,
    pub line: Option<Line>,
}

/// Whether a function of a file is called by where it begins, for want of a name.
pub(crate) fn is_start(function: &str, file: &str) -> bool {
    function.strip_prefix(file_name(file).as_ref()).is_some_and(|rest| rest.starts_with("+0x"))
}

fn file_name(path: &str) -> std::borrow::Cow<'_, str> {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy()
}

impl<'d> Source<'d> {
    /// Reads a file and decodes its functions that hold these places; `exact` as for [`Code`].
    pub(crate) fn of(
        file: &'d ModuleFile,
        image: &image::Image<'d>,
        sampled: &[FileOffset],
        exact: bool,
    ) -> Option<Self> {
        let stated = sampled.iter().filter_map(|offset| image.address_of(*offset));
        let debug = file.debug.as_deref();
        let code = Code::of(Module::around(&file.data, debug, stated).ok()?, exact);
        Some(Self { file, code, names: Names::of(&file.data, debug).with_frames(&file.told) })
    }

    /// What stands at an address: by debug information, and the function by its symbol where there
    /// is one. Never empty.
    pub(crate) fn frames(&self, address: Svma) -> Frames {
        let named = |frame: Frame| NamedFrame {
            function: frame.function.as_deref().map(demangled),
            line: frame.line,
        };
        let mut frames: Frames = self.names.frames(address).into_iter().map(named).collect();
        if frames.is_empty() {
            frames.push(NamedFrame { function: None, line: self.names.line(address) });
        }
        let own = frames.last_mut().expect("there is one");
        own.function = self.function(address).or(own.function.take());
        frames
    }

    /// For a function without a name: its file and where it begins.
    pub(crate) fn start(&self, address: Svma) -> String {
        let file = file_name(&self.file.path);
        let unit = self.code.module.unit_at(address);
        let start = unit.map_or(address, |unit| self.code.module.units[unit].start);
        format!("{file}+{:#x}", start.0)
    }

    /// The name of the function that has an address, by its symbol; `name@plt` in a linker's stub.
    pub(crate) fn function(&self, address: Svma) -> Option<String> {
        self.symbol(address).map(|name| demangled(&name)).or_else(|| self.stub(address))
    }

    /// The same, as the linker knows it.
    pub(crate) fn symbol(&self, address: Svma) -> Option<String> {
        let name = self.code.module.name(self.code.module.unit_at(address)?)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// The linker's stub at an address: stubs have 8 bytes or 16; all of a section are one unit.
    fn stub(&self, address: Svma) -> Option<String> {
        let at = |back: u64| {
            let start = (address.0 & !7).checked_sub(back)?;
            self.code.module.imports.stub(Svma(start))
        };
        match [0, 8].into_iter().find_map(at)? {
            Import::Named(name) => Some(format!("{}@plt", demangled(&String::from_utf8_lossy(name)))),
            Import::Indirect => None,
        }
    }

    /// A unit's name, of which these instructions were sampled, with the samples of each.
    pub(crate) fn unit_name(&self, unit: usize, sampled: &BTreeMap<Svma, u64>) -> Option<String> {
        let start = self.code.module.units[unit].start;
        if self.code.module.name(unit).is_some() {
            return self.function(start);
        }
        let mut stubs: BTreeMap<String, u64> = BTreeMap::new();
        for (&address, samples) in sampled {
            *stubs.entry(self.stub(address)?).or_default() += samples;
        }
        let others = if stubs.len() > 1 { " and others" } else { "" };
        let (most, _) = stubs.into_iter().max_by_key(|(_, samples)| *samples)?;
        Some(most + others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_without_a_name_is_told_from_others() {
        assert!(is_start("libruby-3.1.so.3.1.2+0x1e21a0", "/usr/lib/libruby-3.1.so.3.1.2"));
        assert!(!is_start("rb_st_lookup", "/usr/lib/libruby-3.1.so.3.1.2"));
        assert!(!is_start("libruby+0x10", "/usr/lib/libruby-3.1.so.3.1.2"));
    }
}
