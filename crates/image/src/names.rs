//! What stands at an address, for people: its instruction, and its function and line of source as
//! far as debug information tells.

use crate::Image;
use crate::elf::bytes::hex;
use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::path::{Path, PathBuf};
use units::Svma;

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// What a file says of its addresses.
pub struct Names<'d> {
    image: Option<Image<'d>>,
    lines: Option<Context<Slice<'d>>>,
}

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub file: String,
    pub line: u32,
}

/// A function at an address. In a list of them the innermost inlined one is first, the one that has
/// code of its own last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// As the linker knows it.
    pub function: Option<String>,
    pub line: Option<Line>,
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

    /// The instruction, in Intel's syntax.
    pub fn instruction(&self, address: Svma) -> String {
        let bytes = self.image.as_ref().and_then(|image| image.bytes_from(address));
        let mut decoder = Decoder::with_ip(64, bytes.unwrap_or(&[]), address.0, DecoderOptions::NONE);
        let mut text = String::new();
        IntelFormatter::new().format(&decoder.decode(), &mut text);
        text
    }

    pub fn line(&self, address: Svma) -> Option<Line> {
        let location = self.lines.as_ref()?.find_location(address.0).ok()??;
        Some(Line { file: location.file?.to_owned(), line: location.line? })
    }

    /// The functions at an address by debug information; none without it.
    pub fn frames(&self, address: Svma) -> Vec<Frame> {
        let mut found = Vec::new();
        let frames = self.lines.as_ref().and_then(|lines| lines.find_frames(address.0).skip_all_loads().ok());
        if let Some(mut frames) = frames {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
                let line =
                    frame.location.and_then(|at| Some(Line { file: at.file?.to_owned(), line: at.line? }));
                found.push(Frame { function: name, line });
            }
        }
        found
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
pub fn separate_debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let name = format!("{}/{}.debug", hex(&[*first]), hex(rest));
    Some(Path::new("/usr/lib/debug/.build-id").join(name))
}
