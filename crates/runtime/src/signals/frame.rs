//! The kernel's signal frame on x86-64.

/// `struct sigcontext` inside `struct ucontext`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) r8: u64,
    pub(crate) r9: u64,
    pub(crate) r10: u64,
    pub(crate) r11: u64,
    pub(crate) r12: u64,
    pub(crate) r13: u64,
    pub(crate) r14: u64,
    pub(crate) r15: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) rdx: u64,
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rsp: u64,
    pub(crate) rip: u64,
    pub(crate) flags: u64,
    pub(crate) segments: u64,
    pub(crate) error: u64,
    pub(crate) trap: u64,
    pub(crate) old_mask: u64,
    pub(crate) address: u64,
    pub(crate) vectors: *mut u8,
    reserved: [u64; 8],
}

impl Registers {
    /// By number, as instructions number them.
    pub(crate) fn general(&self) -> [u64; 16] {
        let mut copy = *self;
        core::array::from_fn(|number| *copy.at(number as u8))
    }

    /// One of them by its number.
    pub(crate) fn at(&mut self, number: u8) -> &mut u64 {
        match number & 15 {
            0 => &mut self.rax,
            1 => &mut self.rcx,
            2 => &mut self.rdx,
            3 => &mut self.rbx,
            4 => &mut self.rsp,
            5 => &mut self.rbp,
            6 => &mut self.rsi,
            7 => &mut self.rdi,
            8 => &mut self.r8,
            9 => &mut self.r9,
            10 => &mut self.r10,
            11 => &mut self.r11,
            12 => &mut self.r12,
            13 => &mut self.r13,
            14 => &mut self.r14,
            _ => &mut self.r15,
        }
    }
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SignalStack {
    pub(crate) pointer: u64,
    pub(crate) flags: i32,
    pub(crate) padding: i32,
    pub(crate) size: u64,
}

pub(crate) const SS_ONSTACK: i32 = 1;
pub(crate) const SS_DISABLE: i32 = 2;
pub(crate) const SS_AUTODISARM: i32 = i32::MIN;

impl SignalStack {
    pub(crate) const NONE: Self = Self { pointer: 0, flags: SS_DISABLE, padding: 0, size: 0 };

    pub(crate) fn top(&self) -> u64 {
        self.pointer + self.size
    }

    pub(crate) fn holds(&self, address: u64) -> bool {
        self.flags & SS_DISABLE == 0 && (self.pointer..=self.top()).contains(&address)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UserContext {
    pub(crate) flags: u64,
    pub(crate) link: u64,
    pub(crate) stack: SignalStack,
    pub(crate) registers: Registers,
    pub(crate) mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SignalInfo {
    pub(crate) signal: i32,
    pub(crate) errno: i32,
    pub(crate) code: i32,
    pub(crate) rest: [u32; 29],
}

/// What lies at the stack pointer when a handler begins; `ours` is behind all that the kernel or an
/// unwinder knows.
#[repr(C)]
pub(crate) struct SignalFrame {
    pub(crate) return_to: usize,
    pub(crate) context: UserContext,
    pub(crate) info: SignalInfo,
    pub(crate) ours: Interrupted,
}

/// Where loads were interrupted.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct InterruptedLoads {
    pub(super) rip: u64,
}

/// The stack pointer's number.
pub(super) const RSP: usize = 4;

/// What a handler's return has to bring back beside registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Interrupted {
    pub(crate) cur: usize,
    pub(crate) scratch: [u64; 3],
    /// As the handler found them, to see which it changes in its frame.
    pub(crate) general: [u64; 16],
    /// What stands in the own context's slots: see `held`.
    pub(crate) slots: [u64; 16],
    /// It interrupted the loading of registers.
    pub(crate) loading: Option<InterruptedLoads>,
}

const _: () = assert!(size_of::<UserContext>() == 304 && size_of::<SignalInfo>() == 128);
const _: () = assert!(core::mem::offset_of!(SignalFrame, ours) == 440);

/// The vector state that a frame points to: how many bytes in all, and how many of them are an
/// XSAVE image.
pub(crate) struct VectorSize {
    pub(crate) whole: usize,
    pub(crate) image: usize,
}

impl VectorSize {
    /// # Safety
    /// It must be the vector state of a signal frame.
    pub(crate) unsafe fn of(vectors: *const u8) -> Self {
        const MAGIC: u32 = 0x46505853;
        // SAFETY: every frame has 512 bytes there, the last 48 of which are software's.
        unsafe {
            if vectors.add(464).cast::<u32>().read() == MAGIC {
                let whole = vectors.add(468).cast::<u32>().read() as usize;
                let image = vectors.add(480).cast::<u32>().read() as usize;
                return Self { whole, image };
            }
        }
        Self { whole: 512, image: 512 }
    }
}
