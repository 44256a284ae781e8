//! Damaged files: whatever is in them, the answer is yes or no, never a panic.

use gleaner_proof::check;
use proptest::prelude::*;
use std::process::Command;
use std::sync::LazyLock;

static PAIR: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/rewriter/exception_kinds.cpp");
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("program");
    let done = Command::new("g++").args([source, "-O1", "-pthread", "-o"]).arg(&to).status();
    assert!(done.is_ok_and(|status| status.success()), "a compiler");
    let original = std::fs::read(to).expect("what was compiled");
    let rewritten =
        twin::rewrite(&original, None, twin::Mode::Identity).expect("a program that can be rewritten");
    (original, rewritten.bytes)
});

/// Numbers that tend to overflow.
fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        Just(0xffff_ffff),
        Just(u64::MAX - 7),
        0..300u64
    ]
}

fn damage(bytes: &mut [u8], hits: &[(usize, u64, usize)]) {
    for &(at, value, size) in hits {
        let at = at % (bytes.len() - 8);
        bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

/// A few, so that `cargo test -p gleaner-proof` sees the worst at once; the fuzzer of the command
/// line's tests (`proof`, `proof_new`) has thousands.
const CASES: u32 = 50;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Anywhere in the new part of the rewritten file: headers, unwind tables, code, mapping.
    #[test]
    fn damaged_where_it_is_new(hits in prop::collection::vec((any::<usize>(), extreme(), 1..9usize), 1..6)) {
        let (original, rewritten) = &*PAIR;
        let mut damaged = rewritten.clone();
        damage(&mut damaged[original.len()..], &hits);
        let _ = check(original, &damaged);
    }

    /// Anywhere in both: what the original says is not to be trusted either.
    #[test]
    fn damaged_alike(hits in prop::collection::vec((any::<usize>(), extreme(), 1..9usize), 1..6)) {
        let (mut original, mut rewritten) = PAIR.clone();
        let size = original.len();
        damage(&mut original, &hits);
        damage(&mut rewritten[..size], &hits);
        let _ = check(&original, &rewritten);
    }

    /// The tables that say how much of everything there is.
    #[test]
    fn damaged_where_it_counts(hits in prop::collection::vec((0..2400usize, extreme(), 1..9usize), 1..4), note in any::<bool>()) {
        let (original, rewritten) = &*PAIR;
        let mut damaged = rewritten.clone();
        let sign: &[u8] = if note { b"Gleaner\0" } else { b"GLNRTWIN" };
        let at = damaged.windows(8).rposition(|window| window == sign).unwrap_or(0);
        let end = (at + 2500).min(damaged.len());
        damage(&mut damaged[at..end], &hits);
        let _ = check(original, &damaged);
    }

    #[test]
    fn cut_short(size in any::<prop::sample::Index>()) {
        let (original, rewritten) = &*PAIR;
        prop_assert!(check(original, &rewritten[..size.index(rewritten.len())]).is_err());
        prop_assert!(check(&original[..size.index(original.len())], rewritten).is_err());
    }
}

/// A changed byte of code, header or table is always noticed; symbols, strings and padding have
/// tests of their own.
#[test]
fn every_byte_of_a_twin_counts() {
    let (original, rewritten) = &*PAIR;
    let image = image::Image::parse(rewritten).expect("a sound file");
    let text = image.section(".text.twin").expect("twins");
    let (start, size) = (text.offset as usize, text.size as usize);
    for at in (start..start + size).step_by(7) {
        for bit in [0x01, 0x20, 0x80] {
            let mut damaged = rewritten.clone();
            damaged[at] ^= bit;
            assert!(check(original, &damaged).is_err(), "byte {at:#x}, bit {bit:#x}");
        }
    }
}

/// A section of tables that is larger than there are addresses.
#[test]
fn a_section_without_end() {
    let (original, rewritten) = &*PAIR;
    let number = |at: usize, size: usize| {
        (0..size).fold(0, |sum, byte| sum | usize::from(rewritten[at + byte]) << (8 * byte))
    };
    let (headers, count) = (number(40, 8), number(60, 2));
    for header in (0..count).map(|index| headers + 64 * index) {
        let mut damaged = rewritten.clone();
        damaged[header + 32..header + 40].fill(0xff);
        assert!(check(original, &damaged).is_err());
    }
}
