//! A rig that is warmed and run under a host setting of its own, so that settings can be
//! interleaved like anything else.

use super::Rig;
use crate::settings::Change;
use std::cell::RefCell;
use std::rc::Rc;

/// A setting that several rigs change. Its original comes back when the last of them is dropped.
#[derive(Debug)]
pub struct SharedSetting {
    change: Change,
    now: RefCell<Vec<u8>>,
    failed: RefCell<Option<String>>,
}

impl SharedSetting {
    pub fn new(change: Change) -> Rc<Self> {
        let now = RefCell::new(change.original().to_owned());
        Rc::new(Self { change, now, failed: RefCell::new(None) })
    }

    pub fn original(&self) -> &[u8] {
        self.change.original()
    }

    /// Sets the value, unless it is set already. Also fails if the host takes the value and then
    /// does not have it.
    pub fn to(&self, value: &[u8]) -> Result<(), String> {
        if *self.now.borrow() == value {
            return Ok(());
        }
        let there = self.change.set(value).map_err(|e| e.to_string())?;
        let place = self.change.place();
        if !place.same(&there, value) {
            return Err(format!("{place} became {} instead of {}", place.show(&there), place.show(value)));
        }
        value.clone_into(&mut self.now.borrow_mut());
        Ok(())
    }

    /// What went wrong while rigs ran; if anything did, their readings are worthless.
    pub fn failure(&self) -> Option<String> {
        self.failed.borrow().clone()
    }
}

/// The rig itself.
pub struct WithSettingRig {
    rig: Box<dyn Rig>,
    setting: Rc<SharedSetting>,
    value: Vec<u8>,
}

impl std::fmt::Debug for WithSettingRig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithSettingRig").field("value", &self.value).finish_non_exhaustive()
    }
}

impl WithSettingRig {
    pub fn new(rig: Box<dyn Rig>, setting: Rc<SharedSetting>, value: Vec<u8>) -> Self {
        Self { rig, setting, value }
    }

    fn enter(&self) {
        if let Err(why) = self.setting.to(&self.value) {
            self.setting.failed.borrow_mut().get_or_insert(why);
        }
    }
}

impl Rig for WithSettingRig {
    fn warm(&mut self) {
        self.enter();
        self.rig.warm();
    }

    fn prepare(&mut self, loops: u64) {
        self.rig.prepare(loops);
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        self.rig.run(loops)
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.enter();
        self.rig.ticks_per_loop()
    }

    /// The kernel sets registers, and may sleep meanwhile.
    fn sleeps(&self) -> bool {
        true
    }
}
