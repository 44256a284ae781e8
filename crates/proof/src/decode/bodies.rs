//! Rule R12 for functions without twins: liveness depends on their instructions, too.

use super::{Opinion, Second};
use crate::Context;
use crate::liveness::Liveness;
use crate::rule::Rule;
use iced_x86::{Decoder, DecoderOptions};
use rayon::prelude::*;
use units::Svma;

impl Context<'_> {
    /// Compares what both decoders say of all instructions that liveness follows and that are no
    /// unit's.
    pub(crate) fn decoders_agree_on_others(&self, dead: &Liveness<'_, '_>) {
        let others = dead.bodies.par_iter().enumerate().skip(self.mapping.units.len());
        others.with_min_len(64).for_each_init(Second::default, |second, (index, body)| {
            let start = dead.code.start(index as u32);
            for block in &body.blocks {
                let (from, size) = (start + u64::from(block.at), (block.end_at - block.at) as usize);
                let code = self.original.bytes_at(Svma(from), size).unwrap_or(&[]);
                let mut decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
                while decoder.can_decode() {
                    let at = decoder.position();
                    let insn = decoder.decode();
                    let effect = second.effect(&insn);
                    let opinion = second.opinion(&code[at..], &insn, Some(&effect));
                    if let Opinion::Contradicts(what) = opinion {
                        let what = format!("the decoders read this instruction differently: {what}");
                        self.findings.at(Rule::Mapping, insn.ip(), what);
                    }
                }
            }
        });
    }
}
