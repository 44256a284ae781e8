//! What a cliff means. Pure.
//!
//! The mixed filler's cliff is the re-order buffer's: it uses little of everything else. Another
//! filler's cliff at the same place is the buffer again; one before it is what that filler uses up;
//! one behind it means that several of these instructions share an entry.

use kernels::Filler;
use records::machine::RunsOut;
use units::Estimate;

/// Cliffs that differ by no more than this are one.
const SAME_CLIFF_TOLERANCE: f64 = 0.06;
/// Beyond that many times the buffer's, entries are shared.
const SHARED_ENTRIES_RATIO: f64 = 1.15;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CliffMeaning {
    pub runs_out: RunsOut,
    /// Entries of it.
    pub capacity: Option<Estimate>,
    pub words: String,
}

/// The instructions in the buffer at the last gap at which two misses overlap: the fillers, and the
/// misses. The cliff found lies half a filler behind that gap.
pub(crate) fn instructions(cliff: Estimate) -> Estimate {
    Estimate::new(cliff.value + 1.5, cliff.lo + 1.5, cliff.hi + 1.5)
}

/// `single` are the cliffs of fillers that use one kind of register only.
pub(crate) fn of(
    filler: Filler,
    cliff: Estimate,
    mixed: Option<Estimate>,
    single: &[Estimate],
) -> CliffMeaning {
    let inside = instructions(cliff);
    let Some(mixed) = mixed.map(instructions) else {
        return unknown("the mixed filler, with which it is compared, shows no cliff");
    };
    let ratio = inside.over(mixed);
    if filler == Filler::Mixed {
        return CliffMeaning {
            runs_out: RunsOut::ReorderBuffer,
            capacity: Some(inside),
            words: "the re-order buffer: the mixed filler uses few entries of every other resource"
                .to_owned(),
        };
    }
    if (ratio.value - 1.0).abs() <= SAME_CLIFF_TOLERANCE || ratio.contains(1.0) {
        return CliffMeaning {
            runs_out: RunsOut::ReorderBuffer,
            capacity: Some(inside),
            words: "the re-order buffer: the same cliff as the mixed filler, one entry each".to_owned(),
        };
    }
    if ratio.value >= SHARED_ENTRIES_RATIO {
        return CliffMeaning {
            runs_out: RunsOut::SharedEntries,
            capacity: Some(mixed),
            words: format!("the re-order buffer: {:.1} of these share an entry", ratio.value),
        };
    }
    if ratio.value > 1.0 {
        return unknown("a cliff slightly beyond the mixed filler's: neither one nor two share an entry");
    }
    exhausted(filler, cliff, inside, single)
}

fn exhausted(filler: Filler, cliff: Estimate, inside: Estimate, single: &[Estimate]) -> CliffMeaning {
    // The loop's two misses take a load queue entry each, and of everything else as good as
    // nothing.
    let (runs_out, capacity, what) = match filler {
        Filler::IntAdd => {
            (RunsOut::IntegerRegisters, cliff, "free integer registers (or flags renamed with them)")
        }
        Filler::VectorAdd => (RunsOut::VectorRegisters, cliff, "free vector registers"),
        Filler::Load => (RunsOut::LoadQueue, inside, "load queue entries"),
        Filler::Store => (RunsOut::StoreQueue, cliff, "store queue entries"),
        Filler::Branch => (RunsOut::Branches, cliff, "branches in flight"),
        Filler::TakenBranch => (RunsOut::Branches, cliff, "taken branches in flight"),
        Filler::Cmp => (RunsOut::Flags, cliff, "free registers for flags"),
        Filler::Alternating => {
            let alone = single.iter().map(|e| e.value).fold(0.0, f64::max);
            let words = if cliff.value > alone * (1.0 + SAME_CLIFF_TOLERANCE) {
                "registers: a later cliff than with one kind, so each kind has its own"
            } else {
                "registers: no later cliff than with one kind, so both kinds share registers"
            };
            return CliffMeaning {
                runs_out: RunsOut::Registers,
                capacity: Some(cliff),
                words: words.to_owned(),
            };
        }
        Filler::Nop { .. } | Filler::Mixed => {
            return unknown(
                "nops use only the re-order buffer, but their cliff is before the mixed filler's",
            );
        }
    };
    CliffMeaning { runs_out, capacity: Some(capacity), words: what.to_owned() }
}

fn unknown(why: &str) -> CliffMeaning {
    CliffMeaning { runs_out: RunsOut::Unknown, capacity: None, words: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(gap: f64) -> Estimate {
        Estimate::new(gap + 0.5, gap, gap + 1.0)
    }

    #[test]
    fn cliffs_of_a_known_core() {
        // As measured on a Zen 4.
        let mixed = Some(at(316.0));
        let of = |filler, gap| of(filler, at(gap), mixed, &[at(198.0), at(158.0)]);
        assert_eq!(of(Filler::Mixed, 316.0).capacity.unwrap().value, 318.0);
        let nop = of(Filler::Nop { bytes: 1 }, 1256.0);
        assert_eq!(nop.runs_out, RunsOut::SharedEntries);
        assert!(nop.words.contains("4.0 of these"), "{}", nop.words);
        assert_eq!(of(Filler::Nop { bytes: 9 }, 317.0).runs_out, RunsOut::ReorderBuffer);
        assert_eq!(of(Filler::IntAdd, 198.0).runs_out, RunsOut::IntegerRegisters);
        assert_eq!(of(Filler::Load, 134.0).runs_out, RunsOut::LoadQueue);
        assert_eq!(of(Filler::Store, 64.0).capacity.unwrap().value, 64.5);
        assert_eq!(of(Filler::Branch, 318.0).runs_out, RunsOut::ReorderBuffer);
        assert!(of(Filler::Alternating, 190.0).words.contains("both kinds share"));
        assert!(of(Filler::Alternating, 290.0).words.contains("its own"));
    }

    #[test]
    fn nothing_is_said_without_the_mix() {
        let m = of(Filler::Store, at(64.0), None, &[]);
        assert_eq!((m.runs_out, m.capacity), (RunsOut::Unknown, None));
    }
}
