//! Windows of an area, drawn at random, every double in them sign-changed.
//!
//! Offsets are drawn before the clock starts, into a table that is read along with the windows:
//! eight bytes a window, in order, which is less than a hundredth of what the smallest window
//! moves.

use super::Rig;
use crate::arena::{Arena, PageKind, PagesGiven};
use crate::code::Loaded;
use crate::rng::Rng;
use crate::sys::SysError;
use crate::tsc;
use kernels::Spec;
use std::cell::RefCell;
use std::rc::Rc;
use units::Bytes;

/// Memory full of ones, which several rigs share, one at a time.
#[derive(Debug)]
pub struct Doubles {
    arena: RefCell<Arena>,
}

impl Doubles {
    pub fn new(size: Bytes, kind: PageKind) -> Result<Rc<Self>, SysError> {
        let mut arena = Arena::new(size, kind)?;
        arena.words_mut().fill(1.0_f64.to_bits());
        Ok(Rc::new(Self { arena: RefCell::new(arena) }))
    }

    pub fn pages(&self) -> PagesGiven {
        self.arena.borrow().given
    }
}

/// How a rig brings caches into the state that random windows leave them in.
#[derive(Clone, Copy, Debug)]
pub struct Warming {
    /// Larger areas are not gone through whole.
    pub whole_below: Bytes,
    /// Of random windows, at the most.
    pub bytes: Bytes,
}

#[derive(Debug)]
pub struct WindowsRig {
    kernel: Loaded,
    memory: Rc<Doubles>,
    window: u64,
    windows: u64,
    warming: Warming,
    table: Vec<u64>,
    scratch: Vec<u64>,
    /// Windows of a block.
    planned: usize,
    rng: Rng,
}

/// Windows at a time while warming.
const WARM_WINDOWS_PER_CALL: usize = 512;

impl WindowsRig {
    /// Windows as large as the kernel's, which must be a `Windows`, in the first `area` bytes of
    /// the memory.
    pub fn new(kernel: Loaded, memory: Rc<Doubles>, area: Bytes, warming: Warming, rng: Rng) -> Self {
        let Spec::Windows { bytes, .. } = kernel.kernel.spec else { panic!("not a windows kernel") };
        assert!(kernel.runs_here(), "the kernel needs more than this processor has");
        let window = u64::from(bytes);
        let windows = area.0 / window;
        assert!(windows > 0 && area.0 <= memory.arena.borrow().len() as u64, "the area does not fit");
        let scratch = Vec::with_capacity(WARM_WINDOWS_PER_CALL);
        Self { kernel, memory, window, windows, warming, table: Vec::new(), scratch, planned: 0, rng }
    }

    /// Goes over the windows at these offsets.
    fn go(&self, offsets: &[u64]) -> u64 {
        let memory = self.memory.arena.borrow_mut();
        let table = offsets.as_ptr().cast_mut();
        let from = tsc::now();
        // SAFETY: offsets are multiples of the window, itself a multiple of 64, below the area's
        // end, and the area lies in the arena, which is borrowed mutably; the table holds as many
        // as there are loops and is only read. What the kernel needs of the processor is checked by
        // `new`.
        unsafe {
            self.kernel.call(memory.base(), offsets.len() as u64, table, std::ptr::null_mut());
        }
        tsc::end().0 - from
    }

    fn draw(&mut self, count: usize) {
        let Self { table, rng, windows, window, .. } = self;
        table.clear();
        table.extend((0..count).map(|_| rng.below(*windows) * *window));
    }

    fn warm_with(&mut self, count: u64, mut offset: impl FnMut(&mut Rng, u64) -> u64) {
        let mut done = 0;
        while done < count {
            let piece = (count - done).min(WARM_WINDOWS_PER_CALL as u64);
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.clear();
            scratch.extend((done..done + piece).map(|i| offset(&mut self.rng, i) * self.window));
            self.go(&scratch);
            self.scratch = scratch;
            done += piece;
        }
    }
}

impl Rig for WindowsRig {
    fn warm(&mut self) {
        // First what is not to disturb the warmed caches.
        self.draw(self.planned);
        let windows = self.windows;
        if windows * self.window <= self.warming.whole_below.0 {
            self.warm_with(windows, |_, i| i);
        }
        let random = windows.min(self.warming.bytes.0 / self.window).max(16);
        self.warm_with(random, |rng, _| rng.below(windows));
    }

    fn prepare(&mut self, loops: u64) {
        self.planned = loops as usize;
        self.draw(self.planned);
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        let loops = loops as usize;
        if self.table.len() != loops {
            self.draw(loops);
        }
        let ticks = self.go(&self.table);
        vec![ticks as f64 / loops.max(1) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.warm();
        self.draw(64);
        let ticks = self.go(&self.table) as f64 / 64.0;
        self.table.clear();
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_in_its_area_and_keeps_magnitudes() {
        let memory = Doubles::new(Bytes::mib(1), PageKind::Small).unwrap();
        let kernel =
            Loaded::new(kernels::assemble(&Spec::Windows { bytes: 1024, vectorised: false }).unwrap());
        let area = Bytes(40 * 1024);
        let warming = Warming { whole_below: Bytes::mib(1), bytes: Bytes::mib(1) };
        let mut rig = WindowsRig::new(kernel.unwrap(), Rc::clone(&memory), area, warming, Rng::new(1));
        assert!(rig.ticks_per_loop() > 0.0);
        rig.prepare(101);
        for _ in 0..3 {
            rig.warm();
            assert!(rig.run(101)[0] > 0.0);
        }
        let mut arena = memory.arena.borrow_mut();
        let (inside, outside) = arena.words_mut().split_at(area.0 as usize / 8);
        assert!(inside.iter().all(|&w| f64::from_bits(w).abs() == 1.0));
        assert!(inside.iter().any(|&w| f64::from_bits(w) == -1.0));
        assert!(outside.iter().all(|&w| w == 1.0_f64.to_bits()));
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn an_area_beyond_the_memory_is_refused() {
        let memory = Doubles::new(Bytes(8192), PageKind::Small).unwrap();
        let kernel =
            Loaded::new(kernels::assemble(&Spec::Windows { bytes: 1024, vectorised: false }).unwrap());
        let warming = Warming { whole_below: Bytes(0), bytes: Bytes(0) };
        WindowsRig::new(kernel.unwrap(), memory, Bytes(16384), warming, Rng::new(1));
    }
}
