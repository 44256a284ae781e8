//! How far a run has come: said by the rooms that do the work, shown by a console.

/// Hears how far a run has come.
pub trait Progress {
    /// What is done now, and which part of the whole run is behind us (0 to 1).
    fn at(&mut self, what: &str, fraction: f64);
    /// A line that stays: something is finished, or odd.
    fn line(&mut self, text: &str);
    /// Nothing more follows.
    fn finish(&mut self);
}

/// Hears it and shows nothing.
#[derive(Debug)]
pub struct Silent;

impl Progress for Silent {
    fn at(&mut self, _what: &str, _fraction: f64) {}
    fn line(&mut self, _text: &str) {}
    fn finish(&mut self) {}
}
