//! Names for addresses: function and source line, from symbols and debug information as far as there are any.

use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use image::{Image, Module};
use records::plan::{Place, SourceLine};
use std::path::{Path, PathBuf};

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// What is known about the addresses of a module.
pub struct Names<'d> {
    lines: Option<Context<Slice<'d>>>,
}

impl<'d> Names<'d> {
    /// `debug` is the module's separate debug information, if any. Compressed debug information is left alone.
    pub fn of(module: &Module<'d>, data: &'d [u8], debug: Option<&'d [u8]>) -> Self {
        let _ = module;
        let image = debug.and_then(|debug| Image::parse(debug).ok()).or_else(|| Image::parse(data).ok());
        Self { lines: image.and_then(|image| context(&image)) }
    }

    /// A place of a unit, named.
    pub fn place(&self, module: &Module<'_>, unit: usize, address: u64, instruction: String) -> Place {
        let start = module.units[unit].start;
        Place {
            address,
            instruction,
            function: module.name(unit).map(|name| String::from_utf8_lossy(name).into_owned()),
            offset: (address - start.0) as u32,
            source: self.source(address),
        }
    }

    fn source(&self, address: u64) -> Option<SourceLine> {
        let location = self.lines.as_ref()?.find_location(address).ok()??;
        Some(SourceLine { file: location.file?.to_owned(), line: location.line? })
    }
}

fn context<'d>(image: &Image<'d>) -> Option<Context<Slice<'d>>> {
    const SHF_COMPRESSED: u64 = 1 << 11;
    image.section(".debug_line")?;
    let section = |id: SectionId| -> Result<Slice<'d>, gimli::Error> {
        let bytes = image
            .section(id.name())
            .filter(|section| section.flags & SHF_COMPRESSED == 0)
            .and_then(|section| image.section_bytes(section))
            .unwrap_or(&[]);
        Ok(EndianSlice::new(bytes, LittleEndian))
    };
    Context::from_dwarf(Dwarf::load(section).ok()?).ok()
}

/// Where distributions put the debug information of a file with this build id.
pub fn separate(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest = crate::cache::hex(rest);
    let path = Path::new("/usr/lib/debug/.build-id").join(format!("{first:02x}/{rest}.debug"));
    path.is_file().then_some(path)
}
