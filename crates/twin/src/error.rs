//! Why a file cannot be rewritten at all: one clear line each.

use image::ImageError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TwinError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("the separate debug information: {0}")]
    Debug(ImageError),
    #[error("the separate debug information is of another build: their build ids differ")]
    OtherDebug,
    #[error("already rewritten: it carries this program's note")]
    AlreadyRewritten,
    #[error("{0} program: its runtime looks up return addresses in tables of its own")]
    ForeignRuntime(&'static str),
    #[error("a Go program that {0}")]
    Go(&'static str),
    #[error("a Go program whose tables {0}")]
    GoTables(&'static str),
    #[error("sets the GS base (wrgsbase), by which its yields would find their place")]
    SetsGs,
    #[error("no unwind table, so no functions that could be rewritten safely")]
    NoUnwindTable,
    #[error("{0} would not fit where this file's addresses reach")]
    OutOfReach(&'static str),
    #[error("its sections have no table of names of their own")]
    SectionNames,
    #[error("unwind table: {0}")]
    UnwindTable(&'static str),
}
