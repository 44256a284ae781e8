//! A sample and its stack, written into the shared memory.

use super::layout::{Clock, REGISTERS, RINGS, SLOTS, STACK_BYTES, STACKS};
use crate::layout::state;
use crate::stack::readable;
use crate::sys;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Registers by their numbers, and the instruction pointer behind them.
pub(super) type Registers = [u64; REGISTERS];
const RSP: usize = 4;
/// Buffers that are tried: if these are all in use, others are likely to be.
const PROBES: u32 = 4;

/// One record, as it is told.
pub(super) struct Record<'r> {
    pub kind: u64,
    pub process: u32,
    pub thread: u32,
    pub overrun: u32,
    pub ticks: u64,
    pub registers: &'r Registers,
}

/// The number of the record in its ring; none if the ring is full. Another writer may interrupt it
/// anywhere.
pub(super) fn write(clock: &Clock, record: &Record<'_>) -> Option<u64> {
    // What a process tells stays in order: all of it goes into one ring.
    let ring = &clock.rings[record.process.wrapping_mul(0x9e37_79b1) as usize >> 16 & (RINGS - 1)];
    let has_room = |number: u64| {
        (number.wrapping_sub(ring.tail.load(Acquire)) < SLOTS as u64).then(|| number.wrapping_add(1))
    };
    let Ok(number) = ring.head.fetch_update(Relaxed, Relaxed, has_room) else {
        clock.lost.fetch_add(1, Relaxed);
        return None;
    };
    let slot = &ring.slots[number as usize % SLOTS];
    slot.ticks.store(record.ticks, Relaxed);
    slot.kind.store(record.kind | u64::from(record.process) << 32, Relaxed);
    slot.thread.store(record.thread, Relaxed);
    slot.overrun.store(record.overrun, Relaxed);
    store(&slot.registers, record.registers);
    slot.sequence.store(number.wrapping_add(1), Release);
    Some(number)
}

/// Copies the stack of a sample into a free buffer, if there is one.
pub(super) fn copy_stack(clock: &Clock, record: &Record<'_>) {
    let from = clock.next_stack.fetch_add(1, Relaxed);
    let buffers = (0..PROBES).map(|probe| &clock.stacks[from.wrapping_add(probe) as usize % STACKS]);
    let mut free = buffers
        .filter(|buffer| buffer.state.compare_exchange(state::FREE, state::WRITTEN, AcqRel, Relaxed).is_ok());
    let Some(buffer) = free.next() else { return };
    buffer.process.store(record.process, Relaxed);
    buffer.thread.store(record.thread, Relaxed);
    buffer.ticks.store(record.ticks, Relaxed);
    store(&buffer.registers, record.registers);
    let sp = record.registers[RSP];
    // Compiled code keeps its stack aligned to words; what does not is no stack.
    let readable = if sp % 8 == 0 && sys::may_read(sp) { readable(sp) } else { 0 };
    let words = readable.min(STACK_BYTES as u64) / 8;
    for (index, word) in buffer.words.iter().take(words as usize).enumerate() {
        // SAFETY: readable, see above. Where the handler runs on the same stack, it does so below.
        word.store(unsafe { (sp as *const u64).add(index).read_volatile() }, Relaxed);
    }
    buffer.length.store(8 * words, Relaxed);
    buffer.state.store(state::READY, Release);
}

fn store(to: &[AtomicU64; REGISTERS], registers: &Registers) {
    for (to, value) in to.iter().zip(registers) {
        to.store(*value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::layout::kind;
    use crate::layout::tests::region;

    #[test]
    fn samples_and_stacks_are_written_while_there_is_room() {
        let region = region(1);
        let clock = region.clock().unwrap();
        let mut registers = core::array::from_fn(|number| number as u64);
        registers[RSP] = &raw const registers as u64;
        let record =
            Record { kind: kind::SAMPLE, process: 5, thread: 9, overrun: 3, ticks: 1, registers: &registers };
        for number in 0..SLOTS as u64 {
            assert_eq!(write(clock, &record), Some(number));
        }
        assert_eq!((write(clock, &record), clock.lost.load(Relaxed)), (None, 1));
        let ring = clock.rings.iter().find(|ring| ring.head.load(Relaxed) > 0).unwrap();
        let slot = &ring.slots[7];
        assert_eq!((slot.sequence.load(Acquire), slot.kind.load(Relaxed)), (8, kind::SAMPLE | 5 << 32));
        assert_eq!((slot.thread.load(Relaxed), slot.registers[16].load(Relaxed)), (9, 16));
        copy_stack(clock, &record);
        let stack = &clock.stacks[0];
        assert_eq!((stack.state.load(Acquire), stack.registers[3].load(Relaxed)), (state::READY, 3));
        assert_eq!(stack.words[3].load(Relaxed), 3, "the stack pointer was that of the registers");
    }
}
