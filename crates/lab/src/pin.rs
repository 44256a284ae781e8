//! A thread that stays on one CPU while it measures, and gets its old freedom back afterwards.

use crate::sys::{self, SysError};

/// CPUs that this process may use, ascending.
pub fn allowed() -> Result<Vec<usize>, SysError> {
    sys::allowed_cpus()
}

/// The calling thread, and the processes that it starts, are pinned while this lives.
#[derive(Debug)]
pub struct Pinned {
    cpu: usize,
    before: Vec<usize>,
}

impl Pinned {
    pub fn to(cpu: usize) -> Result<Self, SysError> {
        Self::among(&[cpu])
    }

    /// To any of these, of which the first counts as its own.
    pub fn among(cpus: &[usize]) -> Result<Self, SysError> {
        let before = sys::allowed_cpus()?;
        sys::set_affinity(cpus)?;
        // The kernel moves the thread at the latest when it next runs; a yield makes that now.
        std::thread::yield_now();
        Ok(Self { cpu: cpus.first().copied().unwrap_or_default(), before })
    }

    pub fn cpu(&self) -> usize {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A CPU may have gone away meanwhile; there is nothing better to do then than to stay.
        let _ = sys::set_affinity(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_restores() {
        let before = allowed().unwrap();
        let cpu = *before.last().unwrap();
        {
            let pinned = Pinned::to(cpu).unwrap();
            assert_eq!(pinned.cpu(), cpu);
            assert_eq!(allowed().unwrap(), [cpu]);
        }
        assert_eq!(allowed().unwrap(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        assert!(Pinned::to(100_000).is_err());
    }
}
