//! From a plan to rewritten files: each module's sites go to the rewriter, what comes back to the checker, and what is
//! proven (or whose mode the checker does not know yet, which the note says) into the cache.

use crate::cache::{Cache, Entry, Key, Made, Note, name_of};
use records::plan::{Because, Place, PlannedModule, Prefetch, Rejected, Role};
use records::run::Proof;
use std::collections::BTreeMap;
use std::path::Path;
use twin::{Bounds, Knowledge, Mode, Rewritten, Site, Sites, VectorWidth, Which};

/// Why there is no rewritten file.
#[derive(Debug, thiserror::Error)]
pub enum TwinsError {
    #[error("{path}: {why}")]
    Refused { path: String, why: String },
    #[error(
        "{path}: the rewrite was not proven, and not used: {why}; please report this program as a fault of Gleaner"
    )]
    Unproven { path: String, why: String },
    #[error("{path}: it has changed since it was looked through")]
    Changed { path: String },
    #[error("the cache of rewritten files: {}", records::plain(.0))]
    Cache(#[from] std::io::Error),
}

/// What makes one module's twin what it is.
struct Recipe {
    sites: BTreeMap<u64, Site>,
    role: Role,
    quantum: u32,
    width: VectorWidth,
}

/// The rewritten file of a module in its role.
pub fn get(cache: &Cache, module: &PlannedModule, quantum: u32) -> Result<Entry, TwinsError> {
    let recipe =
        Recipe { sites: sites(module), role: module.role, quantum, width: VectorWidth::of_this_machine() };
    let key = Key::of(&[module.content.as_bytes(), &recipe.text()]);
    cache.get(&key, &name_of(Path::new(&module.path)), || recipe.make(module))
}

impl Recipe {
    fn text(&self) -> Vec<u8> {
        let sites = serde_json::to_string(&self.sites).expect("sites are plain data");
        // The quantum is nothing to a primary.
        let quantum = if self.role == Role::Scavenger { self.quantum } else { 0 };
        format!("{} {quantum} {:?} {sites}", self.role.word(), self.width).into_bytes()
    }

    fn rewritten(
        &self,
        module: &PlannedModule,
        data: &[u8],
        knowledge: Knowledge,
    ) -> Result<(Rewritten, Proof), TwinsError> {
        let sites = Sites {
            which: Which::Listed(self.sites.clone()),
            width: self.width,
            knowledge,
            saves_ahead: true,
        };
        let mode = match self.role {
            Role::Primary => Mode::Primary(&sites),
            Role::Scavenger => Mode::Scavenger(&sites, Bounds { quantum: self.quantum, ..Bounds::default() }),
        };
        let refused =
            |e: twin::TwinError| TwinsError::Refused { path: module.path.clone(), why: e.to_string() };
        let rewritten = twin::rewrite(data, None, mode).map_err(refused)?;
        let proof = prove(&module.path, data, &rewritten.bytes)?;
        Ok((rewritten, proof))
    }

    fn make(&self, module: &PlannedModule) -> Result<Made, TwinsError> {
        let path = || module.path.clone();
        let refused = |why: String| TwinsError::Refused { path: path(), why };
        let data = std::fs::read(&module.path).map_err(|e| refused(records::plain(&e)))?;
        if crate::cache::checksum(&data) != module.content {
            return Err(TwinsError::Changed { path: path() });
        }
        let (rewritten, proof, remark) = match self.rewritten(module, &data, Knowledge::OfCallers) {
            // The checker may know less of what is dead than the rewriter: then more is saved.
            Err(TwinsError::Unproven { why, .. }) => {
                let (rewritten, proof) = self.rewritten(module, &data, Knowledge::Cautious)?;
                (rewritten, proof, Some(format!("saves more than may be needed, to be proven: {why}")))
            }
            other => other.map(|(rewritten, proof)| (rewritten, proof, None))?,
        };
        let harvested = rewritten.coverage.harvest.unwrap_or_default();
        let left_out = harvested.left_out_at.iter().map(|(&at, why)| (at, why.to_string())).collect();
        let mut counts = module.counts;
        counts.sites = harvested.sites;
        counts.coalesced = harvested.coalesced;
        Ok(Made { bytes: rewritten.bytes, note: Note { counts, proof, left_out, remark } })
    }
}

fn prove(path: &str, original: &[u8], rewritten: &[u8]) -> Result<Proof, TwinsError> {
    match proof::check(original, rewritten) {
        Ok(_) => Ok(Proof::Proven),
        // What is dead, the checker does not yet know as well as the rewriter does.
        Err(why @ proof::Refusal::Wrong { .. }) if why.is_of_yields() => {
            Ok(Proof::NotProven { why: why.to_string() })
        }
        Err(why @ proof::Refusal::UnknownMode(_)) => Ok(Proof::NotProven { why: why.to_string() }),
        Err(why) => Err(TwinsError::Unproven { path: path.to_owned(), why: why.to_string() }),
    }
}

fn sites(module: &PlannedModule) -> BTreeMap<u64, Site> {
    let one = |site: &records::plan::Site| {
        let prefetch = match site.prefetch {
            Prefetch::Read => twin::Prefetch::Read,
            Prefetch::Write => twin::Prefetch::Write,
        };
        (site.place.address, Site { with: site.with.clone(), prefetch: Some(prefetch) })
    };
    module.sites.iter().map(one).collect()
}

/// Moves what the rewriter could not do from a plan's sites to what it rejected.
pub fn settle(module: &mut PlannedModule, note: &Note) {
    let (kept, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut module.sites)
        .into_iter()
        .partition(|site| !note.left_out.contains_key(&site.place.address));
    module.sites = kept;
    module.rejected.extend(lost.into_iter().map(|site| Rejected {
        why: note.left_out.get(&site.place.address).cloned().unwrap_or_default(),
        place: Place { ..site.place },
        class: site.class,
        loop_depth: site.loop_depth,
        because: Because::NoTwin,
        gain: Some(site.gain),
    }));
    module.rejected.sort_by_key(|rejected| rejected.place.address);
    module.counts = note.counts;
}
