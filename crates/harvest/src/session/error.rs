//! Why a harvest cannot be, what kind of a failure that is, and what would help.

use crate::find::program::ProgramError;
use crate::launch::LaunchError;
use crate::plan::ImpossiblePlan;
use crate::rewrite::TwinsError;
use records::ReadError;
use records::plan::Role;
use std::io;
use units::WouldHelp;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("primary: {0}")]
    Primary(ProgramError),
    #[error("scavenger: {0}")]
    Scavenger(ProgramError),
    #[error("scavengers: {count} of them; at most {max} can share one primary")]
    TooMany { count: u64, max: usize },
    #[error("cannot write {path}: {}", records::plain(.why))]
    Output { path: String, why: io::Error },
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{path}: {why}")]
    Unreadable { path: String, why: String },
    #[error(transparent)]
    Record(#[from] ReadError),
    #[error("{path}: {why}")]
    ImpossiblePlan { path: String, why: ImpossiblePlan },
    #[error("rewritten files: {}", records::plain(.0))]
    NoCache(io::Error),
    #[error(transparent)]
    Twins(#[from] TwinsError),
    #[error("the plan has nothing for {path} as a {}", role.word())]
    NotPlanned { path: String, role: Role },
    #[error("the plan is for another {path}: its contents have changed since")]
    PlanIsForAnother { path: String },
    #[error("--exclude: {0}: no load of a loop in these programs that could become a yield")]
    NothingToExclude(String),
    #[error("--libraries: {0}: none of these programs is linked to it")]
    NoSuchLibrary(String),
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// The kinds that exit codes tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    WrongUse,
    NotPossibleHere,
    Failed,
}

impl WouldHelp for SessionError {
    fn would_help(&self) -> Option<&str> {
        self.is_file_limit().then_some("the file size limit is too small (ulimit -f)")
    }
}

impl SessionError {
    pub fn kind(&self) -> FailureKind {
        if self.is_file_limit() {
            return FailureKind::NotPossibleHere;
        }
        match self {
            Self::Program(
                ProgramError::StaticPrimary(_)
                | ProgramError::OriginLibraries(_)
                | ProgramError::SetId(_)
                | ProgramError::Capabilities(_),
            )
            | Self::NoCache(_)
            | Self::Twins(TwinsError::Refused { .. })
            | Self::Launch(
                LaunchError::Memfd(_)
                | LaunchError::NoProc
                | LaunchError::Forbidden(..)
                | LaunchError::NoPidfd(_)
                | LaunchError::NoDescriptor(_)
                | LaunchError::NoProcess(_),
            ) => FailureKind::NotPossibleHere,
            Self::Output { .. }
            | Self::Twins(TwinsError::Unproven { .. } | TwinsError::Cache(_))
            | Self::Launch(LaunchError::Wait(_)) => FailureKind::Failed,
            _ => FailureKind::WrongUse,
        }
    }

    fn is_file_limit(&self) -> bool {
        let (Self::Twins(TwinsError::Cache(why)) | Self::Launch(LaunchError::Memfd(why))) = self else {
            return false;
        };
        why.kind() == io::ErrorKind::FileTooLarge
    }

    /// A cache in another directory may help: not where it is this process that may have no more.
    pub(super) fn of_cache_directory(&self) -> Option<&io::Error> {
        use io::ErrorKind as Kind;
        let Self::Twins(TwinsError::Cache(why)) = self else { return None };
        let of_directory = matches!(
            why.kind(),
            Kind::StorageFull
                | Kind::QuotaExceeded
                | Kind::PermissionDenied
                | Kind::ReadOnlyFilesystem
                | Kind::IsADirectory
                | Kind::NotADirectory
        );
        of_directory.then_some(why)
    }
}
