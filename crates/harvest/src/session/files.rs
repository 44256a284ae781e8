//! The rewritten files of a plan: fetched from the cache, or made.

use super::error::SessionError;
use super::input::Rewriters;
use super::library_links::LibraryLinks;
use super::modules::{module_of, without_path};
use super::participants::{LeftAlone, Participants};
use super::rewritten_file::RewrittenFile;
use crate::cache::Cache;
use crate::progress::{Counter, Progress};
use crate::rewrite::{self, TwinsError};
use records::plan::{Plan, PlannedModule, Role};

/// All rewritten files of a harvest, kept in place as long as this lives.
#[derive(Debug)]
pub(super) struct RewrittenFiles {
    pub(super) each: Vec<RewrittenFile>,
    /// Where loaders find rewritten libraries by their names.
    pub(super) links: LibraryLinks,
    pub(super) left_alone: Vec<LeftAlone>,
}

/// Fetches or makes the rewritten files of a plan.
pub(super) fn make(
    plan: &Plan,
    participants: &Participants,
    cache: &Cache,
    rewriters: &mut Rewriters<'_>,
    progress: &mut dyn Progress,
) -> Result<RewrittenFiles, SessionError> {
    let mut each = Vec::new();
    let mut left_alone = rewriters.left_alone.clone();
    let mut planned = Vec::new();
    for (file, role) in participants.files() {
        let is_library = participants.is_library(file);
        let module = match module_of(plan, file, role) {
            // It was left alone when the plan was made.
            Err(_) if is_library => continue,
            module => module?,
        };
        if !is_library || needs_copy(module) {
            planned.push((file, role, is_library, module));
        }
    }
    let mut counter = Counter::new(progress, planned.iter().map(|(.., module)| module.size.0));
    for (file, role, is_library, module) in planned {
        let size = module.size.0;
        let step = |activity| counter.step(activity, file, size);
        match rewrite::get(cache, plan, module, rewriters.of(module), step) {
            Ok(entry) => each.push(RewrittenFile { original: file.to_owned(), role, entry }),
            Err(why @ (TwinsError::Refused { .. } | TwinsError::Unproven { .. })) if is_library => {
                let is_news = matches!(why, TwinsError::Unproven { .. });
                let why = without_path(&why.into(), file);
                left_alone.push(LeftAlone { is_news, ..LeftAlone::new(file, &why) });
            }
            Err(why) => return Err(why.into()),
        }
        counter.pass(size);
    }
    let links = LibraryLinks::of(participants, &each, cache).map_err(TwinsError::Cache)?;
    Ok(RewrittenFiles { each, links, left_alone })
}

/// Whether a library has to be rewritten: a primary's that has no yield is as good as it is.
pub(super) fn needs_copy(module: &PlannedModule) -> bool {
    module.role != Role::Primary || has_yields(module)
}

/// Whether guests may run in this module's stalls or busy-waits.
pub(super) fn has_yields(module: &PlannedModule) -> bool {
    !module.sites.is_empty() || !module.spins.is_empty()
}
