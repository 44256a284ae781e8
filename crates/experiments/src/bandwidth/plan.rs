//! Which streams are measured: operations, sizes, numbers of threads. Pure.

use crate::crews;
use kernels::StreamOp;
use records::host::Host;
use records::machine::{Counting, StreamKind};
use units::Bytes;

pub(super) const KINDS: [StreamKind; 6] = [
    StreamKind::Read,
    StreamKind::Write,
    StreamKind::Copy,
    StreamKind::Triad,
    StreamKind::NtWrite,
    StreamKind::NtCopy,
];

pub(super) fn operation(kind: StreamKind) -> StreamOp {
    match kind {
        StreamKind::Read => StreamOp::Read,
        StreamKind::Write => StreamOp::Write,
        StreamKind::Copy => StreamOp::Copy,
        StreamKind::Triad => StreamOp::Triad,
        StreamKind::NtWrite => StreamOp::NtWrite,
        StreamKind::NtCopy => StreamOp::NtCopy,
    }
}

pub(super) fn counting(kind: StreamKind) -> Counting {
    let (moved, write_allocate) = match kind {
        StreamKind::Read | StreamKind::NtWrite => (64, 0),
        StreamKind::Write => (64, 64),
        StreamKind::Copy => (128, 64),
        StreamKind::NtCopy => (128, 0),
        StreamKind::Triad => (192, 64),
    };
    Counting { operation: kind, moved, write_allocate }
}

fn past_caches(kind: StreamKind) -> bool {
    matches!(kind, StreamKind::NtWrite | StreamKind::NtCopy)
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedStream {
    pub kind: StreamKind,
    pub within: String,
    /// All arrays of one thread together; memory is shared out among the threads instead.
    pub size: Option<Bytes>,
    pub threads: usize,
}

pub(super) const MEMORY: &str = "DRAM";

/// Every operation in every cache, on one CPU and on all; every operation in memory, on 1, 2, 4 …
/// CPUs.
pub(super) fn streams(host: &Host, order: &[u32]) -> Vec<PlannedStream> {
    let all = order.len();
    let mut ends = vec![1, all];
    ends.dedup();
    let mut plan = Vec::new();
    for kind in KINDS {
        for threads in crews::crowd_sizes(all) {
            plan.push(PlannedStream { kind, within: MEMORY.to_owned(), size: None, threads });
        }
        if past_caches(kind) {
            continue;
        }
        for &threads in &ends {
            for (within, size) in cached(host, &order[..threads]) {
                plan.push(PlannedStream { kind, within, size: Some(size), threads });
            }
        }
    }
    plan
}

/// For each cache a size that lies in it when each of these CPUs uses as much: three quarters of a
/// first-level cache (where each pass's own cost weighs most), half of the others, shared with
/// all that take part; unless it would fit into the cache before.
fn cached(host: &Host, cpus: &[u32]) -> Vec<(String, Bytes)> {
    let caches = crews::caches(host, cpus[0]);
    let mut sizes = Vec::new();
    for (i, cache) in caches.iter().enumerate() {
        let theirs = |cpu| cache.shared_by.as_ref().is_none_or(|cpus| cpus.contains(cpu));
        let sharers = cpus.iter().filter(|&&c| theirs(c)).count().max(1) as u64;
        let part = if i == 0 { cache.size.0 / 4 * 3 } else { cache.size.0 / 2 };
        // Neighbours that cannot be seen here use the last cache too.
        let part = if i > 0 && i + 1 == caches.len() { part / 4 } else { part };
        let size = part / sharers;
        if i == 0 || size * 2 > caches[i - 1].size.0 * 3 {
            sizes.push((cache.name.clone(), Bytes(size)));
        }
    }
    sizes
}

/// Bytes of memory on one node: several times all of its last caches, within what may be used.
pub(super) fn memory_on_node(host: &Host, cpus: &[u32], times: u64, most: Bytes) -> Bytes {
    let caches = crews::last_caches(host, cpus, Bytes::mib(32));
    let wanted = (caches.0 * times).clamp(64 << 20, 4 << 30);
    Bytes(wanted.min(most.0).max(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;

    #[test]
    fn sizes_lie_where_they_say() {
        let host = big_host();
        let one = cached(&host, &[0]);
        assert_eq!(
            one,
            [
                ("L1".to_owned(), Bytes::kib(24)),
                ("L2".to_owned(), Bytes::kib(512)),
                ("L3".to_owned(), Bytes::mib(4))
            ]
        );
        let four = cached(&host, &[0, 1, 8, 9]);
        assert_eq!(four[0].1, Bytes::kib(12));
        assert!(four.iter().all(|c| c.0 != "L3"), "a quarter of it would fit into L2: {four:?}");
    }

    #[test]
    fn memory_is_asked_on_doubling_crowds_and_stores_past_caches_only_there() {
        let host = big_host();
        let order = crews::joining_order(&host, 0);
        let plan = streams(&host, &order);
        let threads: Vec<usize> = plan
            .iter()
            .filter(|p| p.kind == StreamKind::NtCopy)
            .map(|p| {
                assert_eq!(p.within, MEMORY);
                p.threads
            })
            .collect();
        assert_eq!(threads, [1, 2, 4, 8, 16]);
        assert_eq!(streams(&host, &[0]).iter().filter(|p| p.kind == StreamKind::Read).count(), 4);
    }

    #[test]
    fn memory_exceeds_all_caches_of_the_node() {
        let host = big_host();
        assert_eq!(memory_on_node(&host, &[0, 1, 2], 4, Bytes::gib(8)), Bytes::mib(256));
        assert_eq!(memory_on_node(&host, &[0], 4, Bytes::mib(100)), Bytes::mib(100));
    }

    #[test]
    fn what_is_counted_is_what_the_program_moves() {
        for kind in KINDS {
            let c = counting(kind);
            assert!(
                c.moved % 64 == 0
                    && (c.write_allocate == 64)
                        == matches!(kind, StreamKind::Write | StreamKind::Copy | StreamKind::Triad)
            );
        }
    }
}
