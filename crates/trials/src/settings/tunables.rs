//! What glibc's `malloc` lets one choose, by `GLIBC_TUNABLES`. Other libcs, and programs that are
//! linked statically to them, do not look at it.

use super::prepared::Start;
use records::recipe::Setting;
use std::ffi::OsStr;

const VARIABLE: &str = "GLIBC_TUNABLES";

/// Memory that was freed stays with the program, and more is taken at once: no page is asked of the
/// kernel twice.
pub(crate) fn keeps_memory() -> Vec<Setting> {
    vec![
        tunable("glibc.malloc.trim_threshold", 4 << 30),
        tunable("glibc.malloc.mmap_threshold", 4 << 30),
        tunable("glibc.malloc.top_pad", 64 << 20),
    ]
}

/// Each thread keeps more of what it freed for itself.
pub(crate) fn keeps_blocks() -> Vec<Setting> {
    vec![tunable("glibc.malloc.tcache_count", 1024)]
}

fn tunable(name: &str, value: u64) -> Setting {
    Setting::Tunable { name: name.to_owned(), value: value.to_string() }
}

pub(crate) fn start(settings: &[Setting], start: &mut Start) {
    for setting in settings {
        match setting {
            Setting::MallocOnHugePages => start.behind(VARIABLE, OsStr::new("glibc.malloc.hugetlb=1")),
            Setting::Tunable { name, value } => start.behind(VARIABLE, format!("{name}={value}").as_ref()),
            _ => {}
        }
    }
}
