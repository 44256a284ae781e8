//! Loads that wait for lines which other cores' caches hold, though there are too many such lines
//! for any of them to show in samples.
//!
//! What such a load reads would fit into a cache of its core's own, and yet its lines come from
//! farther. If another thread writes to lines among these at the same time, that is where they are.

use super::access::{Access, Memory};
use super::gathered::Gathered;
use super::together::together;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A load's samples in lines that were seen to be written elsewhere. Both are sampled, so that many
/// are not seen.
const LEAST_MET: usize = 8;
const LEAST_PART: f64 = 0.05;

/// The numbers of such loads among those that are listed.
pub(super) fn taken(gathered: &Gathered) -> Vec<usize> {
    let asked: HashMap<u32, usize> = (0..)
        .zip(&gathered.by)
        .filter(|(_, by)| by.is_farther)
        .filter_map(|(number, by)| Some((number, by.listed?)))
        .collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let mut reads: BTreeMap<u32, Vec<&Access>> = BTreeMap::new();
    let mut writers: HashMap<(Memory, u64), HashSet<(u32, u32)>> = HashMap::new();
    let mut written: HashMap<(u32, u32), Vec<u64>> = HashMap::new();
    for access in &gathered.accesses {
        if asked.contains_key(&access.by) {
            reads.entry(access.by).or_default().push(access);
        }
        if access.writes {
            writers.entry(access.line()).or_default().insert((access.process, access.thread));
            written.entry((access.process, access.thread)).or_default().push(access.time_ns);
        }
    }
    for times in written.values_mut() {
        times.sort_unstable();
    }
    let is_taken = |reads: &[&Access]| {
        let mut met: HashMap<(u32, u32), usize> = HashMap::new();
        let mut times: Vec<u64> = reads.iter().map(|read| read.time_ns).collect();
        times.sort_unstable();
        for read in reads {
            let threads = writers.get(&read.line()).into_iter().flatten();
            for &writer in threads.filter(|&&writer| writer != (read.process, read.thread)) {
                *met.entry(writer).or_default() += 1;
            }
        }
        met.iter().any(|(writer, &count)| {
            count >= LEAST_MET.max((LEAST_PART * reads.len() as f64) as usize)
                && together(&times, &written[writer])
        })
    };
    reads.into_iter().filter(|(_, reads)| is_taken(reads)).map(|(by, _)| asked[&by]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::gathered::By;
    use super::*;
    use crate::data::footprint::LINE_BYTES;

    /// A thread reads 256 lines in no order; another one writes to as many from `first` on,
    /// `later_ns` later.
    fn gathered(first: u64, later_ns: u64, is_farther: bool) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.by.push(By { listed: Some(3), is_farther, ..By::default() });
        gathered.by.push(By::default());
        for at in 0..1000_u64 {
            for by in 0..2_u32 {
                let line = (at * (7 + 4 * u64::from(by))) % 256 + if by == 1 { first } else { 0 };
                gathered.accesses.push(Access {
                    process: 1,
                    thread: 10 + by,
                    time_ns: at * 300_000 + u64::from(by) * later_ns,
                    address: line * LINE_BYTES + u64::from(by) * 8,
                    shared: None,
                    bytes: 8,
                    writes: by == 1,
                    weight: 1.0,
                    by,
                    object: None,
                });
            }
        }
        gathered
    }

    #[test]
    fn lines_that_another_thread_writes_are_where_it_runs() {
        assert_eq!(taken(&gathered(0, 100_000, true)), [3]);
        assert!(taken(&gathered(0, 100_000, false)).is_empty(), "near enough");
        assert!(taken(&gathered(256, 100_000, true)).is_empty(), "other lines");
        assert!(taken(&gathered(0, 1_000_000_000, true)).is_empty(), "handed over");
    }
}
