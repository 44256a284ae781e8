//! Specifications over the range of their parameters, ends included.

use gleaner_kernels::{Access, Fence, Filler, Role, Spec, StreamOp, Width};

pub(crate) const WIDTHS: [Width; 3] = [Width::Bytes16, Width::Bytes32, Width::Bytes64];
pub(crate) const STREAM_OPS: [StreamOp; 7] = [
    StreamOp::Read,
    StreamOp::Write,
    StreamOp::Copy,
    StreamOp::Triad,
    StreamOp::NtWrite,
    StreamOp::NtCopy,
    StreamOp::Update,
];
pub(crate) const UNROLLS: [u32; 6] = [1, 2, 3, 64, 256, 4096];
pub(crate) const GAPS: [u32; 8] = [0, 1, 2, 7, 100, 320, 2000, 4096];
pub(crate) const WINDOWS: [u32; 9] = [64, 128, 192, 512, 576, 1024, 2048, 4096, 65536];

pub(crate) fn fillers() -> Vec<Filler> {
    use Filler::{Alternating, Branch, Cmp, IntAdd, Load, Mixed, Nop, Store, TakenBranch, VectorAdd};
    let others = [IntAdd, VectorAdd, Alternating, Mixed, Load, Store, Branch, TakenBranch, Cmp];
    (1..=9).map(|bytes| Nop { bytes }).chain(others).collect()
}

pub(crate) fn everything() -> Vec<Spec> {
    let mut specs = vec![Spec::Nothing];
    specs.extend([1, 2, 256, 1024].map(|unroll| Spec::Spin { unroll }));
    for unroll in UNROLLS {
        specs.extend([Spec::Adds { unroll }, Spec::Muls { unroll }]);
        specs.extend([Access::Read, Access::ReadModifyWrite].map(|access| Spec::Chase { unroll, access }));
    }
    specs.extend((1..=64).map(|chains| Spec::ParallelChains { chains }));
    for fence in [Fence::Lfence, Fence::Cpuid] {
        specs.extend((0..=64).map(|accesses| Spec::Sequence { accesses, fence }));
        for accesses in [1, 2, 8, 24, 64] {
            for filler in fillers() {
                specs.extend(GAPS.map(|gap| Spec::Burst { accesses, gap, filler, fence }));
            }
        }
    }
    for filler in fillers() {
        specs.extend(GAPS.map(|gap| Spec::Rob { filler, gap }));
    }
    for op in STREAM_OPS {
        for width in WIDTHS {
            specs.extend([0, 1, 100, 4096].map(|delay| Spec::Stream { op, width, delay }));
        }
    }
    for bytes in WINDOWS {
        specs.extend([false, true].map(|vectorised| Spec::Windows { bytes, vectorised }));
    }
    specs.extend([Role::Even, Role::Odd].map(|role| Spec::PingPong { role }));
    specs.extend([false, true].map(|locked| Spec::Bump { locked }));
    for live in 0..=14 {
        for vectors in 0..=16 {
            for flags in [false, true] {
                specs.extend((1..=4).map(|sites| Spec::Switch { live, flags, vectors, sites }));
            }
        }
    }
    specs
}
