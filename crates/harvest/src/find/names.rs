//! What stands at an address: its instruction, and its line of source as far as debug information
//! tells.

use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use image::Image;
use records::plan::{Place, SourceLine};
use std::path::{Path, PathBuf};
use units::Svma;

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// What a file says of its addresses.
pub struct Names<'d> {
    image: Option<Image<'d>>,
    lines: Option<Context<Slice<'d>>>,
}

impl<'d> Names<'d> {
    /// `debug` is the file's separate debug information, if any. Compressed debug information is
    /// left alone.
    pub fn of(data: &'d [u8], debug: Option<&'d [u8]>) -> Self {
        let image = Image::parse(data).ok();
        let lines = match debug.and_then(|debug| Image::parse(debug).ok()) {
            Some(debug) => context(&debug),
            None => image.as_ref().and_then(context),
        };
        Self { image, lines }
    }

    /// Completes a place: its instruction, and its line of source.
    pub fn complete(&self, place: &mut Place) {
        place.instruction = self.instruction(place.address);
        place.source = self.source(place.address);
    }

    fn instruction(&self, address: u64) -> String {
        let bytes = self.image.as_ref().and_then(|image| image.bytes_from(Svma(address)));
        let mut decoder = Decoder::with_ip(64, bytes.unwrap_or(&[]), address, DecoderOptions::NONE);
        let mut text = String::new();
        IntelFormatter::new().format(&decoder.decode(), &mut text);
        text
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
