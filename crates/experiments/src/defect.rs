//! A defect of this program costs the experiment that it occurs in, and neither the other
//! experiments nor the host's settings: the panic unwinds, which puts back what was changed, and
//! becomes the failure of this experiment.

use crate::context::Refused;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Whether an experiment is running: its panics are then told by its outcome, and not where they
/// happen.
static CATCHING: AtomicBool = AtomicBool::new(false);
/// The first panic since the experiment began, on any thread; later ones follow from it and say
/// less.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs an experiment; a panic in it becomes a failure that says where.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Refused> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| note(info, &before)));
    });
    *first() = None;
    CATCHING.store(true, Ordering::Relaxed);
    // What it leaves half done is its own: other experiments take new memory and blocks from the
    // context.
    let ended = panic::catch_unwind(AssertUnwindSafe(run));
    CATCHING.store(false, Ordering::Relaxed);
    ended.map_err(|_| {
        let what = first().take().unwrap_or_else(|| "of an unknown kind".to_owned());
        Refused {
            would_help: Some("please report it, with the record".to_owned()),
            ..Refused::failed(format!("a bug in Gleaner: {what}"))
        }
    })
}

fn note(info: &PanicHookInfo<'_>, before: &dyn Fn(&PanicHookInfo<'_>)) {
    // RUST_BACKTRACE asks for backtraces.
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
