//! From a plan to rewritten files.
//!
//! ```text
//!  planned module ─► rewriter ─► rewritten file ─► checker ─► cache
//!                        ▲                            │
//!                        └── save more, or fewer sites┘ while it finds something wrong
//! ```
//!
//! A file that is not proven is never used. What is in the cache was proven: an entry's key depends
//! on the checker's version, and its checksum on its bytes, so a second launch need not prove it
//! again.

mod note;
pub(crate) mod partly_read;
mod phases;
pub(crate) mod rewritten;

use crate::plan::{self, ImpossiblePlan};
use crate::progress::Activity;
pub use note::{Entry, Note};
use phases::PhaseClock;
use records::plan::{Because, Part, Place, Plan, PlannedModule, Rejected, Role};
use records::run::Proof;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;
use store::cache::{self, Cache, Key, Made, name_of};
use twin::report::Phase;
use twin::{
    Bounds, Knowledge, LoadReach, Mode, Optimisations, Rewriter, Rewritten, Site, SiteChoice, Sites,
    VectorWidth,
};

/// Why a file could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum TwinsError {
    #[error("{path}: {why}")]
    Refused { path: String, why: String },
    #[error(
        "{path}: the rewritten file failed the proof and is not used: {why}; this is a bug in Gleaner, please report it"
    )]
    Unproven { path: String, why: String },
    #[error("{path}: the file has changed since it was analysed")]
    Changed { path: String },
    #[error("the cache of rewritten files: {}", records::plain(.0))]
    Cache(#[from] std::io::Error),
}

/// All that a module's rewritten file depends on, besides its bytes.
struct Recipe {
    sites: BTreeMap<u64, Site>,
    role: Role,
    quantum: u32,
    width: VectorWidth,
    optimisations: Optimisations,
}

/// A rewritten file that has been proven.
pub struct Planned {
    pub rewritten: Rewritten,
    /// How many yields save all registers, since no less could be proven.
    save_all_at: usize,
    /// Sites that could not be, and why.
    pub dropped: BTreeMap<u64, String>,
}

impl Planned {
    /// What the user should know of it.
    pub fn remark(&self) -> Option<String> {
        (self.save_all_at > 0).then(|| {
            let places = if self.save_all_at == 1 {
                "one yield saves"
            } else {
                &format!("{} yields save", self.save_all_at)
            };
            format!("{places} all registers, since the checker could not prove which of them are dead")
        })
    }
}

/// Why a plan has nothing for a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPlanned {
    #[error("not in the plan, which is for {0}")]
    Others(String),
    #[error("not as it was planned for: the same build id, but other contents")]
    Changed,
    #[error("in the plan as primary and as scavenger; say which is meant")]
    Roles,
    #[error("planned as a sibling, a role that is parked since version 0.1.0")]
    Parked,
    #[error("its plan: {0}")]
    Impossible(ImpossiblePlan),
}

/// What a plan says of the file with these contents, in this role or in the only one it has there.
pub fn planned_for<'p>(
    plan: &'p Plan,
    data: &[u8],
    role: Option<Role>,
) -> Result<&'p PlannedModule, NotPlanned> {
    plan::check_figures(plan).map_err(NotPlanned::Impossible)?;
    let image = image::Image::parse(data).ok();
    let build_id = image.and_then(|image| image.build_id().map(image::elf::bytes::hex));
    let content = cache::checksum(data);
    let in_role = || plan.modules.iter().filter(move |module| role.is_none_or(|role| role == module.role));
    let mut meant = in_role().filter(|module| module.content == content);
    match (meant.next(), meant.next()) {
        (Some(module), None) if module.role == Role::Sibling => Err(NotPlanned::Parked),
        (Some(module), None) => Ok(module),
        (Some(_), Some(_)) => Err(NotPlanned::Roles),
        (None, _) if in_role().any(|module| build_id.is_some() && module.build_id == build_id) => {
            Err(NotPlanned::Changed)
        }
        (None, _) => {
            let one = |module: &PlannedModule| format!("{} as {}", module.path, module.role.word());
            let all: Vec<String> = plan.modules.iter().map(one).collect();
            Err(NotPlanned::Others(if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }))
        }
    }
}

/// Rewrites the file of a planned module, whose contents are given, and has it checked.
pub fn rewrite(plan: &Plan, module: &PlannedModule, data: &[u8]) -> Result<Planned, TwinsError> {
    let mut clock = PhaseClock::start();
    let mut rewriter = rewriter(&records::path_of(&module.path), data, None, &mut clock)?;
    Recipe::of(plan, module).proven(module, &mut rewriter, clock, &mut |_| {})
}

/// Rewrites a file with every load a site, and has it checked: a test of yields.
pub fn every_load(
    path: &Path,
    data: &[u8],
    debug: Option<&[u8]>,
    reach: LoadReach,
    role: Role,
    quantum: u32,
) -> Result<Planned, TwinsError> {
    let mut clock = PhaseClock::start();
    let mut rewriter = rewriter(path, data, debug, &mut clock)?;
    let attempts =
        Attempts { role, quantum, width: VectorWidth::of_this_machine(), optimisations: Optimisations::ALL };
    let which = SiteChoice::EveryLoad(reach);
    attempts.until_proven(path, &mut rewriter, which, clock, &mut |_| {})
}

/// Rewrites a file in a mode that needs no plan, and has it checked.
pub fn in_mode(
    path: &Path,
    data: &[u8],
    debug: Option<&[u8]>,
    mode: Mode<'_>,
) -> Result<Rewritten, TwinsError> {
    let mut clock = PhaseClock::start();
    let mut rewriter = rewriter(path, data, debug, &mut clock)?;
    let ended = &mut |phase: &'static str| clock.ended(phase);
    let mut rewritten = rewriter.rewrite_observed(mode, ended).map_err(|why| refused(path, &why))?;
    clock.begin();
    proof::check(data, &rewritten.bytes)
        .map_err(|why| TwinsError::Unproven { path: path.display().to_string(), why: why.to_string() })?;
    clock.ended(PROOF);
    rewritten.coverage.phases = clock.take();
    Ok(rewritten)
}

/// The rewritten file of a module in its role; `rewriter` has read it, if any has yet. `step` hears
/// what is done for it.
pub fn get(
    cache: &Cache,
    plan: &Plan,
    module: &PlannedModule,
    rewriter: Option<&mut Rewriter<'_>>,
    mut step: impl FnMut(Activity),
) -> Result<Entry, TwinsError> {
    let recipe = Recipe::of(plan, module);
    let key = recipe.key(&module.content, VERSIONS);
    cache.get(&key, &name_of(&records::path_of(&module.path)), || recipe.make(module, rewriter, &mut step))
}

/// The same, if it is in the cache.
pub(crate) fn kept(cache: &Cache, plan: &Plan, module: &PlannedModule) -> Option<Entry> {
    let key = Recipe::of(plan, module).key(&module.content, VERSIONS);
    cache.find(&key, &name_of(&records::path_of(&module.path)))
}

/// What makes files, and what proves them.
const VERSIONS: [u32; 2] = [proof::VERSION, twin_format::VERSION];

/// What the phase is called in which a rewritten file is checked.
const PROOF: &str = "proof";

fn rewriter<'d>(
    path: &Path,
    data: &'d [u8],
    debug: Option<&'d [u8]>,
    clock: &mut PhaseClock,
) -> Result<Rewriter<'d>, TwinsError> {
    let rewriter = Rewriter::of(data, debug).map_err(|why| refused(path, &why))?;
    clock.ended("read and decode");
    Ok(rewriter)
}

pub(crate) fn refused(path: &Path, why: &twin::TwinError) -> TwinsError {
    TwinsError::Refused { path: path.display().to_string(), why: why.to_string() }
}

/// Rewriting without sites, with what is common to all roles.
pub(crate) fn no_sites() -> Sites {
    Sites {
        which: SiteChoice::Listed(BTreeMap::new()),
        width: VectorWidth::of_this_machine(),
        knowledge: Knowledge::OfCallers,
        save_all_at: BTreeSet::new(),
        optimisations: Optimisations::ALL,
    }
}

/// How a file is rewritten for a role, with these sites.
pub(crate) fn mode(role: Role, quantum: u32, sites: &Sites) -> Mode<'_> {
    let bounds = Bounds { quantum, ..Bounds::default() };
    match role {
        Role::Primary => Mode::Primary(sites),
        Role::Scavenger => Mode::Scavenger(sites, bounds),
        Role::Sibling => unreachable!("a parked role, which plans are refused for"),
    }
}

/// What stays the same from attempt to attempt.
struct Attempts {
    role: Role,
    quantum: u32,
    width: VectorWidth,
    optimisations: Optimisations,
}

impl Attempts {
    /// Rewrites until the checker finds nothing wrong: where it cannot prove that a yield keeps all
    /// live registers, the yield saves all there are; sites that break other rules are left out.
    fn until_proven(
        &self,
        path: &Path,
        rewriter: &mut Rewriter<'_>,
        mut which: SiteChoice,
        mut clock: PhaseClock,
        step: &mut dyn FnMut(Activity),
    ) -> Result<Planned, TwinsError> {
        let unproven = |why: String| TwinsError::Unproven { path: path.display().to_string(), why };
        let mut save_all_at = BTreeSet::new();
        let mut dropped = BTreeMap::new();
        let mut checker = proof::Checker::of(rewriter.data());
        let begin = Instant::now();
        loop {
            let sites = Sites {
                which: which.clone(),
                width: self.width,
                save_all_at: save_all_at.clone(),
                optimisations: self.optimisations,
                ..no_sites()
            };
            let earlier =
                Phase { name: "earlier attempts".to_owned(), nanos: begin.elapsed().as_nanos() as u64 };
            let mode = mode(self.role, self.quantum, &sites);
            step(Activity::Rewrite);
            clock.begin();
            let ended = &mut |phase: &'static str| clock.ended(phase);
            let mut rewritten = rewriter.rewrite_observed(mode, ended).map_err(|why| refused(path, &why))?;
            step(Activity::Prove);
            clock.begin();
            let checked = checker.check(&rewritten.bytes);
            clock.ended(PROOF);
            // Those of an attempt that fails go into the time of earlier attempts.
            let mut phases = clock.take();
            let Err(why) = checked else {
                if !save_all_at.is_empty() || !dropped.is_empty() {
                    phases.push(earlier);
                }
                rewritten.coverage.phases = phases;
                return Ok(Planned { rewritten, save_all_at: save_all_at.len(), dropped });
            };
            let proof::Refusal::Wrong { violations, .. } = &why else {
                return Err(unproven(why.to_string()));
            };
            // A check reports a limited number of violations; each time there must be new ones
            // among them.
            let known = save_all_at.len() + dropped.len();
            let before = save_all_at.clone();
            for violation in violations {
                let Some(origin) = violation.origin.map(|origin| origin.0) else {
                    return Err(unproven(why.to_string()));
                };
                // Several may be told of one place.
                let of_registers = matches!(violation.rule, proof::Rule::Yields | proof::Rule::SunkRestores);
                if of_registers && !before.contains(&origin) {
                    save_all_at.insert(origin);
                    continue;
                }
                let SiteChoice::Listed(listed) = &mut which else { return Err(unproven(why.to_string())) };
                // A site's loads may be fetched for by another one's yield.
                let with = listed.iter().find(|(_, site)| site.with.contains(&origin)).map(|(&at, _)| at);
                let Some(at) = listed.contains_key(&origin).then_some(origin).or(with) else {
                    return Err(unproven(why.to_string()));
                };
                listed.remove(&at);
                dropped.insert(at, format!("not proven: {}", violation.what));
            }
            if save_all_at.len() + dropped.len() == known {
                return Err(unproven(why.to_string()));
            }
        }
    }
}

impl Recipe {
    fn of(plan: &Plan, module: &PlannedModule) -> Self {
        let has = |part| !plan.without.contains(&part);
        Self {
            sites: sites(module),
            role: module.role,
            quantum: plan.bounds.quantum,
            width: VectorWidth::of_this_machine(),
            optimisations: Optimisations {
                live_registers: has(Part::LiveRegisters),
                hoisted_saves: has(Part::HoistedSaves),
                sunk_restores: has(Part::SunkRestores),
                load_store_balance: has(Part::LoadStoreBalance),
            },
        }
    }

    /// A file of another version of the checker, or of the format, is another entry: it is made
    /// again.
    fn key(&self, content: &str, [checker, format]: [u32; 2]) -> Key {
        Key::of(&[content.as_bytes(), &self.text(), &checker.to_le_bytes(), &format.to_le_bytes()])
    }

    fn text(&self) -> Vec<u8> {
        let sites = serde_json::to_string(&self.sites).expect("sites are plain data");
        // A primary has no quantum.
        let quantum = if self.role == Role::Primary { 0 } else { self.quantum };
        let (width, optimisations) = (self.width, self.optimisations);
        format!("{} {quantum} {width:?} {sites} {optimisations:?}", self.role.word()).into_bytes()
    }

    fn proven(
        &self,
        module: &PlannedModule,
        rewriter: &mut Rewriter<'_>,
        clock: PhaseClock,
        step: &mut dyn FnMut(Activity),
    ) -> Result<Planned, TwinsError> {
        if cache::checksum(rewriter.data()) != module.content {
            return Err(TwinsError::Changed { path: module.path.clone() });
        }
        let which = SiteChoice::Listed(self.sites.clone());
        let Self { role, quantum, width, optimisations, .. } = *self;
        let attempts = Attempts { role, quantum, width, optimisations };
        attempts.until_proven(&records::path_of(&module.path), rewriter, which, clock, step)
    }

    fn make(
        &self,
        module: &PlannedModule,
        read: Option<&mut Rewriter<'_>>,
        step: &mut dyn FnMut(Activity),
    ) -> Result<Made<Note>, TwinsError> {
        let refused = |why: String| TwinsError::Refused { path: module.path.clone(), why };
        let mut clock = PhaseClock::start();
        let planned = if let Some(rewriter) = read {
            self.proven(module, rewriter, clock, step)?
        } else {
            let path = records::path_of(&module.path);
            let data = std::fs::read(&path).map_err(|e| refused(records::plain(&e)))?;
            let mut rewriter = rewriter(&path, &data, None, &mut clock)?;
            self.proven(module, &mut rewriter, clock, step)?
        };
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        if planned.rewritten.coverage.needs_linux_5_18 && is_older(&kernel, (5, 18)) {
            return Err(refused(format!(
                "with so much zeroed memory, its copy needs Linux 5.18; this is {kernel}"
            )));
        }
        let remark = planned.remark();
        let Planned { rewritten, dropped, .. } = planned;
        let harvested = rewritten.coverage.harvest.unwrap_or_default();
        let mut left_out: BTreeMap<u64, String> =
            harvested.left_out_at.iter().map(|(&at, why)| (at, why.to_string())).collect();
        left_out.extend(dropped);
        let proof = Proof::Proven { by: format!("{}, checker of version {}", proof::RULES, proof::VERSION) };
        let mut counts = module.counts;
        counts.sites = harvested.sites;
        counts.coalesced = harvested.coalesced;
        Ok(Made { bytes: rewritten.bytes, note: Note { counts, proof, left_out, remark } })
    }
}

/// Whether a kernel's release, as it tells it, is before a version; one that cannot be read is.
fn is_older(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < version,
        _ => true,
    }
}

fn sites(module: &PlannedModule) -> BTreeMap<u64, Site> {
    let one = |site: &records::plan::Site| {
        (site.place.address, Site { with: site.with.clone(), prefetch: Some(site.prefetch) })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Old files in a user's cache lack what is read of the new ones.
    #[test]
    fn a_file_of_another_version_is_not_used() {
        let recipe = Recipe {
            sites: BTreeMap::new(),
            role: Role::Primary,
            quantum: 0,
            width: VectorWidth::Sse,
            optimisations: Optimisations::ALL,
        };
        let now = recipe.key("content", VERSIONS);
        assert_eq!(now, recipe.key("content", VERSIONS));
        assert_ne!(now, recipe.key("content", [proof::VERSION, twin_format::VERSION - 1]));
        assert_ne!(now, recipe.key("content", [proof::VERSION - 1, twin_format::VERSION]));
    }
}
