//! A rig that runs after another one has warmed up: what the first one did to the caches of its CPU
//! is what a member on another CPU meets.

use super::Rig;

/// Warms up two rigs, `last_warmed` last, and runs `timed`.
pub struct AfterWarmingRig<'a> {
    last_warmed: Box<dyn Rig + Send + 'a>,
    timed: Box<dyn Rig + Send + 'a>,
}

impl<'a> AfterWarmingRig<'a> {
    pub fn new(last_warmed: Box<dyn Rig + Send + 'a>, timed: Box<dyn Rig + Send + 'a>) -> Self {
        Self { last_warmed, timed }
    }
}

impl Rig for AfterWarmingRig<'_> {
    fn warm(&mut self) {
        self.timed.warm();
        self.last_warmed.warm();
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        self.timed.run(loops)
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.timed.ticks_per_loop()
    }

    fn release(&mut self) {
        self.timed.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Recorded(&'static str, Arc<Mutex<Vec<String>>>);

    impl Rig for Recorded {
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
        let record = Arc::new(Mutex::new(Vec::new()));
        let mut rig = AfterWarmingRig::new(
            Box::new(Recorded("first", record.clone())),
            Box::new(Recorded("second", record.clone())),
        );
        rig.warm();
        assert_eq!(rig.run(7), [1.0]);
        assert_eq!(*record.lock().unwrap(), ["second warms", "first warms", "second runs 7"]);
    }
}
