//! How prefetchers are switched here: a register of the CPU on x86, the default of all threads on
//! POWER.
//!
//! To add a kind of machine: what it has, in `host::prefetch`, and the states worth measuring,
//! here.

use host::Host;
use host::prefetch::{AMD, DEPTHS, DSCR, INTEL, Register};
use lab::settings::SettingPlace;
use records::host::Ability;
use std::path::Path;

/// A setting, and the states worth measuring beside the one that is found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PrefetchControl {
    pub place: SettingPlace,
    pub states: Vec<(String, Vec<u8>)>,
}

/// Why nothing can be switched, and what would help.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NoControl {
    pub why: String,
    pub would_help: String,
}

/// The control that this machine has, if it can be read.
pub(super) fn find(root: &Path, host: &Host, cpu: usize) -> Result<PrefetchControl, NoControl> {
    let depth = SettingPlace::text(root.join(DSCR));
    if depth.read().is_ok() {
        return Ok(PrefetchControl { place: depth, states: depths() });
    }
    let register = match host.processor.vendor.get().map(String::as_str) {
        Some("GenuineIntel") => INTEL,
        Some("AuthenticAMD" | "HygonGenuine") => AMD,
        _ => {
            return Err(NoControl {
                why: "Gleaner knows no prefetch control of this processor".to_owned(),
                would_help: "a setting in the firmware, if there is one".to_owned(),
            });
        }
    };
    let place = SettingPlace::msr(root, cpu, register.address);
    match place.read() {
        Ok(value) => {
            let value = u64::from_le_bytes(value.try_into().unwrap_or_default());
            Ok(PrefetchControl { place, states: states(&register, value) })
        }
        Err(error) => {
            let known = match &host.prefetch.control {
                Ability::No { would_help, .. } => would_help.clone(),
                _ => "a host on which root may read and write /dev/cpu/*/msr (modprobe msr); most often bare metal"
                    .to_owned(),
            };
            Err(NoControl { why: format!("{place} cannot be read: {error}"), would_help: known })
        }
    }
}

/// Each prefetcher switched to what it is not, one at a time, and then all off.
fn states(register: &Register, found: u64) -> Vec<(String, Vec<u8>)> {
    let all = register.bits.iter().fold(0, |mask, (bit, _)| mask | 1_u64 << bit);
    let mut states: Vec<(String, u64)> = register
        .bits
        .iter()
        .map(|(bit, name)| {
            let to = if found >> bit & 1 == 0 { "off" } else { "on" };
            (format!("{name} {to}"), found ^ (1 << bit))
        })
        .collect();
    if found & all != all {
        states.push(("all off".to_owned(), found | all));
    }
    states.into_iter().map(|(name, value)| (name, value.to_le_bytes().to_vec())).collect()
}

/// The depths, the deepest with streams of stores as well, and streams of strides longer than a
/// line.
fn depths() -> Vec<(String, Vec<u8>)> {
    let named = DEPTHS.iter().enumerate().map(|(depth, name)| (format!("depth {depth} ({name})"), depth));
    let more = [("depth 7 with store streams".to_owned(), 0xf), ("strided streams".to_owned(), 0x10)];
    named.chain(more).map(|(name, value)| (name, format!("{value:x}\n").into_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::Fact;
    use std::fs;

    fn host_of(vendor: &str) -> Host {
        let mut host = Host::default();
        host.processor.vendor = Fact::Known(vendor.to_owned());
        host
    }

    fn root_with(file: &str, content: &[u8]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        root
    }

    #[test]
    fn a_register_is_switched_bit_by_bit() {
        let mut msr = vec![0; 0x200];
        msr[0x1a4] = 0b0010;
        let root = root_with("dev/cpu/5/msr", &msr);
        let control = find(root.path(), &host_of("GenuineIntel"), 5).unwrap();
        let told: Vec<(String, u64)> = control
            .states
            .into_iter()
            .map(|(name, value)| (name, u64::from_le_bytes(value.try_into().unwrap())))
            .collect();
        let expected = [
            ("L2 streamer off", 0b0011),
            ("L2 adjacent line on", 0b0000),
            ("L1 next line off", 0b0110),
            ("L1 by instruction pointer off", 0b1010),
            ("all off", 0b1111),
        ];
        assert!(told.iter().map(|(n, v)| (n.as_str(), *v)).eq(expected), "{told:?}");
    }

    #[test]
    fn no_register_no_control_and_a_way_out() {
        let root = tempfile::tempdir().unwrap();
        for vendor in ["AuthenticAMD", "GenuineIntel", "Elbrus"] {
            let none = find(root.path(), &host_of(vendor), 0).unwrap_err();
            assert!(!none.why.is_empty() && !none.would_help.is_empty());
        }
    }

    #[test]
    fn every_depth_has_its_state() {
        let root = root_with(DSCR, b"0\n");
        let control = find(root.path(), &Host::default(), 0).unwrap();
        let values: Vec<String> = control
            .states
            .iter()
            .map(|s| String::from_utf8(s.1.clone()).unwrap().trim().to_owned())
            .collect();
        assert_eq!(values, ["0", "1", "2", "3", "4", "5", "6", "7", "f", "10"]);
        assert_eq!(control.states[7].0, "depth 7 (deepest)");
    }
}
