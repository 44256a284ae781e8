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
    #[error(
        "{0} program: its runtime looks up return addresses in tables of its own, so it is not rewritten; \
         `gleaner profile` measures it as it is"
    )]
    ForeignRuntime(&'static str),
    #[error("sets the GS base (wrgsbase), which yields use")]
    SetsGs,
    #[error(
        "no unwind table (.eh_frame), so no function can be rewritten safely; \
         `gleaner profile` measures it as it is"
    )]
    NoUnwindTable,
    #[error("{0} would not fit within reach of this file's addresses")]
    OutOfReach(&'static str),
    #[error("it has no separate string table for section names")]
    SectionNames,
    #[error("unwind table: {0}")]
    UnwindTable(&'static str),
    #[error("what a rewritten file says of itself: {0}")]
    Mapping(#[from] twin_format::FormatError),
}
