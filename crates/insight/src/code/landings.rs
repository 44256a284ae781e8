//! Where samples of each load land, for all loads of a file: what [`Code::cause`] says of a sample,
//! asked of every instruction. With it as a table, samples that a fleet keeps by build id and
//! address become loads by a join, without the files.

use crate::code::cause::{Cause, Code};
use crate::code::dependence::patterns;
use crate::code::names::demangled;
use image::names::Names;
use image::{ImageError, Module};
use records::profile::Pattern;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{FileOffset, Svma};

/// An instruction at which a sample means that the core waited for a load or store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// Where it begins and ends in the file, and its stated address.
    pub offsets: (FileOffset, FileOffset),
    pub address: Svma,
    pub waits_for: WaitedFor,
}

/// A load or store that samples name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedFor {
    pub offset: FileOffset,
    pub address: Svma,
    /// It only writes memory.
    pub is_store: bool,
    pub pattern: Pattern,
    pub function: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
}

/// All landings of a file, in the order of their addresses; given out as they are found, so that no
/// more than a function of a large file is decoded at once.
pub fn landings(data: &[u8], debug: Option<&[u8]>, mut found: impl FnMut(Landing)) -> Result<(), ImageError> {
    let image = image::Image::parse(data)?;
    let starts: Vec<Svma> = Module::around(data, debug, [])?.units.iter().map(|unit| unit.start).collect();
    let code = Code::of(Module::around(data, debug, starts)?, false);
    let names = Names::of(data, debug);
    let mut texts = Texts::default();
    for number in 0..code.module.units.len() {
        in_unit(&code, &names, &image, number, &mut texts, &mut found);
        code.forget();
    }
    Ok(())
}

/// Names that many loads share.
#[derive(Default)]
struct Texts {
    all: std::collections::HashSet<Arc<str>>,
}

impl Texts {
    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.all.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.all.insert(Arc::clone(&new));
        new
    }
}

fn in_unit(
    code: &Code<'_>,
    names: &Names<'_>,
    image: &image::Image<'_>,
    number: usize,
    texts: &mut Texts,
    found: &mut impl FnMut(Landing),
) {
    let module = &code.module;
    let start = module.units[number].start;
    let mut landing: Vec<(Svma, u8, Cause)> = Vec::new();
    for insn in &module.decoded[number].insns {
        let address = Svma(start.0 + u64::from(insn.at));
        let cause = code.cause(address);
        if matches!(cause, Cause::Load(_) | Cause::Store(_)) {
            landing.push((address, insn.len, cause));
        }
    }
    let loads = landing.iter().filter_map(|(.., cause)| match cause {
        Cause::Load(load) => Some(*load),
        _ => None,
    });
    let by_code = patterns(code, loads);
    let function = module.name(number).map(|name| demangled(&String::from_utf8_lossy(name)));
    let mut known: BTreeMap<Svma, WaitedFor> = BTreeMap::new();
    for (address, bytes, cause) in landing {
        let (Cause::Load(waits) | Cause::Store(waits)) = cause else { continue };
        let Some((from, offset)) = image.file_offset(address).zip(image.file_offset(waits)) else { continue };
        let access = known.entry(waits).or_insert_with(|| {
            let frames = names.frames(waits);
            let line = frames.first().and_then(|frame| frame.line.clone()).or_else(|| names.line(waits));
            let named = frames.last().and_then(|frame| frame.function.as_deref()).map(demangled);
            WaitedFor {
                offset,
                address: waits,
                is_store: matches!(cause, Cause::Store(_)),
                pattern: by_code.get(&waits).and_then(|code| code.pattern).unwrap_or(Pattern::Unresolved),
                function: function.as_ref().or(named.as_ref()).map(|name| texts.shared(name)),
                file: line.as_ref().map(|line| texts.shared(&line.file)),
                line: line.map(|line| line.line),
            }
        });
        let offsets = (from, FileOffset(from.0 + u64::from(bytes)));
        found(Landing { offsets, address, waits_for: access.clone() });
    }
}
