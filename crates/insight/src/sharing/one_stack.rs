//! Threads that run on one stack, one after the other.
//!
//! Go's runtime lets a goroutine go on in another thread, with its stack, and so do other runtimes
//! with coroutines. What such threads read and write on their way is one course of events: they
//! take no line from one another.

use super::access::Moment;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Stacks are no smaller, and begin at multiples of it: a goroutine's first one is as large.
const SMALLEST: u64 = 2048;

/// Pairs of threads of which both were seen on one stack, in either order.
pub(crate) fn on_one_stack<'m>(moments: impl IntoIterator<Item = &'m Moment>) -> HashSet<(u32, u32)> {
    const RSP: usize = 4;
    let mut stacks: HashMap<(u32, u64), BTreeSet<u32>> = HashMap::new();
    for moment in moments {
        let Some(registers) = moment.registers else { continue };
        let stack = registers.general[RSP] / SMALLEST;
        stacks.entry((moment.process, stack)).or_default().insert(moment.thread);
    }
    let of_stack = |threads: &BTreeSet<u32>| {
        let others =
            |of: u32| threads.iter().filter(move |&&other| other != of).map(move |&other| (of, other));
        threads.iter().flat_map(|&of| others(of)).collect::<Vec<_>>()
    };
    stacks.values().flat_map(of_stack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::registers::Registers;

    #[test]
    fn a_stack_that_moves_is_seen() {
        let moment = |process, thread, stack_pointer| {
            let mut registers = Registers::default();
            registers.general[4] = stack_pointer;
            Moment { process, thread, time_ns: 0, weight: 1.0, registers: Some(registers) }
        };
        let goroutine = 0xc000_1000;
        let moments = [
            moment(1, 10, goroutine + 0x100),
            moment(1, 11, goroutine + 0x380),
            moment(1, 12, goroutine + SMALLEST + 8),
            moment(2, 20, goroutine + 0x100),
            Moment { registers: None, ..moment(1, 13, 0) },
            Moment { registers: None, ..moment(1, 14, 0) },
        ];
        assert_eq!(on_one_stack(&moments), HashSet::from([(10, 11), (11, 10)]));
    }
}
