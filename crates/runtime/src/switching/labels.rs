//! Labels of the assembly in `switch`: where its pieces begin and end, and which of them an address
//! lies in.

// SAFETY: labels of the assembly in `switch`; only their addresses are taken.
unsafe extern "C" {
    fn gleaner_leave();
    fn gleaner_control();
    fn gleaner_tail_open();
    fn gleaner_tail_end();
    fn gleaner_back();
    fn gleaner_parked();
    fn gleaner_park();
    fn gleaner_park_end();
    fn gleaner_across();
    fn gleaner_across_end();
    fn gleaner_stay();
    fn gleaner_restore();
    fn gleaner_restore_end();
    fn gleaner_signal_return();
    fn gleaner_restorer();
    fn gleaner_thread_start();
}

/// Where a guest leaves.
pub(crate) fn leave_address() -> usize {
    gleaner_leave as *const () as usize
}

/// Where a primary follows the supervisor's hook.
pub(crate) fn control_address() -> usize {
    gleaner_control as *const () as usize
}

/// Where the thread's own context goes on in place of the one that is there.
pub(crate) fn back_address() -> usize {
    gleaner_back as *const () as usize
}

/// Where a scavenger parks.
pub(crate) fn park_address() -> usize {
    gleaner_park as *const () as usize
}

/// Where a signal finds a scavenger at home at its yield: on the program's stack, the own context
/// saved, no context begun.
pub(crate) fn park_ends() -> [u64; 2] {
    [gleaner_parked as *const () as u64, gleaner_park_end as *const () as u64]
}

/// The leave of a thread at home.
pub(crate) fn stay_address() -> usize {
    gleaner_stay as *const () as usize
}

/// How a context that was captured whole goes on.
pub(crate) fn restore_address() -> usize {
    gleaner_restore as *const () as usize
}

/// In the tail: the ring is in order, and the next context has not begun.
pub(crate) fn is_tail(rip: usize) -> bool {
    (gleaner_tail_open as *const () as usize..gleaner_tail_end as *const () as usize).contains(&rip)
}

/// Where [`restore_address`] ends: up to there the context's frame is still whole.
pub(crate) fn restore_end() -> usize {
    gleaner_restore_end as *const () as usize
}

/// Restoring a context: its frame is still whole.
pub(crate) fn is_restore(rip: usize) -> bool {
    (restore_address()..restore_end()).contains(&rip)
}

/// Finding out whether a guest that leaves stays aboard: its frame holds all its registers, and
/// its vectors are its own.
pub(crate) fn is_across(rip: usize) -> bool {
    (gleaner_across as *const () as usize..gleaner_across_end as *const () as usize).contains(&rip)
}

/// Whether an address lies in this instance of the runtime.
#[cfg(freestanding)]
pub(crate) fn is_ours(rip: usize) -> bool {
    // SAFETY: the linker's names for our ends; only their addresses are taken.
    unsafe extern "C" {
        static __ehdr_start: u8;
        static _end: u8;
    }
    (&raw const __ehdr_start as usize..&raw const _end as usize).contains(&rip)
}

/// An ordinary crate is not a shared object of its own.
#[cfg(not(freestanding))]
pub(crate) fn is_ours(_rip: usize) -> bool {
    false
}

/// Where a handler of the primary's returns to.
pub(crate) fn signal_return_address() -> usize {
    gleaner_signal_return as *const () as usize
}

/// Where the kernel lets a handler of ours return to.
pub(crate) fn restorer_address() -> usize {
    gleaner_restorer as *const () as usize
}

/// What a new thread begins with.
pub(crate) fn thread_start() -> unsafe extern "C" fn() {
    gleaner_thread_start
}
