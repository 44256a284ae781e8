//! CPUID, from the instruction or from a dump of it in the format of `cpuid -r`.

use crate::source::Source;
use std::collections::BTreeMap;

/// Where a recorded tree keeps its dump.
pub const DUMP: &str = "gleaner/cpuid";

/// The four registers of one leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Leaves of the processor that was asked. Leaves beyond those it has are `None`, not the last
/// leaf's contents.
#[derive(Clone, Debug, Default)]
pub struct Cpuid {
    leaves: BTreeMap<(u32, u32), Registers>,
}

/// First leaf of each range.
const RANGES: [u32; 3] = [0, 0x4000_0000, 0x8000_0000];

/// More than any processor has; a garbled maximum must not keep us asking.
const MOST_LEAVES: u32 = 0x100;

/// Leaves with more than one page, and when to stop turning them.
const MOST_SUBLEAVES: u32 = 32;

impl Cpuid {
    /// The instruction on the live machine, a dump of a recorded one; empty on processors without.
    pub fn of(source: &Source) -> Self {
        if source.is_live() {
            return Self::live();
        }
        source.text(DUMP).get().map(|text| Self::parse(text)).unwrap_or_default()
    }

    #[cfg(target_arch = "x86_64")]
    fn live() -> Self {
        Self::ask(&|leaf, sub| {
            let r = raw_cpuid::native_cpuid::cpuid_count(leaf, sub);
            Registers { eax: r.eax, ebx: r.ebx, ecx: r.ecx, edx: r.edx }
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn live() -> Self {
        Self::default()
    }

    /// Collects all leaves that `ask` has.
    pub fn ask(ask: &dyn Fn(u32, u32) -> Registers) -> Self {
        let mut leaves = BTreeMap::new();
        let hypervisor = ask(1, 0).ecx >> 31 == 1;
        for first in RANGES {
            if first == 0x4000_0000 && !hypervisor {
                continue;
            }
            let last = last_leaf(first, ask(first, 0).eax);
            for leaf in first..=last {
                let zeroth = ask(leaf, 0);
                for sub in 0..MOST_SUBLEAVES {
                    let registers = ask(leaf, sub);
                    if sub > 0 && ended(leaf, sub, registers, zeroth) {
                        break;
                    }
                    leaves.insert((leaf, sub), registers);
                }
            }
        }
        Self { leaves }
    }

    /// Reads `cpuid -r` text: `0x80000008 0x00: eax=0x00003030 ebx=…`. Only the first CPU's block
    /// is taken; lines of another form are skipped.
    pub fn parse(text: &str) -> Self {
        let mut leaves = BTreeMap::new();
        for line in text.lines() {
            if line.starts_with("CPU") && !leaves.is_empty() {
                break;
            }
            if let Some((key, registers)) = line_of(line) {
                leaves.entry(key).or_insert(registers);
            }
        }
        let mut cpuid = Self { leaves };
        // Dumps hold what was asked, in range or not.
        let kept: BTreeMap<_, _> =
            cpuid.leaves.iter().filter(|((leaf, _), _)| cpuid.has(*leaf)).map(|(k, r)| (*k, *r)).collect();
        cpuid.leaves = kept;
        cpuid
    }

    /// The text that [`Cpuid::parse`] reads. Leaves of nothing but zeroes are left out: they say
    /// nothing.
    pub fn dump(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::from("CPU 0:\n");
        for ((leaf, sub), r) in self.leaves.iter().filter(|(_, r)| **r != Registers::default()) {
            let _ = writeln!(
                text,
                "   0x{leaf:08x} 0x{sub:02x}: eax=0x{:08x} ebx=0x{:08x} ecx=0x{:08x} edx=0x{:08x}",
                r.eax, r.ebx, r.ecx, r.edx
            );
        }
        text
    }

    fn has(&self, leaf: u32) -> bool {
        let first = RANGES.into_iter().rev().find(|f| *f <= leaf).unwrap_or(0);
        self.leaves.get(&(first, 0)).is_some_and(|r| leaf <= last_leaf(first, r.eax))
    }

    pub fn leaf(&self, leaf: u32) -> Option<Registers> {
        self.subleaf(leaf, 0)
    }

    pub fn subleaf(&self, leaf: u32, sub: u32) -> Option<Registers> {
        self.leaves.get(&(leaf, sub)).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The twelve letters of leaf 0.
    pub fn vendor(&self) -> Option<String> {
        self.leaf(0).map(|r| letters(&[r.ebx, r.edx, r.ecx]))
    }

    /// The twelve letters of the hypervisor's first leaf.
    pub fn hypervisor(&self) -> Option<String> {
        self.leaf(0x4000_0000).map(|r| letters(&[r.ebx, r.ecx, r.edx]))
    }

    pub fn brand(&self) -> Option<String> {
        let mut words = Vec::new();
        for leaf in 0x8000_0002..=0x8000_0004 {
            // Short names leave the later leaves empty, which dumps leave out.
            let r = self.leaf(leaf).unwrap_or_default();
            words.extend([r.eax, r.ebx, r.ecx, r.edx]);
        }
        Some(letters(&words)).filter(|b| !b.is_empty())
    }

    /// Family, model and stepping by the vendors' common rule.
    pub fn signature(&self) -> Option<(u32, u32, u32)> {
        let eax = self.leaf(1)?.eax;
        let (family, model) = (eax >> 8 & 0xf, eax >> 4 & 0xf);
        let (more_family, more_model) = (eax >> 20 & 0xff, eax >> 16 & 0xf);
        let full_model = if family == 6 || family == 15 { more_model << 4 | model } else { model };
        Some((if family == 15 { family + more_family } else { family }, full_model, eax & 0xf))
    }

    pub fn is_amd(&self) -> bool {
        matches!(self.vendor().as_deref(), Some("AuthenticAMD" | "HygonGenuine"))
    }

    pub fn is_intel(&self) -> bool {
        self.vendor().as_deref() == Some("GenuineIntel")
    }
}

fn last_leaf(first: u32, claimed: u32) -> u32 {
    match claimed.checked_sub(first) {
        Some(n) => first + n.min(MOST_LEAVES),
        // KVM once wrote 0 here and meant one leaf more.
        None if first == 0x4000_0000 && claimed == 0 => first + 1,
        None => first,
    }
}

/// Whether a page after the first holds nothing any more, by the leaf's own rule.
fn ended(leaf: u32, sub: u32, r: Registers, zeroth: Registers) -> bool {
    match leaf {
        4 | 0x8000_001d => field(r.eax, 0, 5) == 0,
        0xb | 0x1f | 0x8000_0026 => field(r.ecx, 8, 8) == 0,
        // Pages in between may be empty; the zeroth says which is the last.
        0x18 => sub > zeroth.eax,
        // Pages of these are sparse or endless, and nothing here reads beyond the second.
        7 | 0xd | 0xf | 0x10 | 0x14 => r == Registers::default(),
        _ => true,
    }
}

fn field(register: u32, from: u32, bits: u32) -> u32 {
    register >> from & ((1 << bits) - 1)
}

fn line_of(line: &str) -> Option<((u32, u32), Registers)> {
    let (key, values) = line.split_once(':')?;
    let mut keys = key.split_whitespace().map(hex);
    let key = (keys.next()??, keys.next()??);
    let mut registers = Registers::default();
    for value in values.split_whitespace() {
        let (name, number) = value.split_once('=')?;
        let slot = match name {
            "eax" => &mut registers.eax,
            "ebx" => &mut registers.ebx,
            "ecx" => &mut registers.ecx,
            "edx" => &mut registers.edx,
            _ => return None,
        };
        *slot = hex(number)?;
    }
    Some((key, registers))
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn letters(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let text: String = bytes.iter().filter(|b| (0x20..0x7f).contains(*b)).map(|b| char::from(*b)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZEN4: &str = "CPU 0:
   0x00000000 0x00: eax=0x00000010 ebx=0x68747541 ecx=0x444d4163 edx=0x69746e65
   0x00000001 0x00: eax=0x00a10f11 ebx=0x00020800 ecx=0xfeda3203 edx=0x178bfbff
   0x00000020 0x00: eax=0x00000001 ebx=0x00000000 ecx=0x00000000 edx=0x00000000
CPU 1:
   0x00000001 0x00: eax=0x00000000 ebx=0x01020800 ecx=0xfeda3203 edx=0x178bfbff
";

    #[test]
    fn reads_a_dump() {
        let cpuid = Cpuid::parse(ZEN4);
        assert_eq!(cpuid.vendor().as_deref(), Some("AuthenticAMD"));
        assert_eq!(cpuid.signature(), Some((25, 17, 1)));
        assert_eq!(cpuid.leaf(0x20), None, "beyond the last leaf");
        let again = Cpuid::parse(&cpuid.dump());
        assert_eq!(again.leaves, cpuid.leaves);
    }

    #[test]
    fn asks_within_range_only() {
        let cpuid = Cpuid::ask(&|leaf, sub| {
            assert!(leaf <= 2 || leaf == 0x8000_0000, "asked for {leaf:#x}");
            let eax = match leaf {
                0 => 2,
                0x8000_0000 => 0, // a processor without the extended range
                _ => sub,
            };
            Registers { eax, ..Registers::default() }
        });
        assert!(cpuid.leaf(2).is_some() && cpuid.subleaf(2, 1).is_none() && cpuid.leaf(3).is_none());
    }

    proptest! {
        #[test]
        fn never_panics(text in "(( 0x[0-9a-f]{1,8}){1,2}:( e[a-d]x=0x[0-9a-f]{1,9})*\n|\\PC|\n)*") {
            let cpuid = Cpuid::parse(&text);
            let _ = (cpuid.vendor(), cpuid.brand(), cpuid.signature(), cpuid.hypervisor());
        }

        #[test]
        fn never_asks_forever(eax in any::<u32>(), ecx in any::<u32>()) {
            let _ = Cpuid::ask(&|_, _| Registers { eax, ebx: eax, ecx, edx: ecx });
        }
    }
}
