//! Huge pages: for what libc's `malloc` hands out, by glibc's own setting, and for what the program
//! maps itself (arenas of interpreters, other allocators), by the preloaded library.

use crate::page::Expected;
use crate::preloaded;
use crate::prepared::Prepared;
use heap::changes::layout::Asked;
use records::host::{Host, ThpMode};
use std::ffi::OsStr;

/// What may lie on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Mappings up to this size: larger ones are reservations, of which a little is used.
    pub up_to: u64,
    /// The kernel gives them to programs that ask.
    pub is_allowed: bool,
}

const BOTH: &str = "malloc's memory and what the program maps itself";
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

pub(crate) fn prepare(huge: HugePages) -> Result<Vec<Prepared>, String> {
    if !huge.is_allowed {
        return Err("the kernel gives no huge pages: transparent_hugepage is off".to_owned());
    }
    let asked = Asked { huge_up_to: huge.up_to, ..Asked::default() };
    let mut mallocs = Prepared { says: "malloc's memory".to_owned(), ..Prepared::default() };
    with_tunable(&mut mallocs);
    let mapped = preloaded::prepare(&asked, Expected::Mapped, "what the program maps itself".to_owned())?;
    let mut both = preloaded::prepare(&asked, Expected::Mapped, BOTH.to_owned())?;
    with_tunable(&mut both);
    Ok(vec![mallocs, mapped, both])
}

fn with_tunable(prepared: &mut Prepared) {
    prepared.behind("GLIBC_TUNABLES", OsStr::new("glibc.malloc.hugetlb=1"));
}
