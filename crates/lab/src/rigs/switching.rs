//! User-level switches, and the small calls that they are compared with.

use super::Rig;
use crate::code::Loaded;
use crate::{sys, tsc};
use kernels::{SWITCH_SCRATCH_BYTES, Spec};

/// A piece of the contexts and stacks of a switch kernel, aligned as it wants them.
#[derive(Clone)]
#[repr(C, align(64))]
struct Scratch([u64; 8]);

/// A ring of contexts switching to each other.
pub struct SwitchRig {
    kernel: Loaded,
    scratch: Vec<Scratch>,
    expected: u64,
}

impl std::fmt::Debug for SwitchRig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchRig").field("kernel", &self.kernel.kernel.spec).finish_non_exhaustive()
    }
}

impl SwitchRig {
    /// `kernel` must be a `Switch`; anything else is a broken program.
    pub fn new(kernel: Loaded) -> Self {
        let Spec::Switch { live, vectors, .. } = kernel.kernel.spec else { panic!("not a switch kernel") };
        let expected = kernels::switch_checksum(live, vectors);
        Self { kernel, scratch: vec![Scratch([0; 8]); SWITCH_SCRATCH_BYTES.div_ceil(64)], expected }
    }

    fn go(&mut self, loops: u64) -> u64 {
        let scratch = self.scratch.as_mut_ptr().cast::<u64>();
        let from = tsc::now();
        // SAFETY: the scratch memory is as large and as aligned as the kernel wants it, and nothing
        // else uses it.
        let sum = unsafe { self.kernel.call(std::ptr::null_mut(), loops, scratch, std::ptr::null_mut()) };
        let ticks = tsc::end().0 - from;
        assert_eq!(sum, self.expected, "a switch lost a register");
        ticks
    }
}

impl Rig for SwitchRig {
    fn warm(&mut self) {
        self.go(512);
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        let ticks = self.go(loops);
        vec![ticks as f64 / (loops * self.kernel.kernel.ops_per_loop) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.warm();
        self.go(512) as f64 / 512.0
    }
}

/// A short operation by which a program leaves its work for a moment.
#[derive(Clone, Debug)]
pub enum SmallCall {
    /// A call of an empty function by its address: the kernel `Nothing`.
    Function(Loaded),
    ReadTsc,
    SystemCall,
    SchedYieldAlone,
}

#[derive(Debug)]
pub struct SmallCallRig {
    what: SmallCall,
}

impl SmallCallRig {
    pub fn new(what: SmallCall) -> Self {
        if let SmallCall::Function(kernel) = &what {
            assert!(matches!(kernel.kernel.spec, Spec::Nothing), "not an empty kernel");
        }
        Self { what }
    }

    fn go(&self, loops: u64) -> u64 {
        match &self.what {
            SmallCall::Function(kernel) => timed(loops, || {
                // SAFETY: an empty function may be called with anything.
                unsafe {
                    kernel.call_plainly(std::ptr::null_mut(), 0, std::ptr::null_mut(), std::ptr::null_mut());
                }
            }),
            SmallCall::ReadTsc => timed(loops, || {
                tsc::now();
            }),
            SmallCall::SystemCall => timed(loops, sys::empty_call),
            SmallCall::SchedYieldAlone => timed(loops, std::thread::yield_now),
        }
    }
}

fn timed(loops: u64, f: impl Fn()) -> u64 {
    let from = tsc::now();
    for _ in 0..loops {
        f();
    }
    tsc::end().0 - from
}

impl Rig for SmallCallRig {
    fn warm(&mut self) {
        self.go(256);
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        vec![self.go(loops) as f64 / loops as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.warm();
        self.go(256) as f64 / 256.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_lose_nothing() {
        for (live, flags, vectors, sites) in [(0, false, 0, 1), (2, false, 0, 2), (14, true, 16, 4)] {
            let kernel = kernels::assemble(&Spec::Switch { live, flags, vectors, sites }).unwrap();
            let mut rig = SwitchRig::new(Loaded::new(kernel).unwrap());
            assert!(rig.ticks_per_loop() > 0.0);
            assert!(rig.run(1000)[0] > 0.0);
        }
    }

    #[test]
    fn little_things_take_time() {
        let nothing = Loaded::new(kernels::assemble(&Spec::Nothing).unwrap()).unwrap();
        for what in [
            SmallCall::Function(nothing),
            SmallCall::ReadTsc,
            SmallCall::SystemCall,
            SmallCall::SchedYieldAlone,
        ] {
            assert!(SmallCallRig::new(what).run(100)[0] > 0.0);
        }
    }
}
