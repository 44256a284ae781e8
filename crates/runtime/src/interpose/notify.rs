//! Threads that libc makes by itself, to call a function of the program's in each (`SIGEV_THREAD`):
//! they come with the GS base of the thread that asked for them, whose area is in use. So the
//! function is called by way of [`notified`], which gets an area first.
//!
//! To add a call that takes a `struct sigevent`: a function at the end.

use crate::interpose::mine::{RegisterPair, brings_areas, mine};
use crate::interpose::next::{call_next, fail};
use crate::interpose::threads;
use crate::layout::area::kind;
use crate::layout::region::{AreaPurpose, TO_COME};
use crate::switching::gs;
use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

const ENOSYS: i32 = 38;
const SIGEV_THREAD: i32 = 2;

/// `struct sigevent`, as glibc and musl have it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SignalEvent {
    value: u64,
    signal: i32,
    notify: i32,
    function: usize,
    rest: [u64; 5],
}

/// What is to be called, and in whose name. Kept for good: nothing tells when the last call was;
/// equal ones are kept once.
#[repr(C)]
struct NotifyWish {
    function: AtomicU64,
    value: AtomicU64,
    primary: AtomicU32,
    row: AtomicU32,
}

const PAGE: usize = 4096;
const IN_PAGE: usize = PAGE / size_of::<NotifyWish>() - 1;

#[repr(C)]
struct WishPage {
    next: AtomicPtr<WishPage>,
    reserved: [u64; 2],
    all: [NotifyWish; IN_PAGE],
}
const _: () = assert!(size_of::<WishPage>() <= PAGE);

/// Each process has its own instance of the runtime; see `signals::action`.
static FIRST: AtomicPtr<WishPage> = AtomicPtr::new(core::ptr::null_mut());
static WRITING: AtomicU32 = AtomicU32::new(0);

/// The record of this wish; none if there is no memory for it.
fn keep(function: u64, value: u64, primary: bool, row: u32) -> Option<&'static NotifyWish> {
    let mask = sys::set_signal_mask(u64::MAX);
    while WRITING.swap(1, Acquire) != 0 {
        sys::sched_yield();
    }
    let found = find_or_add(function, value, primary, row);
    WRITING.store(0, Release);
    sys::set_signal_mask(mask);
    found
}

fn find_or_add(function: u64, value: u64, primary: bool, row: u32) -> Option<&'static NotifyWish> {
    let mut link = &FIRST;
    loop {
        let page = link.load(Acquire);
        if page.is_null() {
            let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
            // SAFETY: a new mapping.
            let at = unsafe { sys::mmap(0, PAGE, sys::PROT_READ | sys::PROT_WRITE, flags, -1, 0) }.ok()?;
            link.store(at as *mut WishPage, Release);
            continue;
        }
        // SAFETY: a page of ours, made of atomics and zeroed, never unmapped.
        let page: &'static WishPage = unsafe { &*page };
        for wanted in &page.all {
            let there = wanted.function.load(Acquire);
            if there == 0 {
                wanted.value.store(value, Relaxed);
                wanted.primary.store(u32::from(primary), Relaxed);
                wanted.row.store(row, Relaxed);
                wanted.function.store(function, Release);
                return Some(wanted);
            }
            if there == function && wanted.value.load(Relaxed) == value {
                return Some(wanted);
            }
        }
        link = &page.next;
    }
}

/// Calls `next` with the event as libc is to see it.
///
/// # Safety
/// `event` must be null or one.
unsafe fn with(event: *const SignalEvent, next: impl FnOnce(*const SignalEvent) -> i32) -> i32 {
    // SAFETY: the caller's.
    let wished =
        unsafe { event.as_ref() }.filter(|event| event.notify == SIGEV_THREAD && event.function != 0);
    let unseen = mine().filter(|area| !brings_areas(area));
    let (Some(wished), Some(area)) = (wished, unseen) else { return next(event) };
    let primary = area.kind.load(Relaxed) == kind::PRIMARY;
    match keep(wished.function as u64, wished.value, primary, area.row.load(Relaxed)) {
        None => fail(ENOSYS),
        Some(wanted) => {
            let value = core::ptr::from_ref(wanted) as u64;
            let ours = SignalEvent { value, function: notified as *const () as usize, ..*wished };
            next(&raw const ours)
        }
    }
}

/// A thread of libc's begins. No frame of ours stays on its stack.
#[unsafe(naked)]
extern "C" fn notified() {
    core::arch::naked_asm!(
        "sub rsp, 8",
        "call {begin}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        begin = sym begin,
    )
}

/// Returns the program's function and its argument.
extern "C" fn begin(wanted: &'static NotifyWish) -> RegisterPair {
    // SAFETY: inherited from a thread of a harvest; only the region is taken from it, which is the
    // same in all.
    let region = unsafe { gs::area() }.region();
    let purpose = AreaPurpose {
        kind: kind::CLAIMED,
        primary: wanted.primary.load(Relaxed) != 0,
        row: wanted.row.load(Relaxed),
        pid: sys::getpid(),
        tid: TO_COME,
        fs: 0,
    };
    let area = region.claim_in_time(&purpose);
    area.thread.start[0].store(wanted.function.load(Relaxed), Relaxed);
    area.thread.start[1].store(wanted.value.load(Relaxed), Relaxed);
    threads::begin(area)
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn timer_create(clock: i32, event: *const SignalEvent, timer: *mut c_void) -> i32 {
    let next = |event| {
        call_next!(c"timer_create" as fn(i32, *const SignalEvent, *mut c_void) -> i32,
            (clock, event, timer), else fail(ENOSYS))
    };
    // SAFETY: the program's event.
    unsafe { with(event, next) }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn mq_notify(queue: i32, event: *const SignalEvent) -> i32 {
    let next = |event| call_next!(c"mq_notify" as fn(i32, *const SignalEvent) -> i32, (queue, event), else fail(ENOSYS));
    // SAFETY: the program's event.
    unsafe { with(event, next) }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn lio_listio(
    mode: i32,
    list: *const c_void,
    count: i32,
    event: *const SignalEvent,
) -> i32 {
    let next = |event| {
        call_next!(c"lio_listio" as fn(i32, *const c_void, i32, *const SignalEvent) -> i32,
            (mode, list, count, event), else fail(ENOSYS))
    };
    // SAFETY: the program's event.
    unsafe { with(event, next) }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn getaddrinfo_a(
    mode: i32,
    list: *mut c_void,
    count: i32,
    event: *const SignalEvent,
) -> i32 {
    const EAI_SYSTEM: i32 = -11;
    let next = |event| {
        call_next!(c"getaddrinfo_a" as fn(i32, *mut c_void, i32, *const SignalEvent) -> i32,
            (mode, list, count, event), else EAI_SYSTEM)
    };
    // SAFETY: the program's event.
    unsafe { with(event, next) }
}
