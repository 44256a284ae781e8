//! A defect of this program costs the experiment that runs into it, and neither what others measured nor the host's
//! settings: the panic unwinds, which puts back what was changed, and becomes this experiment's failure.

use crate::context::Refused;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Whether an experiment is running: panics are then told by its outcome, not where they happen.
static CATCHING: AtomicBool = AtomicBool::new(false);
/// The first panic since the experiment began, on whichever thread: what follows from it says less.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs this; a panic in it is a failure that says where.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Refused> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| note(info, &before)));
    });
    *first() = None;
    CATCHING.store(true, Ordering::Relaxed);
    // What it leaves half done is its own: others ask the context for memory and blocks of theirs.
    let ended = panic::catch_unwind(AssertUnwindSafe(run));
    CATCHING.store(false, Ordering::Relaxed);
    ended.map_err(|_| {
        let what = first().take().unwrap_or_else(|| "of an unknown kind".to_owned());
        Refused {
            would_help: Some("please report it, with the record".to_owned()),
            ..Refused::failed(format!("a defect of this program: {what}"))
        }
    })
}

fn note(info: &PanicHookInfo<'_>, before: &dyn Fn(&PanicHookInfo<'_>)) {
    // Who asks for backtraces gets them.
    if !CATCHING.load(Ordering::Relaxed) || std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0") {
        before(info);
    }
    let payload = info.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = info.location().map_or(String::new(), |l| format!(" ({}:{})", l.file(), l.line()));
    first().get_or_insert(format!("{words}{at}"));
}

fn first() -> std::sync::MutexGuard<'static, Option<String>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}
