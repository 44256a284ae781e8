//! A file that was mapped: its code around what was sampled, and the names in it.

use crate::code::Code;
use crate::names::demangled;
use image::Module;
use image::names::{Frame, Line, Names};
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
        Some(Self { file, code, names: Names::of(&file.data, debug) })
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
        let file = Path::new(&self.file.path).file_name().unwrap_or_default().to_string_lossy();
        let unit = self.code.module.unit_at(address);
        let start = unit.map_or(address, |unit| self.code.module.units[unit].start);
        format!("{file}+{:#x}", start.0)
    }

    /// The name of the function that has an address, by its symbol.
    pub(crate) fn function(&self, address: Svma) -> Option<String> {
        let unit = self.code.module.unit_at(address)?;
        self.code.module.name(unit).map(|name| demangled(&String::from_utf8_lossy(name)))
    }
}
