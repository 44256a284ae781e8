//! A harvest from what was asked for to what became of it: programs found and looked through, a plan made or taken,
//! rewritten files fetched, everybody started and waited for, the record put together.

use crate::find::analysis_cache;
use crate::find::candidates::{in_module, look_through};
use crate::find::linked::{Chosen, NotListed, Wanted};
use crate::find::names::{self, Names};
use crate::find::program::{Program, ProgramError};
use crate::launch::signals;
use crate::launch::{self, Inherited, LaunchError, Outcome, Running, Snapshot, Stream};
use crate::plan::prices::Pricing;
use crate::plan::{self, MissRates, Subject, Wishes};
use crate::report;
use crate::rewrite::cache::{Cache, Entry};
use crate::rewrite::library_links::Shelves;
use crate::rewrite::{self, TwinsError};
use image::{Image, ImageError};
use records::plan::{Plan, PlannedModule, Prices, Role};
use records::run::Run;
use std::path::{Path, PathBuf};
use twin::{Rewriter, TwinError};

/// Why a harvest cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{path}: {why}")]
    Unreadable { path: String, why: String },
    #[error(transparent)]
    Twins(#[from] TwinsError),
    #[error("the plan has nothing for {path} as a {}", role.word())]
    NotPlanned { path: String, role: Role },
    #[error("the plan is for another {path}: its contents have changed since")]
    PlanIsForAnother { path: String },
    #[error("--exclude: {0}: no load or wait of a loop of these programs, where one could give way")]
    NothingToExclude(String),
    #[error("--libraries: {0}: none of these programs is linked to it")]
    NoSuchLibrary(String),
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// A library that was to be rewritten, and is not: it is loaded as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    pub file: PathBuf,
    pub why: String,
    /// Whoever asked for all that there are expects to hear of it: it could have been rewritten, were Gleaner without fault, or none of a program's is.
    pub is_news: bool,
}

impl LeftAlone {
    fn new(file: &Path, why: &str) -> Self {
        Self { file: file.to_owned(), why: format!("not rewritten: {why}"), is_news: false }
    }
}

/// A scavenger that was asked for.
#[derive(Clone, Debug)]
pub struct WantedScavenger {
    pub program: Program,
    /// Which of the copies of its command, from 1.
    pub copy: u32,
    pub stdout: Stream,
    pub stderr: Stream,
    /// Where its output goes, in words.
    pub output: String,
}

/// Who takes part.
#[derive(Clone, Debug)]
pub struct Cast {
    pub primary: Program,
    pub scavengers: Vec<WantedScavenger>,
    /// The primary's threads are each other's guests.
    pub siblings: bool,
}

impl Cast {
    /// Refuses who cannot take part.
    pub fn check(&self) -> Result<(), ProgramError> {
        self.primary.check(self.primarys_role())?;
        self.scavengers.iter().try_for_each(|scavenger| scavenger.program.check(Role::Scavenger))
    }

    /// Takes in those of everybody's libraries that are wanted. Returns which of them cannot be rewritten.
    pub fn with_libraries(&mut self, wanted: &Wanted) -> Result<Vec<LeftAlone>, SessionError> {
        let mut left = Vec::new();
        let mut unknown = match wanted {
            Wanted::None => return Ok(left),
            Wanted::All => Vec::new(),
            Wanted::Named(names) => names.clone(),
        };
        let scavengers = self.scavengers.iter_mut().map(|scavenger| &mut scavenger.program);
        // Several copies of one program are linked alike.
        let mut known: Vec<(PathBuf, Chosen)> = Vec::new();
        for program in std::iter::once(&mut self.primary).chain(scavengers) {
            if let Some((_, chosen)) = known.iter().find(|(file, _)| *file == program.file) {
                program.linked = chosen.clone();
                continue;
            }
            let mut refused = Vec::new();
            match program.linked_to() {
                Ok(linked) => program.linked = wanted.among(&linked, &mut unknown, &mut refused),
                Err(NotListed::Static) => {}
                Err(why) => {
                    let why = format!("its libraries are not rewritten: {why}");
                    left.push(LeftAlone { file: program.file.clone(), why, is_news: true });
                }
            }
            left.extend(refused.into_iter().map(|(file, why)| LeftAlone::new(&file, &why.to_string())));
            known.push((program.file.clone(), program.linked.clone()));
        }
        if unknown.is_empty() { Ok(left) } else { Err(SessionError::NoSuchLibrary(unknown.join(", "))) }
    }

    /// What the primary's file is rewritten as.
    pub(crate) fn primarys_role(&self) -> Role {
        if self.siblings { Role::Sibling } else { Role::Primary }
    }

    /// The files to be rewritten, each role's once.
    fn files(&self) -> Vec<(&Path, Role)> {
        let mut files = Vec::new();
        for (program, role) in self.programs() {
            let libraries = program.linked.rewritten.iter().map(|library| library.file.as_path());
            for file in std::iter::once(program.file.as_path()).chain(libraries) {
                if !files.contains(&(file, role)) {
                    files.push((file, role));
                }
            }
        }
        files
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = (&Program, Role)> {
        let scavengers = self.scavengers.iter().map(|scavenger| (&scavenger.program, Role::Scavenger));
        std::iter::once((&self.primary, self.primarys_role())).chain(scavengers)
    }

    /// Whether this file is nobody's program, but a library.
    fn is_library(&self, file: &Path) -> bool {
        self.programs().all(|(program, _)| program.file != file)
    }
}

/// A file that takes part, as it was read.
pub struct Original {
    path: PathBuf,
    role: Role,
    is_library: bool,
    data: Vec<u8>,
    /// Its separate debug information.
    debug: Option<Vec<u8>>,
}

/// The files of all who take part, each role's once.
pub fn read(cast: &Cast) -> Result<Vec<Original>, SessionError> {
    let files = cast.files().into_iter();
    files.map(|(file, role)| Original::of(file, role, cast.is_library(file))).collect()
}

/// So many bytes of libraries, programs included, may be kept looked through until they are rewritten: that takes ten times as much.
const KEPT: usize = 32 << 20;

/// Of the files that were looked through, those that may be rewritten from there; and libraries that cannot be.
#[derive(Default)]
pub struct Rewriters<'f> {
    of: Vec<(&'f Original, Rewriter<'f>)>,
    left_alone: Vec<LeftAlone>,
}

/// The plan for these files; what is seen of them is kept in the cache.
pub fn plan<'f>(
    originals: &'f [Original],
    prices: &Prices,
    rates: &impl MissRates,
    wishes: &Wishes,
    cache: &Cache,
) -> Result<(Plan, Rewriters<'f>), SessionError> {
    let mut rewriters = Rewriters::default();
    let (mut subjects, mut seen) = (Vec::new(), Vec::new());
    for original in originals {
        match original.seen(cache, &mut rewriters) {
            Ok(subject) => {
                subjects.push(subject);
                seen.push(original);
            }
            Err(why) if original.is_library => rewriters.left_alone.push(original.left_alone(&why)),
            Err(why) => return Err(why),
        }
    }
    let missing: Vec<String> = wishes.excluded_in_vain(&subjects).map(|at| format!("{at:#x}")).collect();
    if !missing.is_empty() {
        return Err(SessionError::NothingToExclude(missing.join(", ")));
    }
    let mut plan = plan::plan(&subjects, prices, rates, wishes);
    for (module, original) in plan.modules.iter_mut().zip(seen) {
        let names = Names::of(&original.data, original.debug.as_deref());
        module.sites.iter_mut().for_each(|site| names.complete(&mut site.place));
        module.spins.iter_mut().for_each(|spin| names.complete(&mut spin.place));
        module.rejected.iter_mut().for_each(|rejected| names.complete(&mut rejected.place));
    }
    Ok((plan, rewriters))
}

impl Original {
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

    fn seen<'f>(&'f self, cache: &Cache, rewriters: &mut Rewriters<'f>) -> Result<Subject, SessionError> {
        let path = records::text_of(&self.path);
        let mut rewriter = None;
        let subject =
            analysis_cache::seen(cache, &path, self.role, (&self.data, self.debug.as_deref()), || {
                self.looked_through(&path, &mut rewriter)
            })?;
        // What was found out about a hundred libraries is more than fits into small machines: some are looked at once more.
        let kept: usize = rewriters.of.iter().map(|(other, _)| other.data.len()).sum();
        let rewriter = rewriter.filter(|_| !self.is_library || kept + self.data.len() <= KEPT);
        rewriters.of.extend(rewriter.map(|rewriter| (self, rewriter)));
        Ok(subject)
    }

    fn left_alone(&self, why: &SessionError) -> LeftAlone {
        LeftAlone::new(&self.path, &without_path(why, &self.path))
    }

    fn is(&self, module: &PlannedModule) -> bool {
        self.role == module.role && self.path == records::path_of(&module.path)
    }

    /// By way of what rewriting it takes, which is left for that. But its debug information is none of a rewriter's.
    fn looked_through<'f>(
        &'f self,
        path: &str,
        left: &mut Option<Rewriter<'f>>,
    ) -> Result<Subject, SessionError> {
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

/// Checks that a plan made earlier is for these programs as they are now.
pub fn check_plan(plan: &Plan, cast: &Cast) -> Result<(), SessionError> {
    for (file, role) in cast.files() {
        let module = module_of(plan, file, role)?;
        let data = std::fs::read(file).map_err(|e| SessionError::Unreadable {
            path: file.display().to_string(),
            why: records::plain(&e),
        })?;
        if crate::rewrite::cache::checksum(&data) != module.content {
            return Err(SessionError::PlanIsForAnother { path: file.display().to_string() });
        }
    }
    Ok(())
}

fn module_of<'p>(plan: &'p Plan, file: &Path, role: Role) -> Result<&'p PlannedModule, SessionError> {
    plan.modules.iter().find(|module| is_of(module, file, role)).ok_or_else(|| {
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        SessionError::NotPlanned { path: path.display().to_string(), role }
    })
}

fn is_of(module: &PlannedModule, file: &Path, role: Role) -> bool {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    module.role == role && records::path_of(&module.path) == path
}

/// What went wrong with a file that is named beside it.
fn without_path(why: &SessionError, path: &Path) -> String {
    let text = why.to_string();
    text.strip_prefix(&format!("{}: ", path.display())).map_or(text.clone(), str::to_owned)
}

/// Rewritten files for everybody, kept in place as long as this lives.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    cast: Cast,
    entries: Vec<(PathBuf, Role, Entry)>,
    /// Where loaders find rewritten libraries by their names.
    shelves: Shelves,
    /// Libraries that were to be rewritten, and are not.
    pub left_alone: Vec<LeftAlone>,
}

/// What became of a plan's files.
#[derive(Debug)]
pub struct Made {
    entries: Vec<(PathBuf, Role, Entry)>,
    shelves: Shelves,
    left_alone: Vec<LeftAlone>,
}

/// Fetches or makes the rewritten files of a plan.
pub fn make(
    plan: &Plan,
    cast: &Cast,
    cache: &Cache,
    rewriters: &mut Rewriters<'_>,
) -> Result<Made, SessionError> {
    let mut entries = Vec::new();
    let mut left_alone = rewriters.left_alone.clone();
    for (file, role) in cast.files() {
        let is_library = cast.is_library(file);
        let module = match module_of(plan, file, role) {
            // It was left alone when the plan was made.
            Err(_) if is_library => continue,
            module => module?,
        };
        if is_library && !needs_copy(module) {
            continue;
        }
        let rewriter = rewriters.of.iter_mut().find(|(original, _)| original.is(module));
        let rewriter = rewriter.map(|(_, rewriter)| rewriter);
        match rewrite::get(cache, plan, module, rewriter) {
            Ok(entry) => entries.push((file.to_owned(), role, entry)),
            Err(why @ (TwinsError::Refused { .. } | TwinsError::Unproven { .. })) if is_library => {
                let is_news = matches!(why, TwinsError::Unproven { .. });
                let why = without_path(&why.into(), file);
                left_alone.push(LeftAlone { is_news, ..LeftAlone::new(file, &why) });
            }
            Err(why) => return Err(why.into()),
        }
    }
    let shelves = Shelves::of(cast, &entries, cache).map_err(TwinsError::Cache)?;
    Ok(Made { entries, shelves, left_alone })
}

/// Whether a library has to be rewritten: a primary's that gives way nowhere is as good as it is.
fn needs_copy(module: &PlannedModule) -> bool {
    module.role != Role::Primary || gives_way(module)
}

/// Whether others may run while it waits.
pub(crate) fn gives_way(module: &PlannedModule) -> bool {
    !module.sites.is_empty() || !module.spins.is_empty()
}

/// What the plan was asked to hold.
fn promise(plan: &Plan) -> Option<launch::Promise> {
    let micros = plan.bounds.max_absence.value()?;
    Some(launch::Promise {
        slowdown: plan.bounds.max_slowdown.value()?,
        absence: std::time::Duration::from_secs_f64((micros / 1e6).clamp(0.0, 1e6)),
        // Less than any miss takes, and more than looking at a yield.
        soon: std::time::Duration::from_secs_f64(
            0.75 * plan.prices.miss().1.value / plan.prices.clock.value().filter(|hertz| *hertz > 0.0)?,
        ),
    })
}

pub(crate) fn entry<'e>(entries: &'e [(PathBuf, Role, Entry)], file: &Path, role: Role) -> Option<&'e Entry> {
    entries.iter().find(|(path, of, _)| path == file && *of == role).map(|(.., entry)| entry)
}

impl Prepared {
    /// The plan is left with what could be done.
    pub fn of(mut plan: Plan, cast: Cast, made: Made) -> Self {
        let Made { entries, shelves, left_alone } = made;
        let own = |module: &PlannedModule| {
            let file = |file: &Path| is_of(module, file, module.role);
            entries.iter().find(|(path, role, _)| *role == module.role && file(path)).map(|(.., entry)| entry)
        };
        // What gives way nowhere was not tried.
        plan.modules.retain(|module| own(module).is_some() || !needs_copy(module));
        for module in &mut plan.modules {
            if let Some(entry) = own(module) {
                rewrite::settle(module, &entry.note);
            }
        }
        Self { plan, cast, entries, shelves, left_alone }
    }

    /// The rewritten file of a program in its role.
    pub(crate) fn entry(&self, file: &Path, role: Role) -> &Entry {
        entry(&self.entries, file, role).expect("every program was prepared")
    }

    /// What is planned for the primary's files, its own first, and these rewritten, in the order in which they are launched.
    pub(crate) fn primarys(&self) -> impl Iterator<Item = (&PlannedModule, &Entry)> {
        let (primary, role) = (&self.cast.primary, self.cast.primarys_role());
        let libraries = primary.linked.rewritten.iter().map(|library| &library.file);
        std::iter::once(&primary.file).chain(libraries).filter_map(move |file| {
            Some((module_of(&self.plan, file, role).ok()?, entry(&self.entries, file, role)?))
        })
    }

    /// Whether others may run while the primary waits.
    pub(crate) fn primary_gives_way(&self) -> bool {
        self.primarys().any(|(module, _)| gives_way(module))
    }

    pub(crate) fn cast(&self) -> &Cast {
        &self.cast
    }

    /// Starts everybody and waits. `home_cpus` are those for scavengers at home, unless the primary's will do; `inherited` is what
    /// this process began with; `watch` looks on from time to time.
    pub fn run(
        &self,
        home_cpus: Option<Vec<u32>>,
        inherited: Inherited,
        watch: impl FnMut(&Snapshot),
    ) -> Result<(Run, Outcome), SessionError> {
        let program = |program: &Program, role| {
            let rewritten = self.entry(&program.file, role).file.clone();
            let original = Some(program.file.clone());
            let beside = program.libraries()?;
            let (libraries, modules) = self.shelves.libraries(program, role, beside, &self.entries);
            let new = launch::Program::new(rewritten, program.arguments.clone());
            Ok::<_, ProgramError>(launch::Program { original, libraries, modules, ..new })
        };
        let mut harvest = launch::Harvest::new(program(&self.cast.primary, self.cast.primarys_role())?);
        harvest.siblings = self.cast.siblings;
        // Where it never gives way nobody would ever run aboard, nor come home again.
        let anywhere = self.cast.siblings || self.primary_gives_way();
        harvest.ring = if anywhere { self.plan.bounds.ring } else { 0 };
        // Threads that are each other's guests have nobody among them whose pace would be the one to keep.
        harvest.promise = if self.cast.siblings { None } else { promise(&self.plan) };
        harvest.home_cpus = home_cpus;
        for wanted in &self.cast.scavengers {
            let mut scavenger = launch::Scavenger::new(program(&wanted.program, Role::Scavenger)?);
            scavenger.stdout = wanted.stdout.clone();
            scavenger.stderr = wanted.stderr.clone();
            harvest.scavengers.push(scavenger);
        }
        let forwarding = signals::Forwarding::begin();
        harvest.inherited = Inherited { ignored: inherited.ignored | forwarding.ignored(), ..inherited };
        let running: Running = launch::launch(&harvest)?;
        let pid = running.primary();
        forwarding.to(pid);
        let outcome = running.wait(watch)?;
        drop(forwarding);
        Ok((report::record(self, pid, &outcome), outcome))
    }
}
