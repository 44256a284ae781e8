//! The documents, each with its claims.

use crate::document::Ledger;
use crate::{lat_mem_rd, mlp, msh, origin2000, vtune};

pub const DOCUMENTS: &[&Ledger] =
    &[&mlp::LEDGER, &origin2000::LEDGER, &lat_mem_rd::LEDGER, &vtune::LEDGER, &msh::LEDGER];

pub fn find(name: &str) -> Option<&'static Ledger> {
    DOCUMENTS.iter().copied().find(|document| document.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_complete_and_its_id_unique() {
        for document in DOCUMENTS {
            assert!(document.claims.len() >= 6, "{}", document.name);
            for claim in document.claims {
                let same = document.claims.iter().filter(|other| other.id == claim.id).count();
                assert_eq!(same, 1, "{}: {}", document.name, claim.id);
                for text in [claim.place, claim.quote, claim.statistic, claim.command] {
                    assert!(!text.is_empty() && !text.contains('\n'), "{}: {text}", claim.id);
                }
                if let Some((lo, hi)) = claim.paper {
                    assert!(lo <= hi, "{}", claim.id);
                }
            }
        }
    }
}
