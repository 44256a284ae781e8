//! One way of making a change: the settings that it consists of.

use records::recipe::Setting;
use std::ffi::OsString;

/// A way in which a change can be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Form {
    /// Which of the change's forms this is, in words.
    pub says: String,
    pub settings: Vec<Setting>,
    /// Behind the program's own.
    pub arguments: Vec<OsString>,
}

impl Form {
    pub(crate) fn new(says: &str, settings: Vec<Setting>) -> Self {
        Self { says: says.to_owned(), settings, ..Self::default() }
    }
}
