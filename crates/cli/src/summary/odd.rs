//! What a reader should stumble over: claims that contradict each other or what was measured.

use records::machine::Machine;

pub(super) fn lines(machine: &Machine) -> String {
    let mut text = String::new();
    for c in &machine.host.contradictions {
        let claims: Vec<String> =
            c.claims.iter().map(|(source, says)| format!("{source} says {says}")).collect();
        text.push_str(&format!("  {}: {}; {}\n", c.about, claims.join(", "), c.judgement));
    }
    for level in &machine.levels {
        let (Some(size), Some(claimed)) = (level.size.estimate(), level.size_claimed.value()) else {
            continue;
        };
        if size.lo > claimed * 1.25 || size.hi < claimed * 0.5 {
            text.push_str(&format!(
                "  {}: the host claims {}, but {} could be used\n",
                level.name,
                units::Bytes(claimed as u64),
                units::Bytes(size.value as u64)
            ));
        }
    }
    let tlb = machine.experiments.tlb.as_ref().and_then(|o| o.result.as_ref());
    let kinds = tlb.map_or(&[][..], |t| &t.kinds);
    for kind in kinds {
        // Scattered pages are held against the same buffers' entries for pages that lie together: the summary does.
        if kind.pages.asked == "4K" && kinds.iter().any(|k| k.pages.asked == "4K-cut") {
            continue;
        }
        for level in &kind.levels {
            let (Some(found), Some(claimed)) = (level.entries.estimate(), level.claimed.value()) else {
                continue;
            };
            if found.hi < claimed * 0.9 || found.lo > claimed * 1.1 {
                text.push_str(&format!(
                    "  L{} dTLB, {} pages: CPUID claims {claimed:.0} entries, {:.0} could be used (others may share it)\n",
                    level.level, kind.pages.asked, found.value
                ));
            }
        }
    }
    if let Some(latency) = machine.experiments.latency.as_ref().and_then(|o| o.result.as_ref()) {
        for curve in latency.curves.iter().filter(|c| c.pages.share < 0.95) {
            text.push_str(&format!(
                "  only {:.0}% of the memory of a curve had the {} pages that were asked for\n",
                curve.pages.share * 100.0,
                curve.pages.asked
            ));
        }
    }
    text
}
