//! A rig that runs after another one has prepared the ground.

use super::Rig;

/// Warms up one rig and runs another: what the first has done to caches on its CPU is what a member elsewhere meets.
pub struct AfterWarmingRig<'a> {
    before: Box<dyn Rig + Send + 'a>,
    then: Box<dyn Rig + Send + 'a>,
}

impl<'a> AfterWarmingRig<'a> {
    pub fn new(before: Box<dyn Rig + Send + 'a>, then: Box<dyn Rig + Send + 'a>) -> Self {
        Self { before, then }
    }
}

impl Rig for AfterWarmingRig<'_> {
    fn warm(&mut self) {
        self.then.warm();
        self.before.warm();
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        self.then.run(loops)
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.then.ticks_per_loop()
    }

    fn release(&mut self) {
        self.then.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Told(&'static str, Arc<Mutex<Vec<String>>>);

    impl Rig for Told {
        fn warm(&mut self) {
            self.1.lock().unwrap().push(format!("{} warms", self.0));
        }

        fn run(&mut self, loops: u64) -> Vec<f64> {
            self.1.lock().unwrap().push(format!("{} runs {loops}", self.0));
            vec![1.0]
        }

        fn ticks_per_loop(&mut self) -> f64 {
            1.0
        }
    }

    #[test]
    fn the_first_warms_last_and_only_the_second_runs() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut rig = AfterWarmingRig::new(
            Box::new(Told("first", told.clone())),
            Box::new(Told("second", told.clone())),
        );
        rig.warm();
        assert_eq!(rig.run(7), [1.0]);
        assert_eq!(*told.lock().unwrap(), ["second warms", "first warms", "second runs 7"]);
    }
}
