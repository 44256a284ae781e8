//! The rewritten files of a plan: made while it was, fetched from the cache, or made now.

use super::error::SessionError;
use super::library_links::LibraryLinks;
use super::modules::{module_of, needs_copy, without_path};
use super::participants::{LeftAlone, Participants};
use super::planning::Planning;
use super::rewritten_file::RewrittenFile;
use crate::progress::Counter;
use crate::rewrite::{self, TwinsError};
use records::plan::Plan;
use store::cache::Cache;
use units::Progress;

/// All rewritten files of a harvest, kept in place as long as this lives.
#[derive(Debug, Default)]
pub(super) struct RewrittenFiles {
    pub(super) each: Vec<RewrittenFile>,
    /// Where loaders find rewritten libraries by their names.
    pub(super) links: LibraryLinks,
    pub(super) left_alone: Vec<LeftAlone>,
}

/// Takes, fetches or makes the rewritten files of a plan.
pub(super) fn make(
    plan: &Plan,
    participants: &Participants,
    cache: &Cache,
    planning: &mut Planning,
    progress: &mut dyn Progress,
) -> Result<RewrittenFiles, SessionError> {
    let mut each = Vec::new();
    let mut left_alone = planning.left_alone.clone();
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
        let made = planning.take(module).unwrap_or_else(|| rewrite::get(cache, plan, module, None, step));
        match made {
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
