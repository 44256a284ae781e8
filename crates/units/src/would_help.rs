//! What a user can do where something was refused.

/// Why something could not be done, where what would make it possible may be known.
pub trait WouldHelp {
    /// What would help, in words that a user can act on.
    fn would_help(&self) -> Option<&str>;
}
