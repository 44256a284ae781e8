//! Huge pages: for what libc's `malloc` hands out, by glibc's own setting; for what the program
//! maps itself (arenas of interpreters, other allocators) and for code, by the preloaded library.

use crate::settings::form::Form;
use records::host::{Host, ThpMode};
use records::recipe::Setting;

/// What may lie on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Mappings up to this size: larger ones are reservations, of which a little is used.
    pub up_to: u64,
    /// The kernel gives them to programs that ask.
    pub is_allowed: bool,
}

/// Mappings up to this part of the machine's memory.
const MOST_OF_MEMORY: u64 = 2;

impl HugePages {
    /// As this machine has them.
    pub fn of(host: &Host) -> Self {
        let memory = host.memory.total.value().map_or(1 << 30, |total| total.0);
        let mode = host.pages.thp.effective().value();
        Self { up_to: memory / MOST_OF_MEMORY, is_allowed: mode.is_some_and(|mode| mode != ThpMode::Never) }
    }
}

pub(crate) fn forms(huge: HugePages) -> Result<Vec<Form>, String> {
    allowed(huge)?;
    let mapped = || Setting::MappedOnHugePages { up_to: huge.up_to };
    Ok(vec![
        Form::new("malloc's memory", vec![Setting::MallocOnHugePages]),
        Form::new("what the program maps itself", vec![mapped()]),
        Form::new(
            "malloc's memory and what the program maps itself",
            vec![Setting::MallocOnHugePages, mapped()],
        ),
    ])
}

pub(crate) fn for_code(huge: HugePages) -> Result<Vec<Form>, String> {
    allowed(huge)?;
    Ok(vec![Form::new("", vec![Setting::CodeOnHugePages])])
}

fn allowed(huge: HugePages) -> Result<(), String> {
    let why = || "the kernel gives no huge pages: transparent_hugepage is off".to_owned();
    huge.is_allowed.then_some(()).ok_or_else(why)
}
