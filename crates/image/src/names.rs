//! What stands at an address, for people: its instruction, and its function and line of source as
//! far as debug information tells.

use crate::Image;
use crate::elf::bytes::hex;
use addr2line::Context;
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, SectionId, UnitOffset, UnitRef};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use units::Svma;

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// What a file says of its addresses.
pub struct Names<'d> {
    image: Option<Image<'d>>,
    lines: Option<Context<Slice<'d>>>,
    /// What is told beside the file.
    told: Option<&'d ToldFrames>,
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

/// The functions and lines at addresses, each from its address to the next one's.
pub type ToldFrames = BTreeMap<u64, Vec<Frame>>;

fn at(told: &ToldFrames, address: Svma) -> &[Frame] {
    told.range(..=address.0).next_back().map_or(&[], |(_, frames)| frames)
}

/// The same for compilers, which find a place again by it whatever stands before the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledFrame {
    /// As the linker knows it.
    pub function: String,
    /// Lines from the function's first one on.
    pub line_offset: u32,
    pub column: u32,
    /// Its code is part of its caller's.
    pub is_inlined: bool,
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
        Self { image, lines, told: None }
    }

    /// Code that was made at run time has no debug information: its runtime tells the lines.
    #[must_use]
    pub fn with_frames(self, frames: &'d ToldFrames) -> Self {
        Self { told: Some(frames).filter(|frames| !frames.is_empty()), ..self }
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
        if let Some(told) = self.told {
            return at(told, address).first()?.line.clone();
        }
        let location = self.lines.as_ref()?.find_location(address.0).ok()??;
        Some(Line { file: location.file?.to_owned(), line: location.line? })
    }

    /// The functions at an address by debug information; none without it.
    pub fn frames(&self, address: Svma) -> Vec<Frame> {
        if let Some(told) = self.told {
            return at(told, address).to_vec();
        }
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

    /// The functions at an address as compilers find them again; none unless all of that is known
    /// of each. The innermost inlined one is first.
    pub fn compiled_frames(&self, address: Svma) -> Option<Vec<CompiledFrame>> {
        let lines = self.lines.as_ref()?;
        let unit = lines.find_dwarf_and_unit(address.0).skip_all_loads()?;
        let mut frames = lines.find_frames(address.0).skip_all_loads().ok()?;
        let mut found = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            let location = frame.location?;
            let start = start_line(unit, frame.dw_die_offset?)?;
            found.push(CompiledFrame {
                function: frame.function?.raw_name().ok()?.into_owned(),
                line_offset: location.line?.checked_sub(start)?,
                column: location.column.unwrap_or(0),
                is_inlined: true,
            });
        }
        found.last_mut()?.is_inlined = false;
        Some(found)
    }
}

/// The line at which a function is declared; an inlined call names the function elsewhere.
fn start_line(unit: UnitRef<'_, Slice<'_>>, mut at: UnitOffset) -> Option<u32> {
    const MOST_STEPS: usize = 4;
    for _ in 0..MOST_STEPS {
        let entry = unit.entry(at).ok()?;
        let line = entry.attr_value(gimli::DW_AT_decl_line).and_then(|line| line.udata_value());
        if let Some(line) = line {
            return u32::try_from(line).ok();
        }
        let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
        match origin.or_else(|| entry.attr_value(gimli::DW_AT_specification))? {
            AttributeValue::UnitRef(origin) => at = origin,
            _ => return None,
        }
    }
    None
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
