//! Where runtimes keep the objects that they allocate themselves: memory that they ask the kernel
//! for, so that no call of `malloc` tells of these.
//!
//! Each runtime has a description of its heap in its own memory, which is read while it runs.
//!
//! ```text
//! java  the heap of `HotSpot`: one range, from soon after its start to its end
//! v8    the heap of V8, as in Node.js: pages that come and go
//! ```
//!
//! To add a runtime: a file here, and what its file is called in `mapped`.

mod java;
mod v8;

use self::java::Java;
use insight::samples::{Mapped, RuntimeHeap, Tally};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Instant;
use units::FileOffset;

const JAVA_HEAP: &str = "Java heap";
const V8_HEAP: &str = "V8 heap";

/// How long a heap that comes and goes is looked at no more.
const AGAIN_NS: u64 = 250_000_000;
/// Looking takes no more than this part of the time.
const COSTS: u64 = 256;

/// Runtimes whose heap is not known yet, or may grow.
#[derive(Debug, Default)]
pub(crate) struct RuntimeHeaps {
    java: BTreeMap<u32, Java>,
    /// Where in a machine's file the address of its table is.
    tables: HashMap<Vec<u8>, Option<FileOffset>>,
    /// When to look at each for the next time.
    v8: BTreeMap<u32, u64>,
}

impl RuntimeHeaps {
    /// A process has mapped a file: this range of it, from this address on.
    pub(crate) fn mapped(&mut self, process: u32, mapped: &Mapped, part: Range<u64>, start: u64) {
        let name = mapped.name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        match name {
            b"libjvm.so" => {
                let table = self.tables.entry(mapped.name.clone()).or_insert_with(|| java::table_of(mapped));
                if let Some(at) = table.filter(|at| part.contains(&at.0)) {
                    self.java.insert(process, Java::new(start + (at.0 - part.start)));
                }
            }
            b"node" | b"nodejs" => {
                self.v8.entry(process).or_default();
            }
            _ if name.starts_with(b"libnode.so") => {
                self.v8.entry(process).or_default();
            }
            _ => {}
        }
    }

    /// The process has executed another program, or ended.
    pub(crate) fn forget(&mut self, process: u32) {
        self.java.remove(&process);
        self.v8.remove(&process);
    }

    /// Looks at heaps that are not known yet, and from time to time at those that grow.
    pub(crate) fn look(&mut self, now_ns: u64, tally: &mut Tally) {
        self.java.retain(|&process, java| {
            let Some(memory) = memory(process) else { return false };
            let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
            let heap = java.heap(&mut read);
            if let Some(heap) = &heap {
                of(tally, process, JAVA_HEAP).add(heap.clone());
            }
            heap.is_none() && java.is_worth_asking()
        });
        for (&process, next_ns) in self.v8.iter_mut().filter(|(_, next_ns)| **next_ns <= now_ns) {
            let began = Instant::now();
            if let Some(memory) = memory(process) {
                let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
                v8::look(process, of(tally, process, V8_HEAP), &mut read);
            }
            let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            *next_ns = now_ns.saturating_add(AGAIN_NS.max(took_ns.saturating_mul(COSTS)));
        }
    }
}

fn memory(process: u32) -> Option<File> {
    File::open(format!("/proc/{process}/mem")).ok()
}

fn of<'t>(tally: &'t mut Tally, process: u32, name: &'static str) -> &'t mut RuntimeHeap {
    let heap = &mut tally.processes.entry(process).or_default().runtime_heap;
    heap.get_or_insert_with(|| RuntimeHeap::new(name))
}
