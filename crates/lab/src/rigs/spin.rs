//! A busy loop that touches no memory.

use super::Rig;
use crate::code::Loaded;
use crate::tsc;

#[derive(Debug)]
pub struct SpinRig {
    kernel: Loaded,
}

impl SpinRig {
    /// `kernel` must be `Spin`; anything else is a broken program.
    pub fn new(kernel: Loaded) -> Self {
        assert!(matches!(kernel.kernel.spec, kernels::Spec::Spin { .. }), "not a spinning kernel");
        Self { kernel }
    }

    fn spin(&self, loops: u64) -> u64 {
        let from = tsc::now();
        // SAFETY: the kernel touches no memory and takes only a loop count.
        unsafe {
            self.kernel.call(std::ptr::null_mut(), loops, std::ptr::null_mut(), std::ptr::null_mut());
        }
        tsc::end().0 - from
    }
}

impl Rig for SpinRig {
    fn warm(&mut self) {
        self.spin(1 << 12);
    }

    /// Ticks per loop.
    fn run(&mut self, loops: u64) -> Vec<f64> {
        vec![self.spin(loops) as f64 / loops as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.spin(1 << 12) as f64 / f64::from(1 << 12)
    }
}
