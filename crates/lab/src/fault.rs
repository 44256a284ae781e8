//! Calls into generated code that return even if the code dies of a signal. So a defect in a kernel
//! costs one experiment, not the run with all that it has measured.
//!
//! The call leaves, in a thread-local note, where the stack stands and where to go on:
//!
//! ```text
//! caller's frame      rbx and rbp of the caller (the compiler may not be told that they change)
//!                     address of the note
//!                     8 bytes that keep the stack aligned        ◄─ the note's `stack`
//!                     return address: the note's `landing`
//!                     whatever the kernel pushes
//! ```
//!
//! On a signal of the processor (SIGSEGV, SIGBUS, SIGILL, SIGFPE) while a note is set, the handler,
//! on a stack of its own, sets the stack pointer back and goes on at the landing, where the kernel
//! would have returned to. That skips no frame of Rust: between the call and the landing is
//! generated code only. Any other such signal has its former effect. The note costs a few cycles
//! per call, which the readings of the clock (calls with no loops) subtract.

use std::cell::UnsafeCell;
use std::sync::{Mutex, Once, PoisonError};

/// Signals by which the processor reports that it cannot go on.
const FATAL_SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
const DIRECTION_FLAG: i64 = 1 << 10;

/// Where to go on. The assembly below knows the order of the first two.
#[repr(C)]
struct LandingNote {
    /// 0: no kernel is running on this thread.
    stack: u64,
    landing: u64,
    signal: libc::c_int,
    at: u64,
}

thread_local! {
    static NOTE: UnsafeCell<LandingNote> = const { UnsafeCell::new(LandingNote { stack: 0, landing: 0, signal: 0, at: 0 }) };
}

/// The former actions of the signals, in the order of [`FATAL_SIGNALS`].
static BEFORE: Mutex<Vec<libc::sigaction>> = Mutex::new(Vec::new());

/// Installs the handlers; call it before any kernel runs. Further calls do nothing.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in FATAL_SIGNALS {
            // SAFETY: zeroed sigactions are valid ones. The handler touches nothing but its
            // thread's note, the context it is given and, once and where no kernel runs, the
            // actions kept here.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const action, &raw mut old);
                before.push(old);
            }
        }
    });
}

extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler both, for as long as it runs. The note is this thread's;
    // where its stack is set, the thread is between the call below and its landing, so nothing else
    // looks at the note.
    unsafe {
        let note = NOTE.with(UnsafeCell::get);
        // A signal that was sent (kill -SEGV) has its usual effect.
        if (*note).stack != 0 && (*info).si_code > 0 {
            let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            (*note).signal = signal;
            (*note).at = registers[libc::REG_RIP as usize] as u64;
            registers[libc::REG_RSP as usize] = (*note).stack as i64;
            registers[libc::REG_RIP as usize] = (*note).landing as i64;
            registers[libc::REG_EFL as usize] &= !DIRECTION_FLAG;
            return;
        }
        let before = BEFORE.try_lock().ok();
        let old = FATAL_SIGNALS.iter().position(|&s| s == signal).and_then(|i| before.as_ref()?.get(i));
        match old {
            Some(old) => libc::sigaction(signal, old, std::ptr::null_mut()),
            None => libc::signal(signal, libc::SIG_DFL) as libc::c_int,
        };
        // The processor raises its own signals again; a signal that was sent is sent again.
        if (*info).si_code <= 0 {
            libc::raise(signal);
        }
    }
}

/// Calls the code at `entry`. A panic says which signal ended it, and how far into the code.
///
/// # Safety
/// [`prepare`] has been called; `entry` keeps to the contract of kernels, with these arguments.
#[inline]
pub(crate) unsafe fn call(entry: *const u8, rdi: *mut u8, rsi: u64, rdx: *mut u64, rcx: *mut u64) -> u64 {
    let note = NOTE.with(UnsafeCell::get);
    let result: u64;
    // SAFETY: by the contract the callee keeps the stack pointer and what the ABI has it keep, and
    // uses no red zone, which a block that pushes does not have either; if it dies, the landing
    // brings all back that the compiler is not told of: the rest is named as changed. The note is
    // ours alone, and empty again before anything else can look.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "push rbp",
            "push r8",
            "sub rsp, 8",
            "lea rax, [rip + 2f]",
            "mov [r8 + 8], rax",
            "mov [r8], rsp",
            "call r9",
            "2:",
            "add rsp, 8",
            "pop r8",
            "mov qword ptr [r8], 0",
            "pop rbp",
            "pop rbx",
            inlateout("rdi") rdi => _,
            inlateout("rsi") rsi => _,
            inlateout("rdx") rdx => _,
            inlateout("rcx") rcx => _,
            inlateout("r8") note => _,
            inlateout("r9") entry => _,
            lateout("rax") result,
            lateout("r12") _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            clobber_abi("sysv64"),
        );
        if (*note).signal != 0 {
            died(&mut *note, entry);
        }
    }
    result
}

#[cold]
fn died(note: &mut LandingNote, entry: *const u8) -> ! {
    let signal = match std::mem::take(&mut note.signal) {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        _ => "SIGFPE",
    };
    let at = note.at.wrapping_sub(entry as u64) as i64;
    panic!("a kernel was ended by {signal} at byte {at} of its code");
}

#[cfg(test)]
mod tests {
    use crate::code::Loaded;
    use kernels::{Kernel, Spec};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// What this code, as a kernel, gives back; or how it ended.
    fn ran(code: &[u8]) -> Result<u64, String> {
        let kernel = Kernel { spec: Spec::Nothing, code: code.to_vec(), ops_per_loop: 1 };
        let loaded = Loaded::new(kernel).unwrap();
        let none = std::ptr::null_mut();
        // SAFETY: what it does is what is tried here; it touches nothing of ours.
        let run = || unsafe { loaded.call(std::ptr::null_mut(), 0, none, none) };
        catch_unwind(AssertUnwindSafe(run)).map_err(|e| *e.downcast::<String>().unwrap())
    }

    const FORTY_TWO: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];

    fn each_is_outlived() {
        for (code, how) in [
            (&[0x90, 0x0f, 0x0b][..], "SIGILL at byte 1"),
            // Registers that the caller wants back, another stack and the direction flag, then a
            // load from 0.
            (
                &[
                    0x31, 0xdb, 0x31, 0xed, 0x45, 0x31, 0xe4, 0x45, 0x31, 0xff, 0xfd, 0x31, 0xe4, 0x48, 0x8b,
                    0x04, 0x24,
                ],
                "SIGSEGV at byte 13",
            ),
            (&[0x31, 0xd2, 0x31, 0xc0, 0xf7, 0xf2], "SIGFPE at byte 4"),
        ] {
            assert_eq!(ran(code), Err(format!("a kernel was ended by {how} of its code")));
            assert_eq!(ran(&FORTY_TWO), Ok(42));
        }
    }

    #[test]
    fn a_kernel_that_dies_is_a_panic_of_its_caller() {
        each_is_outlived();
        std::thread::spawn(each_is_outlived).join().unwrap();
    }
}
