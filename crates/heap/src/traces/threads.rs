//! Threads of the program: each has a chunk before it begins, and hands it over when it ends.
//! Forked children get chunks of their own.

use super::chunks;
use super::words::{self, CURSOR, FULL};
use bare_calls::look_up;
use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

static CREATE: AtomicUsize = AtomicUsize::new(0);
static EXIT: AtomicUsize = AtomicUsize::new(0);

fn behind(known: &AtomicUsize, name: &CStr) -> usize {
    match known.load(Acquire) {
        0 => {
            let found = look_up(name) as usize;
            known.store(found, Release);
            found
        }
        found => found,
    }
}

/// What a new thread is to do. A place is free while its function is 0.
struct Start {
    function: AtomicUsize,
    argument: AtomicUsize,
}

const FREE: usize = 0;
const TAKEN: usize = 1;
/// Threads that are being started at the same time.
static STARTS: [Start; 256] =
    [const { Start { function: AtomicUsize::new(FREE), argument: AtomicUsize::new(0) } }; 256];

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: usize,
    attributes: usize,
    function: usize,
    argument: usize,
) -> i32 {
    const EAGAIN: i32 = 11;
    let create = behind(&CREATE, c"pthread_create");
    if create == 0 {
        return EAGAIN;
    }
    // SAFETY: a function of that name has that type; the program's arguments.
    unsafe {
        let create: unsafe extern "C" fn(usize, usize, usize, usize) -> i32 = core::mem::transmute(create);
        let is_free = |start: &&Start| start.function.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok();
        let Some(start) = STARTS.iter().find(is_free) else {
            return create(thread, attributes, function, argument);
        };
        start.argument.store(argument, Relaxed);
        start.function.store(function, Release);
        let place = core::ptr::from_ref(start) as usize;
        let failed = create(thread, attributes, begins as *const () as usize, place);
        if failed != 0 {
            start.function.store(FREE, Release);
        }
        failed
    }
}

/// Where threads begin.
///
/// # Safety
/// Called by libc, with a place of `STARTS`.
unsafe extern "C" fn begins(start: &Start) -> usize {
    let (function, argument) = (start.function.load(Acquire), start.argument.load(Relaxed));
    start.function.store(FREE, Release);
    chunks::hand_over();
    chunks::take();
    // SAFETY: the program's function, which it gave for a thread.
    let result = unsafe {
        let function: unsafe extern "C" fn(usize) -> usize = core::mem::transmute(function);
        function(argument)
    };
    chunks::hand_over();
    result
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_exit() {
    naked_asm!(
        "push rdi",
        "call {ends}",
        "pop rdi",
        "jmp rax",
        ends = sym ends,
    )
}

extern "C" fn ends() -> usize {
    chunks::hand_over();
    behind(&EXIT, c"pthread_exit")
}

/// Has forked children take chunks of their own. While a thread forks it writes nothing down.
pub(super) fn follow_forks() {
    let handlers = [before_fork, after_fork, in_child].map(|handler| handler as *const () as usize);
    let register = look_up(c"__register_atfork");
    if register.is_null() {
        return;
    }
    // SAFETY: a function of that name has that type in glibc.
    unsafe {
        let register: unsafe extern "C" fn(usize, usize, usize, usize) -> i32 =
            core::mem::transmute(register);
        register(handlers[0], handlers[1], handlers[2], 0);
    }
}

extern "C" fn before_fork() {
    chunks::hand_over();
}

extern "C" fn after_fork() {
    chunks::take();
}

extern "C" fn in_child() {
    words::write::<FULL>(0);
    words::write::<CURSOR>(0);
    chunks::take();
}
