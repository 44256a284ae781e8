//! The plan for the files that take part. Each file is rewritten as soon as it is analysed: an
//! analysis takes ten times the file's size, so those of a hundred libraries cannot wait until all
//! files are planned.

use super::error::SessionError;
use super::input::InputFile;
use super::library_time::LibraryTime;
use super::modules::{has_yields, needs_copy};
use super::participants::LeftAlone;
use super::planned_cache;
use super::terms::Terms;
use crate::decide::{self, Against, Known};
use crate::find::{analysis_cache, names};
use crate::plan::{self, Subject};
use crate::progress::{Activity, Counter, notice};
use crate::rewrite::{self, Entry, TwinsError};
use image::names::Names;
use rayon::prelude::*;
use records::plan::{Plan, PlannedModule, Role};
use records::run::Refused;
use std::path::PathBuf;
use std::time::Instant;
use units::Progress;

/// What came about while the plan was made.
#[derive(Default)]
pub(super) struct Planning {
    rewritten: Vec<(PathBuf, Role, Result<Entry, TwinsError>)>,
    /// Libraries that cannot be rewritten.
    pub(super) left_alone: Vec<LeftAlone>,
    /// Those that are not rewritten yet.
    pub(super) left_for_later: Option<Refused>,
    /// Scavengers that run as they are this time, and why.
    pub(super) as_they_are: Vec<(PathBuf, String)>,
    /// Why nothing is harvested; what only scavengers need is not planned then.
    pub(super) against: Option<Against>,
}

impl Planning {
    /// What came of rewriting a module's file.
    pub(super) fn take(&mut self, module: &PlannedModule) -> Option<Result<Entry, TwinsError>> {
        let path = records::path_of(&module.path);
        let is_it = |(file, role, _): &(PathBuf, Role, _)| (file, *role) == (&path, module.role);
        let at = self.rewritten.iter().position(is_it)?;
        Some(self.rewritten.swap_remove(at).2)
    }

    pub(super) fn forget_rewritten(&mut self) {
        self.rewritten.clear();
    }
}

/// A file with its part of the plan.
struct PlannedFile {
    /// None where its part was in the cache: nothing else was to be known of it.
    subject: Option<Subject>,
    module: PlannedModule,
    /// None where it need not be rewritten.
    rewritten: Option<Result<Entry, TwinsError>>,
}

/// The plan for these files; analyses of them are kept in the cache. By what is known it is decided
/// whether anything is harvested.
pub(super) fn plan(
    inputs: &[InputFile],
    terms: &Terms<'_>,
    known: Option<&Known>,
    progress: &mut dyn Progress,
) -> Result<(Plan, Planning), SessionError> {
    let Terms { rates, wishes, .. } = *terms;
    let mut planning = Planning::default();
    let files = planned_files(inputs, terms, known, &mut planning, progress)?;
    let (mut subjects, mut planned, mut modules) = (Vec::new(), Vec::new(), Vec::new());
    for (input, file) in inputs.iter().zip(files) {
        let Some(PlannedFile { subject, module, rewritten }) = file else { continue };
        planning.rewritten.extend(rewritten.map(|rewritten| (input.path.clone(), input.role, rewritten)));
        if subject
            .as_ref()
            .is_some_and(|subject| !input.is_library && !rates.is_empty() && !rates.knows(subject))
        {
            let what = "did not run while the profile was taken, or was another build";
            notice(progress, &format!("--profile: {} {what}; its sites are chosen without it", module.path));
        }
        subjects.extend(subject);
        planned.push(input);
        modules.push(module);
    }
    let missing: Vec<String> = wishes.excluded_in_vain(&subjects).map(|at| format!("{at:#x}")).collect();
    if !missing.is_empty() && (planning.against.is_none() || wishes.explained) {
        return Err(SessionError::NothingToExclude(missing.join(", ")));
    }
    // Only alternatives are of all files together.
    let of_all = if wishes.explained { &*subjects } else { &[] };
    let mut plan = Plan { modules, ..plan_of(of_all, terms) };
    plan.modules.par_iter_mut().zip(planned).for_each(|(module, input)| {
        let (data, debug) = input.contents();
        let names = Names::of(data, debug);
        module.sites.iter_mut().for_each(|site| names::complete(&mut site.place, &names));
        module.rejected.iter_mut().for_each(|rejected| names::complete(&mut rejected.place, &names));
    });
    Ok((plan, planning))
}

/// Each file's part, by its place; none for what is left alone, or left for another time.
fn planned_files(
    inputs: &[InputFile],
    terms: &Terms<'_>,
    known: Option<&Known>,
    planning: &mut Planning,
    progress: &mut dyn Progress,
) -> Result<Vec<Option<PlannedFile>>, SessionError> {
    let mut files: Vec<Option<PlannedFile>> =
        inputs.par_iter().map(|input| PlannedFile::kept(input, terms)).collect();
    let mut counter = Counter::new(progress, inputs.iter().map(InputFile::size));
    let mut time = LibraryTime::of(terms.library_time, terms.program_time);
    // Where there is no space in the cache, all files are made again, and kept elsewhere.
    let mut is_full = false;
    // What every program calls comes first.
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    order.sort_by_key(|&at| inputs[at].can_wait);
    let own = |input: &&InputFile| !input.is_library && input.role == Role::Scavenger;
    let mut guests = inputs.iter().filter(own).count();
    let of_primary = inputs.iter().filter(|input| input.role == Role::Primary).count();
    for (done, at) in order.into_iter().enumerate() {
        if done == of_primary {
            planning.against =
                known.and_then(|known| decide::reason_against(known, has_places(&files), guests > 0));
            if planning.against.is_some() && !terms.wishes.explained {
                break;
            }
        }
        let (input, file) = (&inputs[at], &mut files[at]);
        let is_enough = || !input.can_wait || time.is_enough_for(input.code_bytes());
        let is_own = file.is_none() && !input.is_library;
        let too_long = is_own.then(|| time.too_long_for(input.code_bytes())).flatten();
        if let Some(why) = too_long {
            if input.role == Role::Primary {
                planning.against = Some(Against::Known(why));
                break;
            }
            planning.as_they_are.push((input.path.clone(), why));
            guests -= 1;
            if guests == 0 {
                planning.against = Some(Against::NoGuests);
                break;
            }
        } else if file.is_none() && !is_enough() {
            time.left += 1;
        } else if file.is_none() {
            let began = Instant::now();
            match PlannedFile::made(input, terms, is_full, &mut counter) {
                Ok(made) => {
                    let (code, took) = (input.code_bytes(), began.elapsed());
                    if input.can_wait {
                        time.spend(code, took, made.rewritten.as_ref().is_none_or(Result::is_ok));
                    } else {
                        time.took(code, took);
                    }
                    is_full |= matches!(made.rewritten, Some(Err(TwinsError::Cache(_))));
                    *file = Some(made);
                }
                Err(why) if input.is_library => planning.left_alone.push(input.left_alone(&why)),
                Err(why) => return Err(why),
            }
        }
        counter.pass(input.size());
    }
    planning.left_for_later = time.refused();
    if let Some(Refused { what, why, would_help }) = &planning.left_for_later {
        let help = would_help.as_deref().unwrap_or_default();
        notice(progress, &format!("{what}: {why}; {help}"));
    }
    Ok(files)
}

/// Whether guests may run somewhere in the primary.
fn has_places(files: &[Option<PlannedFile>]) -> bool {
    let modules = files.iter().flatten().map(|file| &file.module);
    modules.filter(|module| module.role == Role::Primary).any(has_yields)
}

impl PlannedFile {
    /// As it is in the cache.
    fn kept(input: &InputFile, terms: &Terms<'_>) -> Option<Self> {
        let path = records::text_of(&input.path);
        let key = planned_cache::key(input, terms);
        let known = key.as_ref().and_then(|key| planned_cache::kept(terms.cache, key, &path));
        let (subject, plan) = if let Some(module) = known {
            (None, Plan { modules: vec![module], ..plan_of(&[], terms) })
        } else {
            let subject = analysis_cache::kept(terms.cache, &path, input.role, &input.checksums)?;
            let plan = plan_of(std::slice::from_ref(&subject), terms);
            if let Some(key) = key {
                planned_cache::keep(terms.cache, &key, plan.modules.first()?);
            }
            (Some(subject), plan)
        };
        let module = plan.modules.first()?;
        let rewritten = if !input.is_library || needs_copy(module) {
            Some(Ok(rewrite::kept(terms.cache, &plan, module)?))
        } else {
            None
        };
        Some(Self { subject, module: plan.modules.into_iter().next()?, rewritten })
    }

    /// Analysed and rewritten, as far as that is not in the cache.
    fn made(
        input: &InputFile,
        terms: &Terms<'_>,
        is_full: bool,
        counter: &mut Counter<'_>,
    ) -> Result<Self, SessionError> {
        let path = records::text_of(&input.path);
        let mut rewriter = None;
        let subject = analysis_cache::seen(terms.cache, &path, input.role, &input.checksums, || {
            counter.step(Activity::Analyse, &input.path, input.size());
            input.analysed(&path, &mut rewriter)
        })?;
        let mut plan = plan_of(std::slice::from_ref(&subject), terms);
        let module = plan.modules.first().expect("a plan has a module for each subject");
        if let Some(key) = planned_cache::key(input, terms).filter(|_| !is_full) {
            planned_cache::keep(terms.cache, &key, module);
        }
        let rewritten = (!is_full && (!input.is_library || needs_copy(module))).then(|| {
            let step = |activity| counter.step(activity, &input.path, input.size());
            rewrite::get(terms.cache, &plan, module, rewriter.as_mut(), step)
        });
        match rewritten {
            Some(Err(why)) if !input.is_library && !matches!(why, TwinsError::Cache(_)) => Err(why.into()),
            rewritten => Ok(Self { subject: Some(subject), module: plan.modules.remove(0), rewritten }),
        }
    }
}

/// The plan for some of the files: their parts are the same in that for all.
fn plan_of(subjects: &[Subject], terms: &Terms<'_>) -> Plan {
    plan::plan(subjects, terms.prices, terms.rates, terms.wishes)
}
