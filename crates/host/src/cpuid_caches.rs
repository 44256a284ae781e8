//! Caches and translation buffers as CPUID claims them, leaf by leaf, whether or not the leaves
//! agree.

use crate::cpuid::{Cpuid, Registers};
use records::host::{CacheClaim, CacheKind, TlbClaim};
use units::Bytes;

pub(crate) fn cache_claims(cpuid: &Cpuid) -> Vec<CacheClaim> {
    let mut claims = Vec::new();
    if cpuid.is_amd() {
        // Leaf 0x8000001D exists only with the topology extensions; the same numbers mean something
        // else elsewhere.
        let extended = cpuid.leaf(0x8000_0001).is_some_and(|r| r.ecx >> 22 & 1 == 1);
        if extended {
            claims.extend(deterministic(cpuid, 0x8000_001d));
        }
        claims.extend(amd_legacy(cpuid));
    } else {
        claims.extend(deterministic(cpuid, 4));
        claims.extend(intel_l2(cpuid));
    }
    claims
}

/// Intel's leaf 4 and AMD's 0x8000001D share a layout: one page per cache.
fn deterministic(cpuid: &Cpuid, leaf: u32) -> Vec<CacheClaim> {
    let pages = (0..).map_while(|sub| cpuid.subleaf(leaf, sub).filter(|r| r.eax & 0x1f != 0));
    pages
        .filter_map(|r| {
            let kind = match r.eax & 0x1f {
                1 => CacheKind::Data,
                2 => CacheKind::Instruction,
                3 => CacheKind::Unified,
                _ => return None,
            };
            let line = u64::from(r.ebx & 0xfff) + 1;
            let partitions = u64::from(r.ebx >> 12 & 0x3ff) + 1;
            let ways = u64::from(r.ebx >> 22) + 1;
            let sets = u64::from(r.ecx) + 1;
            Some(CacheClaim {
                leaf: name(leaf),
                level: r.eax >> 5 & 7,
                kind,
                size: Bytes(line * partitions * ways * sets),
                line: Some(Bytes(line)),
                sharers: Some((r.eax >> 14 & 0xfff) + 1),
            })
        })
        .collect()
}

/// AMD's older leaves: sizes in kilobytes, the last cache in units of 512.
fn amd_legacy(cpuid: &Cpuid) -> Vec<CacheClaim> {
    let claim = |leaf, level, kind, size: Bytes, register: u32| CacheClaim {
        leaf: name(leaf),
        level,
        kind,
        size,
        line: Some(Bytes(u64::from(register & 0xff))),
        sharers: None,
    };
    let mut claims = Vec::new();
    if let Some(r) = cpuid.leaf(0x8000_0005) {
        claims.push(claim(0x8000_0005, 1, CacheKind::Data, Bytes::kib(u64::from(r.ecx >> 24)), r.ecx));
        claims.push(claim(0x8000_0005, 1, CacheKind::Instruction, Bytes::kib(u64::from(r.edx >> 24)), r.edx));
    }
    if let Some(r) = cpuid.leaf(0x8000_0006) {
        claims.push(claim(0x8000_0006, 2, CacheKind::Unified, Bytes::kib(u64::from(r.ecx >> 16)), r.ecx));
        claims.push(claim(
            0x8000_0006,
            3,
            CacheKind::Unified,
            Bytes::kib(512 * u64::from(r.edx >> 18)),
            r.edx,
        ));
    }
    claims.retain(|c| c.size.0 > 0);
    claims
}

/// Intel's copy of the same leaf has only the second level.
fn intel_l2(cpuid: &Cpuid) -> Option<CacheClaim> {
    let r = cpuid.leaf(0x8000_0006)?;
    let size = Bytes::kib(u64::from(r.ecx >> 16));
    (size.0 > 0).then(|| CacheClaim {
        leaf: name(0x8000_0006),
        level: 2,
        kind: CacheKind::Unified,
        size,
        line: Some(Bytes(u64::from(r.ecx & 0xff))),
        sharers: None,
    })
}

pub(crate) fn tlb_claims(cpuid: &Cpuid) -> Vec<TlbClaim> {
    if cpuid.is_amd() { amd_tlbs(cpuid) } else { intel_tlbs(cpuid) }
}

fn amd_tlbs(cpuid: &Cpuid) -> Vec<TlbClaim> {
    let mut claims = Vec::new();
    let mut push = |leaf, level, kind, page: &str, entries: u32| {
        if entries > 0 {
            claims.push(TlbClaim { leaf: name(leaf), level, kind, pages: vec![page.into()], entries });
        }
    };
    if let Some(r) = cpuid.leaf(0x8000_0005) {
        push(0x8000_0005, 1, CacheKind::Data, "4K", r.ebx >> 16 & 0xff);
        push(0x8000_0005, 1, CacheKind::Instruction, "4K", r.ebx & 0xff);
        push(0x8000_0005, 1, CacheKind::Data, "2M", r.eax >> 16 & 0xff);
        push(0x8000_0005, 1, CacheKind::Instruction, "2M", r.eax & 0xff);
    }
    let unit = amd_l2_tlb_unit(cpuid);
    for (leaf, register, page) in [(0x8000_0006, 1, "4K"), (0x8000_0006, 0, "2M")] {
        if let Some(r) = cpuid.leaf(leaf) {
            let value = if register == 1 { r.ebx } else { r.eax };
            push(leaf, 2, CacheKind::Data, page, unit * (value >> 16 & 0xfff));
            push(leaf, 2, CacheKind::Instruction, page, unit * (value & 0xfff));
        }
    }
    if let Some(r) = cpuid.leaf(0x8000_0019) {
        push(0x8000_0019, 1, CacheKind::Data, "1G", r.eax >> 16 & 0xfff);
        push(0x8000_0019, 2, CacheKind::Data, "1G", unit * (r.ebx >> 16 & 0xfff));
    }
    claims
}

/// What one stands for in the second level's counts of entries. Since Zen 5, whose 4096 would not
/// fit its twelve bits, it is 32, and a bit says so; hypervisors of that time do not pass the bit
/// on, so the family says it, too.
fn amd_l2_tlb_unit(cpuid: &Cpuid) -> u32 {
    let told = cpuid.leaf(0x8000_0021).is_some_and(|r| r.eax >> 14 & 1 == 1);
    let zen5_or_later = cpuid.signature().is_some_and(|(family, ..)| family >= 0x1a);
    if told || zen5_or_later { 32 } else { 1 }
}

/// Leaf 0x18 where there is one, the descriptor bytes of leaf 2 otherwise.
fn intel_tlbs(cpuid: &Cpuid) -> Vec<TlbClaim> {
    // Empty pages lie between the full ones; the zeroth says which is the last.
    let last = cpuid.leaf(0x18).map_or(0, |r| r.eax.min(64));
    let pages = (0..=last).filter_map(|sub| cpuid.subleaf(0x18, sub));
    let claims: Vec<TlbClaim> = pages.filter_map(intel_tlb).collect();
    if claims.is_empty() { intel_descriptors(cpuid) } else { claims }
}

fn intel_tlb(r: Registers) -> Option<TlbClaim> {
    let kind = match r.edx & 0x1f {
        1 | 4 => CacheKind::Data, // 4: loads only; stores have their own
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let sizes = [(0, "4K"), (1, "2M"), (2, "4M"), (3, "1G")];
    let ways = r.ebx >> 16;
    let entries = if r.edx >> 8 & 1 == 1 { ways } else { ways.saturating_mul(r.ecx) };
    Some(TlbClaim {
        leaf: name(0x18),
        level: r.edx >> 5 & 7,
        kind,
        pages: sizes.iter().filter(|(bit, _)| r.ebx >> bit & 1 == 1).map(|(_, s)| (*s).to_owned()).collect(),
        entries,
    })
    .filter(|t| t.entries > 0 && !t.pages.is_empty())
}

/// Descriptor bytes of the server and client cores since Nehalem. To add one: a line, by the table
/// in the manual's entry for CPUID leaf 2.
const DESCRIPTORS: [(u8, u32, CacheKind, &[&str], u32); 17] = [
    (0x03, 1, CacheKind::Data, &["4K"], 64),
    (0x5a, 1, CacheKind::Data, &["2M", "4M"], 32),
    (0x63, 1, CacheKind::Data, &["1G"], 4),
    (0x64, 1, CacheKind::Data, &["4K"], 512),
    (0x6b, 1, CacheKind::Data, &["4K"], 256),
    (0x76, 1, CacheKind::Instruction, &["2M", "4M"], 8),
    (0xa0, 1, CacheKind::Data, &["4K"], 32),
    (0xb2, 1, CacheKind::Instruction, &["4K"], 64),
    (0xb3, 1, CacheKind::Data, &["4K"], 128),
    (0xb4, 1, CacheKind::Data, &["4K"], 256),
    (0xb5, 1, CacheKind::Instruction, &["4K"], 64),
    (0xb6, 1, CacheKind::Instruction, &["4K"], 128),
    (0xba, 1, CacheKind::Data, &["4K"], 64),
    (0xc1, 2, CacheKind::Unified, &["4K", "2M"], 1024),
    (0xc3, 2, CacheKind::Unified, &["4K", "2M"], 1536),
    (0xc4, 1, CacheKind::Data, &["2M", "4M"], 32),
    (0xca, 2, CacheKind::Unified, &["4K"], 512),
];

fn intel_descriptors(cpuid: &Cpuid) -> Vec<TlbClaim> {
    let Some(r) = cpuid.leaf(2) else { return Vec::new() };
    // The lowest byte of EAX counts calls; a register with its top bit set holds no descriptors.
    let registers = [r.eax & !0xff, r.ebx, r.ecx, r.edx];
    let bytes = registers.iter().filter(|r| **r >> 31 == 0).flat_map(|r| r.to_le_bytes());
    bytes
        .filter_map(|byte| DESCRIPTORS.iter().find(|d| d.0 == byte))
        .map(|(_, level, kind, pages, entries)| TlbClaim {
            leaf: name(2),
            level: *level,
            kind: *kind,
            pages: pages.iter().map(|p| (*p).to_owned()).collect(),
            entries: *entries,
        })
        .collect()
}

fn name(leaf: u32) -> String {
    if leaf < 0x100 { format!("{leaf:#x}") } else { format!("0x{leaf:08X}") }
}
