//! The reproduction record on the page: a document's claims beside this machine.

use crate::parts::{Cell, Out, Table};
use crate::text::escape;
use records::reproduction::{ClaimOutcome, ClaimVerdict, Reproduction};

pub(crate) fn sections(found: &Reproduction, out: &mut Out) {
    out.section("claims", "Claims");
    let of = |verdict| found.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let counts: Vec<String> = ClaimVerdict::ALL
        .into_iter()
        .filter(|&verdict| of(verdict) > 0)
        .map(|verdict| format!("{} {}", of(verdict), verdict.words()))
        .collect();
    out.say(&format!("{}. Here: {}.", escape(&found.title), escape(&found.processor)));
    out.say(&format!("Of {} claims: {}.", found.claims.len(), counts.join(", ")));
    let head = ["claim", "place", "compared", "paper", "here", "here over paper", "holds if", "verdict"];
    let mut table = Table::with_head("Claims", &head);
    for claim in &found.claims {
        table.row(vec![
            Cell::text(&claim.id),
            Cell::text(&claim.place),
            Cell::text(&claim.statistic),
            Cell::quantity(&claim.paper),
            Cell::quantity(&claim.here),
            Cell::quantity(&claim.ratio),
            Cell::text(&claim.shape),
            Cell::text(claim.verdict.words()),
        ]);
    }
    out.table(&table);
    let why = |claim: &ClaimOutcome| {
        claim.why.as_ref().map(|why| format!("{}: {}", escape(&claim.id), escape(why)))
    };
    out.list(&found.claims.iter().filter_map(why).collect::<Vec<_>>());
    let reading = |claim: &ClaimOutcome| {
        let reading = claim.reading.as_ref()?;
        Some(format!("{}, read differently: {}", escape(&claim.id), escape(reading)))
    };
    out.list(&found.claims.iter().filter_map(reading).collect::<Vec<_>>());
}
