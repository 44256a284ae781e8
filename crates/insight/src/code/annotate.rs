//! The code of functions that took time, with the samples of each instruction.

use crate::code::cause::Cause;
use crate::code::source::Source;
use iced_x86::{Decoder, DecoderOptions};
use records::profile::{AnnotatedFunction, AnnotatedInstruction};
use std::collections::BTreeMap;
use units::Svma;

/// Instructions in front of and behind each one with samples that are shown, too.
const AROUND: usize = 8;

/// Samples of one module, by the instruction that they are put down to.
#[derive(Default)]
pub(crate) struct Attributed {
    by_address: BTreeMap<Svma, Samples>,
}

#[derive(Clone, Copy, Default)]
struct Samples {
    count: u64,
    is_waited_for: bool,
}

impl Attributed {
    /// Counts samples at an instruction, by what they mean.
    pub(crate) fn count(&mut self, sampled: Svma, cause: Cause, samples: u64) {
        let (at, is_waited_for) = match cause {
            Cause::Load(at) | Cause::Store(at) => (at, true),
            Cause::Computing | Cause::Unclear(_) => (sampled, false),
        };
        let counted = self.by_address.entry(at).or_default();
        counted.count += samples;
        counted.is_waited_for |= is_waited_for;
    }

    /// The core did not wait for its memory after all.
    pub(crate) fn computes(&mut self, at: Svma) {
        if let Some(counted) = self.by_address.get_mut(&at) {
            counted.is_waited_for = false;
        }
    }

    /// A unit's code around its samples.
    pub(crate) fn function(&self, source: &Source<'_>, unit: usize, samples: u64) -> AnnotatedFunction {
        let module = &source.code.module;
        let start = module.units[unit].start;
        AnnotatedFunction {
            module: source.file.path.clone(),
            function: source.function(start),
            address: start.0,
            samples,
            instructions: self.instructions(source, unit),
        }
    }

    fn instructions(&self, source: &Source<'_>, unit: usize) -> Vec<AnnotatedInstruction> {
        let all = line_by_line(source, unit);
        let sampled: Vec<usize> = all
            .iter()
            .enumerate()
            .filter(|(_, (address, _))| self.by_address.contains_key(address))
            .map(|(index, _)| index)
            .collect();
        let mut found = Vec::new();
        let mut next = 0;
        for index in sampled {
            let to = (index + AROUND + 1).min(all.len());
            for &(address, bytes) in &all[next.max(index.saturating_sub(AROUND)).min(to)..to] {
                let samples = self.by_address.get(&address).copied().unwrap_or_default();
                let line = source.names.line(address);
                found.push(AnnotatedInstruction {
                    address: address.0,
                    bytes,
                    text: source.names.instruction(address),
                    file: line.as_ref().map(|line| line.file.clone()),
                    line: line.map(|line| line.line),
                    samples: samples.count,
                    is_waited_for: samples.is_waited_for,
                });
            }
            next = next.max(to);
        }
        found
    }
}

/// All instructions of a unit, with their sizes. Those that control flow is not seen to reach, as
/// the handlers of interpreters, are decoded one behind the other from the last one that is known.
fn line_by_line(source: &Source<'_>, unit: usize) -> Vec<(Svma, u32)> {
    let module = &source.code.module;
    let start = module.units[unit].start;
    let code = module.code(unit);
    let known = &module.decoded[unit].insns;
    let mut found = Vec::new();
    let mut at: u32 = 0;
    while (at as usize) < code.len() {
        let next = known.partition_point(|insn| insn.at < at);
        if let Some(insn) = known.get(next).filter(|insn| insn.at == at) {
            found.push((Svma(start.0 + u64::from(at)), insn.end() - at));
            at = insn.end();
            continue;
        }
        let rest = &code[at as usize..];
        let instruction = Decoder::with_ip(64, rest, start.0 + u64::from(at), DecoderOptions::NONE).decode();
        let end = at + instruction.len() as u32;
        match known.get(next) {
            // Data among code, or out of step with what is known: go on there.
            Some(insn) if instruction.is_invalid() || end > insn.at => at = insn.at,
            None if instruction.is_invalid() => break,
            _ => {
                found.push((Svma(start.0 + u64::from(at)), end - at));
                at = end;
            }
        }
    }
    found
}
