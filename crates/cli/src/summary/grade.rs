//! How far the figures of the run can be trusted.

use records::machine::{Machine, Verdict};
use units::Quantity;

pub(super) fn lines(machine: &Machine, colour: bool) -> String {
    let grade = &machine.run.grade;
    let (word, paint) = match grade.verdict {
        Verdict::Quiet => ("quiet", "\x1b[32m"),
        Verdict::Fair => ("fair", "\x1b[33m"),
        Verdict::Noisy => ("noisy", "\x1b[31m"),
    };
    let word = if colour { format!("{paint}{word}\x1b[0m") } else { word.to_owned() };
    let blocks = &machine.run.blocks;
    let mut text = format!("Grade: {word} ({} blocks, {} void)\n", blocks.valid, blocks.voided);
    for reason in &grade.reasons {
        text.push_str(&format!("  - {reason}\n"));
    }
    let rob = machine.experiments.rob.as_ref().and_then(|rob| rob.result.as_ref());
    let mlp = machine.experiments.mlp.as_ref().and_then(|mlp| mlp.result.as_ref());
    if machine.levels.iter().any(|l| disturbed(&l.latency.cycles))
        || rob.is_some_and(|rob| rob.cliffs.iter().any(|c| disturbed(&c.gap)))
        || mlp.is_some_and(|mlp| mlp.kinds.iter().any(|k| disturbed(&k.effective)))
    {
        text.push_str(
            "  ~ before a figure: taken beside other work; the quiet value may lie outside its interval\n",
        );
    }
    text
}

fn disturbed(quantity: &Quantity) -> bool {
    matches!(quantity, Quantity::Resolved { disturbed: Some(_), .. })
}
