//! Any specification either makes a kernel or says which parameter is out of range; nothing panics.

use gleaner_kernels::{Access, Fence, Filler, KernelError, Role, Spec, StreamOp, Width, assemble};
use proptest::prelude::*;

/// Mostly near the ranges, sometimes anywhere.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..80u32, 2 => 0..5000u32, 1 => (0..1100u32).prop_map(|n| 64 * n), 1 => any::<u32>()]
}

fn filler() -> impl Strategy<Value = Filler> {
    prop_oneof![
        (0..12u32).prop_map(|bytes| Filler::Nop { bytes }),
        prop::sample::select(vec![
            Filler::IntAdd,
            Filler::VectorAdd,
            Filler::Alternating,
            Filler::Mixed,
            Filler::Load,
            Filler::Store,
            Filler::Branch,
            Filler::TakenBranch,
            Filler::Cmp,
        ]),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    use prop::sample::select;
    let fence = || select(vec![Fence::Lfence, Fence::Cpuid]);
    let op = select(vec![
        StreamOp::Read,
        StreamOp::Write,
        StreamOp::Copy,
        StreamOp::Triad,
        StreamOp::NtWrite,
        StreamOp::NtCopy,
        StreamOp::Update,
    ]);
    let width = select(vec![Width::Bytes16, Width::Bytes32, Width::Bytes64]);
    prop_oneof![
        Just(Spec::Nothing),
        number().prop_map(|unroll| Spec::Spin { unroll }),
        number().prop_map(|unroll| Spec::Adds { unroll }),
        number().prop_map(|unroll| Spec::Muls { unroll }),
        (number(), select(vec![Access::Read, Access::ReadModifyWrite]))
            .prop_map(|(unroll, access)| Spec::Chase { unroll, access }),
        number().prop_map(|chains| Spec::ParallelChains { chains }),
        (number(), number(), filler(), fence()).prop_map(|(accesses, gap, filler, fence)| Spec::Burst {
            accesses,
            gap,
            filler,
            fence
        }),
        (number(), fence()).prop_map(|(accesses, fence)| Spec::Sequence { accesses, fence }),
        (filler(), number()).prop_map(|(filler, gap)| Spec::Rob { filler, gap }),
        (op, width, number()).prop_map(|(op, width, delay)| Spec::Stream { op, width, delay }),
        (number(), any::<bool>()).prop_map(|(bytes, vectorised)| Spec::Windows { bytes, vectorised }),
        select(vec![Role::Even, Role::Odd]).prop_map(|role| Spec::PingPong { role }),
        any::<bool>().prop_map(|locked| Spec::Bump { locked }),
        (number(), any::<bool>(), number(), 0..6u32).prop_map(|(live, flags, vectors, sites)| Spec::Switch {
            live,
            flags,
            vectors,
            sites
        }),
    ]
}

/// The ranges as the contracts state them.
fn is_in_range(spec: &Spec) -> bool {
    let filler_ok = |filler: Filler| !matches!(filler, Filler::Nop { bytes } if !(1..=9).contains(&bytes));
    match *spec {
        Spec::Nothing | Spec::PingPong { .. } | Spec::Bump { .. } => true,
        Spec::Adds { unroll } | Spec::Muls { unroll } | Spec::Chase { unroll, .. } => {
            (1..=4096).contains(&unroll)
        }
        Spec::Spin { unroll } => (1..=1024).contains(&unroll),
        Spec::ParallelChains { chains } => (1..=64).contains(&chains),
        Spec::Burst { accesses, gap, filler, .. } => {
            (1..=64).contains(&accesses) && gap <= 4096 && filler_ok(filler)
        }
        Spec::Sequence { accesses, .. } => accesses <= 64,
        Spec::Rob { filler, gap } => gap <= 4096 && filler_ok(filler),
        Spec::Stream { delay, .. } => delay <= 4096,
        Spec::Windows { bytes, .. } => (64..=65536).contains(&bytes) && bytes % 64 == 0,
        Spec::Switch { live, vectors, sites, .. } => live <= 14 && vectors <= 16 && (1..=4).contains(&sites),
    }
}

proptest! {
    #[test]
    fn a_kernel_or_a_clear_no(spec in spec()) {
        match assemble(&spec) {
            Ok(kernel) => {
                prop_assert!(is_in_range(&spec));
                prop_assert_eq!(kernel.code.last(), Some(&0xc3));
                prop_assert!(kernel.ops_per_loop >= 1);
            }
            Err(error @ (KernelError::OutOfRange { .. } | KernelError::NotAMultiple { .. })) => {
                prop_assert!(!is_in_range(&spec), "{} for {:?}", error, spec);
            }
            Err(KernelError::Encoding(error)) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn the_same_specification_makes_the_same_code(spec in spec()) {
        if let (Ok(one), Ok(other)) = (assemble(&spec), assemble(&spec)) {
            prop_assert_eq!(one, other);
        }
    }
}

#[test]
fn a_refusal_names_the_parameter_and_its_range() {
    let refusal = |spec| assemble(&spec).expect_err("out of range").to_string();
    assert_eq!(refusal(Spec::Adds { unroll: 0 }), "unroll is 0, but must be from 1 to 4096");
    assert_eq!(refusal(Spec::ParallelChains { chains: 65 }), "chains is 65, but must be from 1 to 64");
    assert_eq!(
        refusal(Spec::Rob { filler: Filler::Nop { bytes: 10 }, gap: 0 }),
        "bytes of a nop is 10, but must be from 1 to 9"
    );
    assert_eq!(
        refusal(Spec::Windows { bytes: 100, vectorised: false }),
        "bytes of a window is 100, but must be a multiple of 64"
    );
}
