//! Which events of this machine's cores sample loads, as the kernel lists them: a folder for each
//! PMU, with its number, its events, and in which bits of the attributes each setting goes.
//!
//! ```text
//! cpu/type             4
//! cpu/events/mem-loads event=0xcd,umask=0x1,ldlat=3
//! cpu/format/ldlat     config1:0-15
//! ```

use crate::perf::open::AccessEvent;
use records::profile::Backend;
use std::path::Path;

/// Loads that are quicker hit L1 or L2: they would fill the samples and say little.
const LEAST_LATENCY: u64 = 30;

/// From here on the sampled instruction is the load itself.
const EXACT: u64 = 2;

/// The event by which this hardware samples loads; or why there is none. `devices` is the folder
/// of the kernel's list.
pub(crate) fn find(devices: &Path, backend: Backend) -> Result<AccessEvent, String> {
    match backend {
        Backend::Pebs => pebs(devices),
        Backend::Ibs => ibs(devices),
        Backend::Clock | Backend::Signal | Backend::Spe => {
            Err("it is not sampled on this kind of machine".to_owned())
        }
    }
}

fn pebs(devices: &Path) -> Result<AccessEvent, String> {
    let pmu = ["cpu", "cpu_core"].map(|name| devices.join(name));
    let Some(pmu) = pmu.iter().find(|pmu| pmu.join("events/mem-loads").exists()) else {
        return Err("the kernel lists no event cpu/mem-loads".to_owned());
    };
    if pmu.join("events/mem-loads-aux").exists() {
        let why =
            "its cores sample loads only beside a second event (mem-loads-aux), which is not opened here";
        return Err(why.to_owned());
    }
    let event = text(&pmu.join("events/mem-loads")).ok_or("cpu/mem-loads cannot be read")?;
    let mut config = Config::default();
    for setting in event.split(',') {
        let (name, value) = setting.split_once('=').unwrap_or((setting, "1"));
        let value = number(value).ok_or_else(|| format!("cpu/mem-loads has a setting {setting}"))?;
        let value = if name == "ldlat" { LEAST_LATENCY } else { value };
        config.set(pmu, name, value).ok_or_else(|| format!("cpu/mem-loads has an unknown setting {name}"))?;
    }
    let precise = text(&pmu.join("caps/max_precise")).and_then(|most| number(&most)).unwrap_or(2).min(3);
    if precise < EXACT {
        return Err("the kernel samples no exact instructions here".to_owned());
    }
    Ok(AccessEvent {
        backend: Backend::Pebs,
        kind: kind(pmu)?,
        config: config.words,
        precise,
        excludes_kernel: true,
    })
}

fn ibs(devices: &Path) -> Result<AccessEvent, String> {
    let pmu = devices.join("ibs_op");
    if !pmu.exists() {
        return Err("the kernel lists no ibs_op".to_owned());
    }
    // The hardware samples the kernel as well; newer kernels leave that out, if asked.
    let mut config = Config::default();
    let excludes_kernel = config.set(&pmu, "swfilt", 1).is_some();
    Ok(AccessEvent {
        backend: Backend::Ibs,
        kind: kind(&pmu)?,
        config: config.words,
        precise: 0,
        excludes_kernel,
    })
}

/// The three words of an event's attributes that settings go into.
#[derive(Default)]
struct Config {
    words: [u64; 3],
}

impl Config {
    /// Puts a value where the PMU's format says: `config1:0-15`, `config:3`, or several pieces
    /// behind one another: `config:0-7,32-35`.
    fn set(&mut self, pmu: &Path, name: &str, value: u64) -> Option<()> {
        let format = text(&pmu.join("format").join(name))?;
        let (word, pieces) = format.split_once(':')?;
        let word = self.words.get_mut(match word {
            "config" => 0,
            "config1" => 1,
            "config2" => 2,
            _ => return None,
        })?;
        let mut left = value;
        for piece in pieces.split(',') {
            let (low, high) = piece.split_once('-').unwrap_or((piece, piece));
            let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
            let width = high.checked_sub(low).filter(|_| high < 64)? + 1;
            let mask = u64::MAX >> (64 - width);
            *word |= (left & mask) << low;
            left = left.checked_shr(width).unwrap_or(0);
        }
        (left == 0).then_some(())
    }
}

fn kind(pmu: &Path) -> Result<u32, String> {
    let kind = text(&pmu.join("type")).and_then(|kind| kind.parse().ok());
    kind.ok_or_else(|| format!("{} tells no type", pmu.display()))
}

fn text(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        folder
    }

    const INTEL: [(&str, &str); 6] = [
        ("cpu/type", "4"),
        ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/ldlat", "config1:0-15"),
        ("cpu/caps/max_precise", "3"),
    ];

    #[test]
    fn settings_go_where_the_format_says() {
        let folder = devices(&INTEL);
        let event = find(folder.path(), Backend::Pebs).unwrap();
        assert_eq!((event.kind, event.config, event.precise), (4, [0x1cd, LEAST_LATENCY, 0], 3));
        let amd = devices(&[("ibs_op/type", "9"), ("ibs_op/format/swfilt", "config2:0")]);
        let event = find(amd.path(), Backend::Ibs).unwrap();
        assert_eq!((event.kind, event.config, event.excludes_kernel), (9, [0, 0, 1], true));
        let old = devices(&[("ibs_op/type", "9")]);
        assert!(!find(old.path(), Backend::Ibs).unwrap().excludes_kernel);
        let pieces = devices(&[("p/format/split", "config:0-3,8-11")]);
        let mut config = Config::default();
        assert_eq!(config.set(&pieces.path().join("p"), "split", 0xa5), Some(()));
        assert_eq!(config.words[0], 0xa05);
        assert_eq!(config.set(&pieces.path().join("p"), "split", 0x1a5), None, "too large");
    }

    #[test]
    fn what_is_not_there_or_needs_more_is_told() {
        let none = devices(&[("software/type", "1")]);
        assert!(find(none.path(), Backend::Pebs).unwrap_err().contains("no event cpu/mem-loads"));
        assert!(find(none.path(), Backend::Ibs).unwrap_err().contains("no ibs_op"));
        let mut blurred = INTEL.to_vec();
        blurred[5].1 = "1";
        assert!(find(devices(&blurred).path(), Backend::Pebs).unwrap_err().contains("no exact"));
        let mut with_second = INTEL.to_vec();
        with_second.push(("cpu/events/mem-loads-aux", "event=0x03,umask=0x82"));
        assert!(find(devices(&with_second).path(), Backend::Pebs).unwrap_err().contains("mem-loads-aux"));
        for missing in 0..5 {
            let mut some = INTEL.to_vec();
            some.remove(missing);
            assert!(find(devices(&some).path(), Backend::Pebs).is_err(), "{missing}");
        }
    }
}
