//! One value for each effort of a run: quick, normal, thorough.

use records::machine::Effort;

/// A value chosen by how thorough the run is.
#[derive(Clone, Copy, Debug)]
pub struct ByEffort<T> {
    pub quick: T,
    pub normal: T,
    pub thorough: T,
}

impl<T> ByEffort<T> {
    pub fn at(self, effort: Effort) -> T {
        match effort {
            Effort::Quick => self.quick,
            Effort::Normal => self.normal,
            Effort::Thorough => self.thorough,
        }
    }
}
