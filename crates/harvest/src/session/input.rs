//! The files that take part, as they are read and analysed, and the plan for them.

use super::error::SessionError;
use super::modules::without_path;
use super::participants::{LeftAlone, Participants};
use crate::cache::Cache;
use crate::find::analysis_cache;
use crate::find::candidates::{in_module, look_through};
use crate::find::names;
use crate::plan::{self, ProfiledRates, Subject, Wishes};
use crate::progress::{Activity, Counter, Progress};
use crate::rewrite;
use image::names::Names;
use image::{Image, ImageError};
use records::plan::{Plan, PlannedModule, Prices, Role};
use std::path::{Path, PathBuf};
use twin::{Rewriter, TwinError};

/// A file that takes part, as it was read.
pub(super) struct InputFile {
    path: PathBuf,
    role: Role,
    is_library: bool,
    data: Vec<u8>,
    /// Its separate debug information.
    debug: Option<Vec<u8>>,
}

/// Rewriters of analysed libraries that are kept until these are rewritten: for this many bytes of
/// files. A rewriter takes ten times as much, and those of a hundred libraries do not fit into a
/// small machine's memory.
const KEPT_REWRITERS_BYTES: usize = 32 << 20;

/// Rewriters of files that were analysed, which need not analyse them again; and libraries that
/// cannot be rewritten.
#[derive(Default)]
pub(super) struct Rewriters<'f> {
    of: Vec<(&'f InputFile, Rewriter<'f>)>,
    pub(super) left_alone: Vec<LeftAlone>,
}

impl<'f> Rewriters<'f> {
    pub(super) fn of(&mut self, module: &PlannedModule) -> Option<&mut Rewriter<'f>> {
        self.of.iter_mut().find(|(input, _)| input.is(module)).map(|(_, rewriter)| rewriter)
    }
}

/// The files of all participants, each role's once.
pub(super) fn read(participants: &Participants) -> Result<Vec<InputFile>, SessionError> {
    let files = participants.files().into_iter();
    files.map(|(file, role)| InputFile::of(file, role, participants.is_library(file))).collect()
}

/// The plan for these files; analyses of them are kept in the cache.
pub(super) fn plan<'f>(
    inputs: &'f [InputFile],
    prices: &Prices,
    rates: &ProfiledRates,
    wishes: &Wishes,
    cache: &Cache,
    progress: &mut dyn Progress,
) -> Result<(Plan, Rewriters<'f>), SessionError> {
    let mut rewriters = Rewriters::default();
    let mut counter = Counter::new(progress, inputs.iter().map(InputFile::size));
    let (mut subjects, mut analysed) = (Vec::new(), Vec::new());
    for input in inputs {
        match input.subject(cache, &mut rewriters, &mut counter) {
            Ok(subject) => {
                subjects.push(subject);
                analysed.push(input);
            }
            Err(why) if input.is_library => rewriters.left_alone.push(input.left_alone(&why)),
            Err(why) => return Err(why),
        }
        counter.pass(input.size());
    }
    for subject in &subjects {
        let is_program =
            analysed.iter().any(|input| !input.is_library && records::text_of(&input.path) == subject.path);
        if is_program && !rates.is_empty() && !rates.knows(subject) {
            let what = "did not run while the profile was taken, or was another build";
            progress.notice(&format!("--profile: {} {what}; its sites are chosen without it", subject.path));
        }
    }
    let missing: Vec<String> = wishes.excluded_in_vain(&subjects).map(|at| format!("{at:#x}")).collect();
    if !missing.is_empty() {
        return Err(SessionError::NothingToExclude(missing.join(", ")));
    }
    let mut plan = plan::plan(&subjects, prices, rates, wishes);
    for (module, input) in plan.modules.iter_mut().zip(analysed) {
        let names = Names::of(&input.data, input.debug.as_deref());
        module.sites.iter_mut().for_each(|site| names::complete(&mut site.place, &names));
        module.spins.iter_mut().for_each(|spin| names::complete(&mut spin.place, &names));
        module.rejected.iter_mut().for_each(|rejected| names::complete(&mut rejected.place, &names));
    }
    Ok((plan, rewriters))
}

impl InputFile {
    fn of(file: &Path, role: Role, is_library: bool) -> Result<Self, SessionError> {
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let data = std::fs::read(&path).map_err(|e| SessionError::Unreadable {
            path: path.display().to_string(),
            why: records::plain(&e),
        })?;
        let separate = Image::parse(&data).ok().and_then(|image| names::separate(image.build_id()?));
        let debug = separate.and_then(|path| std::fs::read(path).ok());
        Ok(Self { path, role, is_library, data, debug })
    }

    fn size(&self) -> u64 {
        self.data.len() as u64
    }

    /// Its candidates, from the cache or analysed now; then its rewriter is kept.
    fn subject<'f>(
        &'f self,
        cache: &Cache,
        rewriters: &mut Rewriters<'f>,
        counter: &mut Counter<'_>,
    ) -> Result<Subject, SessionError> {
        let path = records::text_of(&self.path);
        let mut rewriter = None;
        let subject =
            analysis_cache::seen(cache, &path, self.role, (&self.data, self.debug.as_deref()), || {
                counter.step(Activity::Analyse, &self.path, self.size());
                self.analysed(&path, &mut rewriter)
            })?;
        let kept: usize = rewriters.of.iter().map(|(other, _)| other.data.len()).sum();
        let rewriter =
            rewriter.filter(|_| !self.is_library || kept + self.data.len() <= KEPT_REWRITERS_BYTES);
        rewriters.of.extend(rewriter.map(|rewriter| (self, rewriter)));
        Ok(subject)
    }

    fn left_alone(&self, why: &SessionError) -> LeftAlone {
        LeftAlone::new(&self.path, &without_path(why, &self.path))
    }

    fn is(&self, module: &PlannedModule) -> bool {
        self.role == module.role && self.path == records::path_of(&module.path)
    }

    /// Analysed by a rewriter, which is left in `left`. But no rewriter reads separate debug
    /// information.
    fn analysed<'f>(&'f self, path: &str, left: &mut Option<Rewriter<'f>>) -> Result<Subject, SessionError> {
        let unreadable =
            |e: ImageError| SessionError::Unreadable { path: path.to_owned(), why: e.to_string() };
        if self.debug.is_some() {
            return look_through(path, self.role, &self.data, self.debug.as_deref()).map_err(unreadable);
        }
        let refused = |why: TwinError| match why {
            TwinError::Image(why) => unreadable(why),
            why => rewrite::refused(&self.path, &why).into(),
        };
        let sites = rewrite::no_sites();
        let mut rewriter = Rewriter::of(&self.data, None).map_err(refused)?;
        let (module, liveness) = rewriter.live(rewrite::mode(self.role, 0, &sites)).map_err(refused)?;
        let liveness = liveness.expect("there is some for roles");
        let subject = in_module(path, self.role, &self.data, module, liveness);
        *left = Some(rewriter);
        Ok(subject)
    }
}
