//! The carrier of programs that run together (`gleaner harvest --together`): a primary that has
//! nothing to do itself. Each of its threads goes round a short list, and yields at each load to
//! the guests aboard; without guests the runtime lets it sleep. Its argument is the number of
//! threads, each of which keeps to one of the processors that the process may use. It ends when it
//! is killed.
#![no_std]
#![no_main]

use core::ffi::{c_int, c_ulong, c_void};
use core::ptr::null;

/// Nodes of a list: as many as loops are unrolled at most, and a few lines of the cache.
const NODES: usize = 64;
const LOADS: usize = 1 << 20;
/// Bits in a mask of processors, as the kernel is asked for it.
const CPUS: usize = 1024;
type Mask = [u64; CPUS / 64];

// SAFETY: as libc declares them.
#[link(name = "c")]
unsafe extern "C" {
    fn pthread_create(
        thread: *mut c_ulong,
        attributes: *const c_void,
        begin: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn sched_getaffinity(pid: c_int, size: usize, mask: *mut Mask) -> c_int;
    fn sched_setaffinity(pid: c_int, size: usize, mask: *const Mask) -> c_int;
    fn _exit(code: c_int) -> !;
}

#[repr(C, align(64))]
struct Node {
    next: *const Node,
}

/// The loop that guests run in.
#[inline(never)]
fn chase(mut at: *const Node) -> *const Node {
    for _ in 0..LOADS {
        // SAFETY: nodes of the caller's list, which is closed.
        at = unsafe { (&raw const (*at).next).read_volatile() };
    }
    at
}

/// A thread's life; its argument is the number of its processor.
extern "C" fn carry(argument: *mut c_void) -> *mut c_void {
    let cpu = argument as usize;
    let mut mask: Mask = [0; CPUS / 64];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: a mask of that size. Where that is refused it runs anywhere.
    unsafe { sched_setaffinity(0, size_of::<Mask>(), &raw const mask) };
    let mut nodes = [const { Node { next: null() } }; NODES];
    let first = nodes.as_mut_ptr();
    for i in 0..NODES {
        // SAFETY: within the list.
        unsafe { (*first.add(i)).next = first.add((i * 5 + 1) % NODES) };
    }
    let mut at = first.cast_const();
    loop {
        at = chase(at);
    }
}

#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const u8) -> c_int {
    let mut threads = 1;
    if count > 1 {
        // SAFETY: as many arguments as `count` says, each ended by a zero.
        threads = unsafe { number(*arguments.add(1)) };
    }
    let mut mask: Mask = [0; CPUS / 64];
    // SAFETY: a mask of that size.
    if unsafe { sched_getaffinity(0, size_of::<Mask>(), &raw mut mask) } < 0 {
        threads = 1;
    }
    let mut own = None;
    for cpu in (0..CPUS).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 != 0).take(threads) {
        if own.is_none() {
            own = Some(cpu);
            continue;
        }
        let mut thread = 0;
        // SAFETY: a function that never returns, and a number in place of its argument.
        unsafe { pthread_create(&raw mut thread, null(), carry, cpu as *mut c_void) };
    }
    carry(own.unwrap_or(0) as *mut c_void);
    0
}

/// # Safety
/// A text that is ended by a zero.
unsafe fn number(mut text: *const u8) -> usize {
    let mut value = 0;
    // SAFETY: the caller's.
    while let digit @ b'0'..=b'9' = unsafe { *text } {
        value = value * 10 + usize::from(digit - b'0');
        // SAFETY: not behind the zero.
        text = unsafe { text.add(1) };
    }
    value.clamp(1, CPUS)
}

/// The core library names it; nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { _exit(101) }
}
