//! The constructor finds out which role this process has:
//!
//! - GS is zero and the control page is named: the primary. Its main thread gets an area, and the
//!   supervisor is started.
//! - GS is set: a scavenger, whose loader (ours) set it.
//! - Neither: another process that inherited the variable; nothing is done.
//!
//! A primary that cannot be harvested ends with one line: its yields would fault.

use crate::exec::filter;
use crate::interpose;
use crate::layout::area::kind;
use crate::layout::page;
use crate::layout::region::{AreaPurpose, Region};
use crate::mappings;
use crate::signals;
use crate::signals::action::FAULT_MASK;
use crate::startup::core_dumps;
use crate::startup::environment::Environment;
use crate::startup::modules;
use crate::supervisor;
use crate::switching::gs;
use crate::sys;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::Ordering::{Relaxed, Release};
use runtime_abi::control::{ASIDE, Control, VARIABLE, refusal, stage};

const NO_THREADS: &[u8] =
    b"gleaner: a scavenger's libc cannot be changed so that its threads are known; harvest it without (--libraries none)\n";
const PRELOAD: &str = "LD_PRELOAD";
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Called by the dynamic loader before any other constructor. musl passes nothing, so the arguments
/// are only used where libc has not set its own variable.
extern "C" fn constructor(_argc: i32, _argv: *mut *mut u8, envp: *mut *mut u8) {
    // SAFETY: before anything else runs in this process, so no other code reads the environment.
    let Some(environment) = (unsafe { Environment::new(libc_environment().unwrap_or(envp)) }) else { return };
    if gs::base() != 0 {
        // SAFETY: a GS base in a process that preloads us is an area: our loader set it.
        let area = unsafe { gs::area() };
        let control = area.region().page();
        environment.remove_first(PRELOAD, control.preload_before != 0);
        let row = area.scavenger();
        if row.libraries != 0 {
            environment.shorten(LIBRARIES, page::string(control, row.libraries_before));
        }
        modules::find(area.region(), page::modules_of(control, row));
        mappings::spans::note_libraries(area, modules::each_base);
        area.own().fs.store(gs::fs_base(), Relaxed);
        area.quiet().fs.store(gs::fs_base(), Relaxed);
        signals::entry::begin_home(area);
        take_part();
        // SAFETY: nothing of the program runs yet.
        unsafe { mappings::hook::libc(area) };
        if row.libc_has_twins != 0 {
            filter::end_of_start(control.blocked, control.ignored);
            // Another libc may be here than was planned: where the loader's variable is set twice.
            let is_here = modules::is_found(control, page::modules_of(control, row), b"/libc.so.");
            // SAFETY: as above.
            if is_here && !unsafe { interpose::clones::begin(area) } {
                sys::write(2, NO_THREADS);
                sys::exit_group(3);
            }
        }
        begin_heap();
        return;
    }
    let Some(path) = environment.get(VARIABLE) else { return };
    let Some(control) = page::map(path) else {
        refuse(b"the launcher's control page cannot be opened (is /proc mounted, and the launcher alive?)");
    };
    environment.remove(VARIABLE);
    environment.remove_first(PRELOAD, control.preload_before != 0);
    if control.libraries != 0 {
        environment.shorten(LIBRARIES, page::string(control, control.libraries_before));
    }
    environment.unwrap(ASIDE);
    environment.reorder(page::strings(control, control.envp, control.envc));
    ignore(control.ignored);
    (0..3).filter(|stream| control.closed & 1 << stream != 0).for_each(sys::close);
    if let Err((why, errno)) = begin(control) {
        control.refusal.store(why, Relaxed);
        control.errno.store(errno, Relaxed);
        control.stage.store(stage::REFUSED, Release);
        refuse(match why {
            refusal::VERSION => b"launcher and runtime are from different builds",
            refusal::MEMORY => b"no memory for the areas of its threads (is there a limit on address space?)",
            refusal::GS_BASE => b"the GS base cannot be set",
            refusal::XSAVE => b"the processor's vector state cannot be saved (XSAVE)",
            _ if errno == sys::EAGAIN => {
                b"no process can be made for the supervisor (is there a limit on processes?)"
            }
            _ => b"no process can be made for the supervisor (clone with CLONE_VM: do a container's rules forbid it?)",
        });
    }
}

/// From here on the program's calls are interposed.
fn take_part() {
    interpose::itself::look_up();
    interpose::bases::look_up();
    interpose::mine::take_part();
}

/// The scavenger's malloc is refused its first piece of memory here, since `brk` fails, and maps
/// one: what that leaves in `errno` the program shall not find where it begins. Glibc's own malloc,
/// whatever the program has in its place.
fn begin_heap() {
    #[cfg(freestanding)]
    {
        let (malloc, free, errno): (usize, usize, usize);
        // SAFETY: reads the addresses of weak symbols, which are 0 where there are none.
        unsafe {
            core::arch::asm!(
                ".weak __libc_malloc", "mov {}, [rip + __libc_malloc@GOTPCREL]",
                ".weak __libc_free", "mov {}, [rip + __libc_free@GOTPCREL]",
                ".weak __errno_location", "mov {}, [rip + __errno_location@GOTPCREL]",
                out(reg) malloc, out(reg) free, out(reg) errno, options(nostack, readonly, preserves_flags));
        }
        if malloc == 0 || free == 0 || errno == 0 {
            return;
        }
        // SAFETY: libc's functions, as it declares them, in a process whose libc is ready.
        unsafe {
            let malloc: unsafe extern "C" fn(usize) -> *mut u8 = core::mem::transmute(malloc);
            let free: unsafe extern "C" fn(*mut u8) = core::mem::transmute(free);
            let errno: unsafe extern "C" fn() -> *mut i32 = core::mem::transmute(errno);
            let before = *errno();
            free(malloc(1));
            *errno() = before;
        }
    }
}

/// A primary's twins need an area: without one it must not run. Status 3 is "not possible on this
/// host".
fn refuse(why: &[u8]) -> ! {
    for part in [b"gleaner: the primary cannot be harvested: ", why, b"\n"] {
        sys::write(2, part);
    }
    sys::exit_group(3)
}

/// What the primary would have inherited as ignored. Scavengers inherit it from the primary.
fn ignore(signals: u64) {
    /// Libc's own, which it has ignored in what the launcher spawned.
    const LIBCS: [i32; 2] = [32, 33];
    let set = |signal, handler| {
        let action = sys::SigAction { handler, ..sys::SigAction::default() };
        // SAFETY: no handler.
        unsafe { sys::sigaction(signal, Some(&action), None) };
    };
    for signal in LIBCS {
        let mut now = sys::SigAction::default();
        // SAFETY: asks only.
        unsafe { sys::sigaction(signal, None, Some(&mut now)) };
        if now.handler == signals::action::IGNORE {
            set(signal, signals::action::DEFAULT);
        }
    }
    for signal in (1..=64).filter(|signal| signals & 1 << (signal - 1) != 0) {
        set(signal, signals::action::IGNORE);
    }
}

/// `environ` as libc knows it, if it has one already.
fn libc_environment() -> Option<*mut *mut u8> {
    #[cfg(freestanding)]
    {
        let variable: *mut *mut *mut u8;
        // SAFETY: reads the address of a weak symbol, which is 0 where there is none.
        unsafe {
            core::arch::asm!(".weak environ", "mov {}, [rip + environ@GOTPCREL]", out(reg) variable,
                options(nostack, readonly, preserves_flags));
            if variable.is_null() || (*variable).is_null() { None } else { Some(*variable) }
        }
    }
    #[cfg(not(freestanding))]
    None
}

/// Makes the calling thread the primary's first.
fn begin(control: &'static Control) -> Result<(), (u32, i32)> {
    let wrong = page::check(control);
    if wrong != refusal::NONE {
        return Err((wrong, 0));
    }
    let (mask, compact) = vector_state().ok_or((refusal::XSAVE, 0))?;
    let region = Region::map(core::ptr::from_ref(control).cast_mut(), mask, compact)
        .map_err(|errno| (refusal::MEMORY, errno))?;
    let pid = sys::getpid();
    region.primary.store(pid, Relaxed);
    let purpose = AreaPurpose {
        kind: kind::PRIMARY,
        primary: true,
        row: 0,
        pid,
        tid: sys::gettid(),
        fs: gs::fs_base(),
    };
    let area = region.claim(&purpose).ok_or((refusal::MEMORY, 0))?;
    area.signals.block_faults(control.blocked & FAULT_MASK);
    // SAFETY: the area was made for this thread and is never unmapped.
    if !unsafe { gs::set_base(area.address()) } {
        return Err((refusal::GS_BASE, 0));
    }
    signals::entry::begin_process();
    signals::entry::begin_thread(area);
    take_part();
    control.primary.store(pid, Relaxed);
    modules::find_program(region, page::modules(control), modules::entry());
    modules::find(region, page::modules(control));
    if !page::rows(control).is_empty() {
        core_dumps::contain();
    }
    supervisor::start(region).map_err(|errno| (refusal::SUPERVISOR, errno))?;
    control.stage.store(stage::RUNNING, Release);
    Ok(())
}

/// Which parts of the vector state are saved and whether compactly; none if the processor cannot,
/// or has more than we have space for. Protection keys and tiles are left out: they are the kernel
/// thread's, not the context's. No guest touches tiles aboard; those of its own stay in its thread
/// at home, and the primary's are neither to be taken home, where they may be forbidden, nor
/// cleared.
fn vector_state() -> Option<(u64, bool)> {
    const OSXSAVE: u32 = 1 << 27;
    const XSAVEC: u32 = 1 << 1;
    const PKRU: u64 = 1 << 9;
    const TILES: u64 = 3 << 17;
    // CPUID leaves 1 and 0xd exist on every x86-64 with XSAVE, and 1 is asked first.
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return None;
    }
    let sizes = __cpuid_count(0xd, 0);
    if sizes.ebx as usize > crate::layout::area::XSAVE_SIZE {
        return None;
    }
    let (low, high): (u32, u32);
    // SAFETY: OSXSAVE says that XGETBV is there.
    unsafe {
        core::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nostack, nomem));
    };
    let enabled = u64::from(high) << 32 | u64::from(low);
    Some((enabled & !(PKRU | TILES), __cpuid_count(0xd, 1).eax & XSAVEC != 0))
}

#[cfg(freestanding)]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(i32, *mut *mut u8, *mut *mut u8) = constructor;
