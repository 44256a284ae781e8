//! Another library: the agent inside a Java virtual machine, which writes down the code that it
//! compiles, with its methods and lines, in the layout of `jit-PID.dump` and two kinds of records
//! more:
//!
//! ```text
//! 64 method: number, count of lines, each: bytecode from where on, line; name and file, each ended
//!            by a zero byte
//! 65 frames: of the code that comes next: count; each: address behind the instructions that it is
//!            of, count of frames, each: method, bytecode; the innermost first
//! ```
//!
//! The machine's interface (JVMTI) is a table of functions by number, which no version changes: so
//! no header of a JDK is needed. All of it runs in the machine's own threads, in callbacks that
//! come one by one or nearly so; what does not fit is left out.

use crate::sys::{nr, syscall};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A table of functions, by number from 1 on.
type Functions = *const *const c_void;
/// What the interface passes as its environment: a pointer to its functions.
type Environment = *const Functions;

const OK: i32 = 0;
const VERSION: i32 = 0x3001_0200;
/// Of the machine's own table, from 0 on.
const GET_ENVIRONMENT: usize = 6;
/// Of the interface, from 1 on.
const SET_NOTIFICATION: usize = 2;
const DEALLOCATE: usize = 47;
const CLASS_SIGNATURE: usize = 48;
const SOURCE_FILE: usize = 50;
const METHOD_NAME: usize = 64;
const DECLARING_CLASS: usize = 65;
const LINE_TABLE: usize = 70;
const SET_CALLBACKS: usize = 122;
const ADD_CAPABILITIES: usize = 142;
/// Bits of what an agent may ask for: files, lines, and to be told of compiled methods.
const CAPABILITIES: u64 = 1 << 11 | 1 << 12 | 1 << 27;
/// Numbers of events.
const FIRST_EVENT: usize = 50;
const METHOD_COMPILED: usize = 68;
const CODE_GENERATED: usize = 70;
/// Of what is told of a compiled method: which methods are inlined where.
const INLINED: i32 = 2;

/// Kinds of records.
const CODE: u32 = 0;
const METHOD: u32 = 64;
const FRAMES: u32 = 65;
const HEAD: usize = 16;

/// What is inlined at an address of a compiled method.
#[repr(C)]
struct Stack {
    address: u64,
    count: i32,
    methods: *const u64,
    bytecodes: *const i32,
}

/// A list of what is told of a compiled method.
#[repr(C)]
struct Told {
    kind: i32,
    version: [i32; 2],
    next: *const Told,
    count: i32,
    stacks: *const Stack,
}

/// A line of a method.
#[repr(C)]
struct LineStart {
    bytecode: i64,
    line: i32,
}

const BUFFER: usize = 1 << 20;
/// Methods that are known to be written: a table by their numbers.
const KNOWN: usize = 1 << 14;

/// What the callbacks share.
struct State {
    file: isize,
    buffer: [u8; BUFFER],
    used: usize,
    known: [u64; KNOWN],
    written: u64,
}

struct Shared {
    is_taken: AtomicBool,
    state: UnsafeCell<State>,
}

// SAFETY: `with` lets one thread at a time see the state.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    is_taken: AtomicBool::new(false),
    state: UnsafeCell::new(State { file: 0, buffer: [0; BUFFER], used: 0, known: [0; KNOWN], written: 0 }),
};

/// Nothing in here calls back.
fn with(act: impl FnOnce(&mut State)) {
    while SHARED.is_taken.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
        core::hint::spin_loop();
    }
    // SAFETY: no other thread is here.
    act(unsafe { &mut *SHARED.state.get() });
    SHARED.is_taken.store(false, Release);
}

/// The machine calls this as it starts. Whatever fails, it goes on without the agent.
///
/// # Safety
///
/// Only the virtual machine calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnLoad(
    machine: *const Functions,
    path: *const c_char,
    _: *const c_void,
) -> i32 {
    let mut environment: Environment = core::ptr::null();
    // SAFETY: as the machine's interface has it.
    let got = unsafe {
        let get: unsafe extern "C" fn(*const Functions, *mut Environment, i32) -> i32 =
            core::mem::transmute(*(*machine).add(GET_ENVIRONMENT));
        get(machine, &raw mut environment, VERSION)
    };
    if got != OK || environment.is_null() || path.is_null() {
        return OK;
    }
    const FROM_HERE: usize = -100_isize as usize;
    const CREATE: usize = 0o2 | 0o100 | 0o2000 | 0o2_000_000;
    // SAFETY: the kernel reads the path, a string with its zero.
    let file = unsafe { syscall(nr::OPENAT, [FROM_HERE, path as usize, CREATE, 0o600, 0, 0]) };
    if file < 0 {
        return OK;
    }
    with(|state| {
        state.file = file;
        state.put_u32(0x4a69_5444);
        state.put_u32(1);
        state.put_u32(40);
        state.put_u32(62);
        for _ in 0..3 {
            state.put_u64(0);
        }
        state.write(&[]);
    });
    let capabilities = [CAPABILITIES, 0];
    let mut callbacks = [core::ptr::null::<c_void>(); CODE_GENERATED - FIRST_EVENT + 1];
    callbacks[METHOD_COMPILED - FIRST_EVENT] = compiled as *const c_void;
    callbacks[CODE_GENERATED - FIRST_EVENT] = generated as *const c_void;
    // SAFETY: functions of the interface, with what they take.
    unsafe {
        let add: unsafe extern "C" fn(Environment, *const u64) -> i32 =
            function(environment, ADD_CAPABILITIES);
        let set: unsafe extern "C" fn(Environment, *const *const c_void, i32) -> i32 =
            function(environment, SET_CALLBACKS);
        let notify: unsafe extern "C" fn(Environment, i32, i32, *const c_void, ...) -> i32 =
            function(environment, SET_NOTIFICATION);
        if add(environment, capabilities.as_ptr()) == OK
            && set(environment, callbacks.as_ptr(), size_of_val(&callbacks) as i32) == OK
        {
            for event in [METHOD_COMPILED, CODE_GENERATED] {
                notify(environment, 1, event as i32, core::ptr::null());
            }
        }
    }
    OK
}

/// A function of the interface by its number.
///
/// # Safety
///
/// `F` is the type of the function that has this number.
unsafe fn function<F: Copy>(environment: Environment, number: usize) -> F {
    // SAFETY: the table has it; a pointer is what functions are.
    unsafe { core::mem::transmute_copy(&*(*environment).add(number - 1)) }
}

/// The machine has compiled a method.
///
/// # Safety
///
/// SAFETY: only the virtual machine calls it, with what it promises of this event.
unsafe extern "C" fn compiled(
    environment: Environment,
    method: u64,
    size: i32,
    code: *const u8,
    _: i32,
    _: *const c_void,
    told: *const Told,
) {
    with(|state| {
        state.method(environment, method);
        let mut next = told;
        // SAFETY: a list that the machine made, which lives until the callback is over.
        while let Some(told) = unsafe { next.as_ref() } {
            if told.kind == INLINED {
                // SAFETY: as many as it says.
                let stacks = unsafe { slice(told.stacks, told.count) };
                for stack in stacks {
                    // SAFETY: as above.
                    for &method in unsafe { slice(stack.methods, stack.count) } {
                        state.method(environment, method);
                    }
                }
                state.frames(stacks);
            }
            next = told.next;
        }
        // SAFETY: the code of the method, as the machine says.
        let code = unsafe { slice(code, size) };
        name_of(environment, method, |name, _| state.code(name, code));
    });
}

/// The machine has made code that is of no method.
///
/// # Safety
///
/// SAFETY: as `compiled`.
unsafe extern "C" fn generated(_: Environment, name: *const c_char, code: *const u8, size: i32) {
    if name.is_null() {
        return;
    }
    // SAFETY: a string with its zero, and the code of which it is the name.
    let (name, code) = unsafe { (CStr::from_ptr(name).to_bytes(), slice(code, size)) };
    with(|state| state.code(&[name], code));
}

/// What lies at a pointer, of which there are as many, or none.
///
/// # Safety
///
/// SAFETY: there are as many, for as long as the result is used.
unsafe fn slice<'a, T>(first: *const T, count: i32) -> &'a [T] {
    if first.is_null() || count <= 0 {
        return &[];
    }
    // SAFETY: the caller promises it.
    unsafe { core::slice::from_raw_parts(first, count as usize) }
}

/// Gives the name of a method, in parts, and that of its file.
fn name_of(environment: Environment, method: u64, tell: impl FnOnce(&[&[u8]], &[u8])) {
    let (mut class, mut name, mut signature, mut file) =
        (core::ptr::null::<c_void>(), Text::none(), Text::none(), Text::none());
    // SAFETY: functions of the interface, with what they take.
    unsafe {
        let class_of: unsafe extern "C" fn(Environment, u64, *mut *const c_void) -> i32 =
            function(environment, DECLARING_CLASS);
        let name_of: unsafe extern "C" fn(
            Environment,
            u64,
            *mut *const c_char,
            *mut *const c_char,
            *mut *const c_char,
        ) -> i32 = function(environment, METHOD_NAME);
        let nothing = core::ptr::null_mut();
        if name_of(environment, method, &raw mut name.0, nothing, nothing) != OK
            || class_of(environment, method, &raw mut class) != OK
        {
            name.free(environment);
            return;
        }
        let signature_of: unsafe extern "C" fn(
            Environment,
            *const c_void,
            *mut *const c_char,
            *mut *const c_char,
        ) -> i32 = function(environment, CLASS_SIGNATURE);
        let file_of: unsafe extern "C" fn(Environment, *const c_void, *mut *const c_char) -> i32 =
            function(environment, SOURCE_FILE);
        if signature_of(environment, class, &raw mut signature.0, nothing) != OK {
            signature = Text::none();
        }
        if file_of(environment, class, &raw mut file.0) != OK {
            file = Text::none();
        }
    }
    // `Lpackage/Class;`
    let class = signature.bytes();
    let class = class.strip_prefix(b"L").unwrap_or(class);
    let class = class.strip_suffix(b";").unwrap_or(class);
    tell(&[class, b".", name.bytes()], file.bytes());
    for text in [name, signature, file] {
        text.free(environment);
    }
}

/// A text that the interface allocated.
struct Text(*const c_char);

impl Text {
    const fn none() -> Self {
        Self(core::ptr::null())
    }

    fn bytes(&self) -> &[u8] {
        if self.0.is_null() {
            return &[];
        }
        // SAFETY: a string with its zero, until it is freed.
        unsafe { CStr::from_ptr(self.0).to_bytes() }
    }

    fn free(self, environment: Environment) {
        free(environment, self.0.cast());
    }
}

fn free(environment: Environment, memory: *const c_void) {
    if !memory.is_null() {
        // SAFETY: what the interface allocated.
        unsafe {
            let free: unsafe extern "C" fn(Environment, *const c_void) -> i32 =
                function(environment, DEALLOCATE);
            free(environment, memory);
        }
    }
}

impl State {
    /// Writes down a method, once.
    fn method(&mut self, environment: Environment, method: u64) {
        let place = (method.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize % KNOWN;
        if self.known[place] == method {
            return;
        }
        self.known[place] = method;
        let (mut count, mut lines) = (0_i32, core::ptr::null::<LineStart>());
        // SAFETY: a function of the interface, with what it takes.
        let got = unsafe {
            let get: unsafe extern "C" fn(Environment, u64, *mut i32, *mut *const LineStart) -> i32 =
                function(environment, LINE_TABLE);
            get(environment, method, &raw mut count, &raw mut lines)
        };
        // SAFETY: as many as it says.
        let starts = if got == OK { unsafe { slice(lines, count) } } else { &[] };
        self.head(METHOD);
        self.put_u64(method);
        self.put_u64(starts.len() as u64);
        for start in starts {
            self.put_u32(start.bytecode as u32);
            self.put_u32(start.line as u32);
        }
        name_of(environment, method, |name, file| {
            self.name(name);
            self.name(&[file]);
        });
        self.write(&[]);
        free(environment, lines.cast());
    }

    fn frames(&mut self, stacks: &[Stack]) {
        self.head(FRAMES);
        self.put_u64(stacks.len() as u64);
        for stack in stacks {
            self.put_u64(stack.address);
            // SAFETY: as many as it says.
            let (methods, bytecodes) =
                unsafe { (slice(stack.methods, stack.count), slice(stack.bytecodes, stack.count)) };
            self.put_u64(methods.len().min(bytecodes.len()) as u64);
            for (&method, &bytecode) in methods.iter().zip(bytecodes) {
                self.put_u64(method);
                self.put_u64(u64::from(bytecode as u32));
            }
        }
        self.write(&[]);
    }

    fn code(&mut self, name: &[&[u8]], code: &[u8]) {
        let number = self.written;
        self.written += 1;
        self.head(CODE);
        self.put_u64(u64::from(crate::sys::process()));
        let address = code.as_ptr() as u64;
        for word in [address, address, code.len() as u64, number] {
            self.put_u64(word);
        }
        self.name(name);
        self.write(code);
    }

    /// Begins a record; its size is filled in when it is written.
    fn head(&mut self, kind: u32) {
        self.used = 0;
        self.put_u32(kind);
        self.put_u32(0);
        self.put_u64(0);
    }

    fn put_u32(&mut self, word: u32) {
        self.put(&word.to_le_bytes());
    }

    fn put_u64(&mut self, word: u64) {
        self.put(&word.to_le_bytes());
    }

    fn name(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.put(part);
        }
        self.put(&[0]);
    }

    /// More than there is space for makes the record one that is left out.
    fn put(&mut self, bytes: &[u8]) {
        let end = self.used.saturating_add(bytes.len());
        if let Some(space) = self.buffer.get_mut(self.used..end) {
            space.copy_from_slice(bytes);
            self.used = end;
        } else {
            self.used = usize::MAX;
        }
    }

    /// Writes what was put together, and these bytes behind it.
    fn write(&mut self, rest: &[u8]) {
        let used = core::mem::replace(&mut self.used, 0);
        if used > BUFFER {
            return;
        }
        // Not the file's own head.
        if self.buffer[..4] != 0x4a69_5444_u32.to_le_bytes() {
            let size = (used + rest.len()) as u32;
            self.buffer[4..8].copy_from_slice(&size.to_le_bytes());
        }
        for part in [&self.buffer[..used], rest] {
            let mut part = part;
            while !part.is_empty() {
                // SAFETY: the kernel reads what the slice holds.
                let wrote = unsafe {
                    syscall(nr::WRITE, [self.file as usize, part.as_ptr() as usize, part.len(), 0, 0, 0])
                };
                // What is cut off ends the reading there.
                let Some(left) = usize::try_from(wrote)
                    .ok()
                    .filter(|wrote| *wrote > 0)
                    .and_then(|wrote| part.get(wrote..))
                else {
                    return;
                };
                part = left;
            }
        }
    }
}
