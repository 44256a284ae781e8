//! A context as the runtime sees it: what can be switched to, and which of its words each side
//! writes.
//!
//! ```text
//!  -0x80  register slots      written by yields, or by whatever captures a guest
//!   0x00  NEXT RIP RSP FS FLAGS  –   prev home      one cache line, kept by the host's core
//!   0x40  state why link modes recall since host …  what the supervisor polls and writes
//!   0x80  vector slots, masks
//! ```
//!
//! A context's life, and which side moves it on:
//!
//! ```text
//!   HOME --thread--> PARKING --thread--> PARKED --supervisor--> ABOARD --host thread--> LEAVING
//!    ^                                     |                      |  (host sleeps)         |
//!    |                                     |  <----supervisor-----+                        |
//!    +------------supervisor---------------+------------------supervisor-------------------+
//!
//!   ABOARD --host--> VISITING --home thread--> RETURNED --host--> ABOARD
//!                       +------host, too late-----> LEAVING
//! ```

use super::area::{Area, follow};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};
use runtime_abi::context;

/// What a context is up to. The home thread sleeps on it (futex) in all but [`state::HOME`] and
/// [`state::PARKING`].
pub(crate) mod state {
    /// Its own kernel thread runs it. Written by the supervisor, which ends the sleep, or by the
    /// thread, which does not begin to.
    pub(crate) const HOME: u32 = 0;
    /// Saved at a yield, its home thread asleep; the supervisor's to give away. Written by the home
    /// thread, or by the supervisor when it takes a guest from a primary.
    pub(crate) const PARKED: u32 = 1;
    /// In the inbox of a primary's area, or in its ring. Written by the supervisor.
    pub(crate) const ABOARD: u32 = 2;
    /// Taken out of the ring and saved; the supervisor is to wake its home thread. Written by the
    /// primary's thread.
    pub(crate) const LEAVING: u32 = 3;
    /// About to be saved. Written by the home thread before it takes the supervisor's hook off, so
    /// that at any moment either the hook or this tells that it may sleep for the supervisor to
    /// wake it.
    pub(crate) const PARKING: u32 = 4;
    /// Its home thread does what the guest left for, while the thread that it was aboard lends the
    /// processor ([`crate::switching::loans`]). Written by that thread, which also ends it:
    /// LEAVING.
    pub(crate) const VISITING: u32 = 5;
    /// Saved at a yield at home, to be taken back by the lender. Written by the home thread, by
    /// compare-and-swap.
    pub(crate) const RETURNED: u32 = 6;
}

const _: () = assert!(core::mem::offset_of!(Context, state) == 64);

/// A context from its address on. In front of it lie its register slots, behind it its vector
/// slots.
#[repr(C)]
pub(crate) struct Context {
    /// In a ring: the next one. Written by the thread that runs the ring; of an area's own context
    /// also by the supervisor, by compare-and-swap.
    pub(crate) next: AtomicPtr<Context>,
    pub(crate) rip: AtomicU64,
    pub(crate) rsp: AtomicU64,
    /// Written when its thread starts.
    pub(crate) fs: AtomicU64,
    pub(crate) flags: AtomicU64,
    padding: [u8; 8],
    /// In a ring: the one before. Written as `next`, but never by the supervisor's hook.
    pub(crate) prev: AtomicPtr<Context>,
    /// The area of its thread; of a control or quiet context too. Written once.
    pub(crate) home: AtomicPtr<Area>,
    // The words above are one cache line, which stays with the core that runs the ring; the
    // supervisor polls those that follow.
    pub(crate) state: AtomicU32,
    /// Why it is [`state::LEAVING`], an index of [`runtime_abi::control::trip`].
    pub(crate) why: AtomicU32,
    /// The next one in the same inbox.
    pub(crate) link: AtomicPtr<Context>,
    /// MXCSR in the low half, x87 control word above. Written by the home thread when it parks.
    pub(crate) modes: AtomicU64,
    /// The supervisor wants it home.
    pub(crate) recall: AtomicU32,
    /// When it last changed its state. The supervisor's.
    pub(crate) since: AtomicU64,
    /// The primary's area it is aboard. The supervisor's.
    pub(crate) host: AtomicPtr<Area>,
    /// Where it goes on while it is redirected ([`crate::switching::redirect`]), and what RIP is
    /// then: at home, an address in another instance. The supervisor's.
    pub(crate) straight: AtomicU64,
    pub(crate) back: AtomicU64,
}

/// Bytes of a context in the table: a multiple of a cache line, an even number of them, so that
/// contexts spread over sets.
pub(crate) const CONTEXT_STRIDE: usize = 0x980;
const _: () = assert!(CONTEXT_STRIDE >= context::BEFORE + context::BEHIND && CONTEXT_STRIDE % 128 == 0);

macro_rules! at {
    ($field:ident == $offset:expr) => {
        const _: () = assert!(core::mem::offset_of!(Context, $field) == $offset as usize);
    };
}
at!(next == context::NEXT);
at!(rip == context::RIP);
at!(rsp == context::RSP);
at!(fs == context::FS);
at!(flags == context::FLAGS);
at!(padding == context::RUNTIME);
const _: () = assert!(size_of::<Context>() <= context::vector(0) as usize);

impl Context {
    pub(crate) fn pointer(&self) -> *mut Context {
        core::ptr::from_ref(self).cast_mut()
    }

    pub(crate) fn home(&self) -> &'static Area {
        follow!(self.home)
    }
}
