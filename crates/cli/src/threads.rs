//! Rewriting is shared between threads, where they can be had.

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Runs this with as many threads as there are CPUs; where the limit on processes, or a container's
/// rules, allow none, with this one alone. They are gone afterwards, and count towards no limit.
pub(crate) fn shared<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if let Ok(pool) = ThreadPoolBuilder::new().build() {
        return pool.install(work);
    }
    // Work that is shared out in this thread is done by it from here on.
    let _here: Option<ThreadPool> = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
    work()
}

/// Runs this in one thread, whatever would be shared between several: slower, but without their
/// waiting for one another, and on one CPU.
pub(crate) fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if let Ok(pool) = ThreadPoolBuilder::new().num_threads(1).build() {
        return pool.install(work);
    }
    work()
}
