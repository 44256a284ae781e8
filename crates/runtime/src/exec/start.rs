//! Makes a scavenger's process and turns it into its program.

use crate::exec::auxiliaries;
use crate::exec::filter;
use crate::exec::load::{Image, LoadFailure, load, load_interpreter};
use crate::exec::onward;
use crate::exec::stack::size_of_all;
use crate::exec::stack::{self, Stack, StackFull, Words};
use crate::layout::area::{Area, kind};
use crate::layout::page;
use crate::layout::region::{AreaPurpose, Region, TO_COME};
use crate::mappings::{self, memory};
use crate::startup::modules;
use crate::switching::gs;
use crate::sys;
use crate::sys::cpus::Cpus;
use core::arch::asm;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, Release};
use runtime_abi::control::{ScavengerRow, failure, life};

const CLONE_VM: usize = 0x100;
const CLONE_PARENT: usize = 0x8000;

/// Runs `function` in a new process in this address space, a child of our parent, on a stack of its
/// own. It must not return.
///
/// # Safety
/// The stack's memory must not be used by others until the process has ended, and `function` must
/// know that FS is its creator's: no libc.
pub(crate) unsafe fn process(
    stack_top: usize,
    function: extern "C" fn(usize) -> !,
    argument: usize,
) -> isize {
    let result: isize;
    // SAFETY: the new process begins behind the system call with the registers as they are but rax
    // and rsp, and calls the function with an aligned stack; it never comes back to this frame. The
    // old one goes on as after any system call.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") sys::nr::CLONE => result,
            in("rdi") CLONE_VM | CLONE_PARENT | sys::SIGCHLD as usize,
            in("rsi") stack_top & !15,
            in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") argument, in("r13") function,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// The supervisor starts one scavenger. Its home is made here, so that a row has one at once.
pub(crate) fn scavenger(region: &'static Region, index: usize) -> Option<i32> {
    let row = &region.page().scavenger[index];
    let purpose =
        AreaPurpose { kind: kind::CLAIMED, primary: false, row: index as u32, pid: 0, tid: TO_COME, fs: 0 };
    let Some(home) = region.claim(&purpose) else {
        row.failure.store(failure::MEMORY, Relaxed);
        row.life.store(life::FAILED, Release);
        return None;
    };
    row.life.store(life::STARTING, Relaxed);
    let stack = home.switching.slow_stack.load(Relaxed) as usize;
    // SAFETY: the slow stack of an area that no thread has yet.
    let pid = unsafe { process(stack, become_scavenger, home.address()) };
    if pid < 0 {
        row.errno.store(-pid as i32, Relaxed);
        row.failure.store(failure::CLONE, Relaxed);
        row.life.store(life::FAILED, Release);
        region.give_back(home);
        return None;
    }
    row.pid.store(pid as i32, Release);
    Some(pid as i32)
}

/// The first code of the new process.
extern "C" fn become_scavenger(home: usize) -> ! {
    // SAFETY: the area made for us, passed by our creator.
    let home: &'static Area = unsafe { &*(home as *const Area) };
    let row = home.scavenger();
    match prepare(home, row) {
        Ok((entry, stack)) => {
            row.life.store(life::RUNNING, Release);
            // SAFETY: the entry of a program that is loaded, and a stack as the kernel would have
            // made it.
            unsafe {
                asm!("mov rsp, {}", "xor edx, edx", "xor ebp, ebp", "jmp {}", in(reg) stack, in(reg) entry,
                    options(noreturn))
            }
        }
        Err((why, errno)) => {
            row.errno.store(errno, Relaxed);
            row.failure.store(why, Relaxed);
            row.life.store(life::FAILED, Release);
            sys::exit_group(127)
        }
    }
}

fn prepare(home: &'static Area, row: &'static ScavengerRow) -> Result<(usize, usize), LoadFailure> {
    let region = home.region();
    let control = region.page();
    die_with_launcher(control);
    sys::set_signal_mask(u64::MAX);
    reset_signals();
    let pid = sys::getpid();
    home.pid.store(pid, Relaxed);
    home.tid.store(pid, Relaxed);
    // SAFETY: our own area, for good; and no libc of the primary runs in this process.
    unsafe {
        if !gs::set_base(home.address()) {
            return Err((failure::CLONE, 0));
        }
        gs::clear_fs_base();
    }
    streams(control, row)?;
    if let Some(directory) = page::string(control, row.directory) {
        let result = sys::chdir(directory);
        if result < 0 {
            return Err((failure::DIRECTORY, -result as i32));
        }
    }
    let file = page::string(control, row.file).ok_or((failure::FILE, 0))?;
    sys::set_name(name_of(file));
    if control.home_cpus_known != 0 {
        Cpus::of_mask(control.home_cpus).keep_to();
    }
    row.policy_errno.store(sys::set_idle_policy(), Relaxed);
    mappings::begin(home);
    let image = load(home, file)?;
    modules::find_program(region, page::modules_of(control, row), Some(image.entry as u64));
    let interpreter = match image.interpreter() {
        None => None,
        Some(path) => Some(load_interpreter(home, path).map_err(|(_, errno)| (failure::INTERPRETER, errno))?),
    };
    let stack = program_stack(home, file, &image, interpreter.as_ref())?;
    if interpreter.is_none() {
        if image.base == 0 {
            onward::note(home, image.range);
        }
        // By the filter.
        home.mappings().sees(mappings::seen::ALL);
    }
    let calls = match &interpreter {
        None => filter::Trapped::All(image.range),
        Some(loader) if row.libc_has_twins != 0 => filter::Trapped::FsBase(loader.range),
        Some(_) => filter::Trapped::None,
    };
    filter::install(calls).map_err(|errno| (failure::SECCOMP, errno))?;
    region.adopt(home, pid, kind::HOME);
    sys::set_signal_mask(if row.libc_has_twins == 0 {
        control.blocked
    } else {
        control.blocked & !filter::SIGNAL
    });
    Ok((interpreter.map_or(image.entry, |interpreter| interpreter.entry), stack))
}

fn die_with_launcher(control: &runtime_abi::control::Control) {
    if control.outlive_launcher != 0 {
        return;
    }
    // SAFETY: takes a number.
    unsafe { sys::prctl(sys::PR_SET_PDEATHSIG, sys::SIGKILL as usize, 0) };
    if launcher_gone(control) {
        sys::exit_group(127);
    }
}

/// Whether the launcher, the parent of all these processes, is gone, so that those that depend on
/// it must end.
pub(crate) fn launcher_gone(control: &runtime_abi::control::Control) -> bool {
    control.outlive_launcher == 0 && sys::getppid() != control.launcher as i32
}

/// A new process begins with its creator's handlers, which are another program's.
fn reset_signals() {
    const IGNORE: usize = 1;
    for signal in 1..=64 {
        let mut now = sys::SigAction::default();
        // SAFETY: asks, and then sets the default, which is no code of ours.
        unsafe {
            sys::sigaction(signal, None, Some(&mut now));
            if now.handler > IGNORE {
                sys::sigaction(signal, Some(&sys::SigAction::default()), None);
            }
        }
    }
}

fn streams(control: &'static runtime_abi::control::Control, row: &ScavengerRow) -> Result<(), LoadFailure> {
    for (number, offset) in row.streams.iter().enumerate() {
        let Some(path) = page::string(control, *offset) else { continue };
        let flags = match number {
            0 => sys::O_RDONLY,
            _ if row.append & 1 << number != 0 => sys::O_WRONLY | sys::O_CREAT | sys::O_APPEND,
            _ => sys::O_WRONLY | sys::O_CREAT | sys::O_TRUNC,
        };
        let fd = sys::open(path, flags);
        if fd < 0 {
            return Err((failure::STREAMS, -fd as i32));
        }
        if fd as usize != number {
            sys::dup2(fd as i32, number as i32);
            sys::close(fd as i32);
        }
    }
    sys::close_from(3);
    Ok(())
}

/// The last part of a path.
fn name_of(path: &'static CStr) -> &'static CStr {
    let bytes = path.to_bytes_with_nul();
    let start = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    CStr::from_bytes_with_nul(&bytes[start..]).unwrap_or(path)
}

/// How large the stack is: what the resource limit says, within reason.
fn stack_size() -> usize {
    let [size, _] = sys::limit(sys::RLIMIT_STACK);
    (size as usize).clamp(1 << 20, 64 << 20).next_multiple_of(4096)
}

const GUARD: usize = 1 << 16;

fn program_stack(
    home: &'static Area,
    file: &CStr,
    image: &Image,
    interpreter: Option<&Image>,
) -> Result<usize, LoadFailure> {
    let (control, row) = (home.region().page(), home.scavenger());
    let size = stack_size();
    let flags = sys::MAP_NORESERVE | sys::MAP_STACK;
    let executable = if image.executable_stack { sys::PROT_EXEC } else { 0 };
    let protection = sys::PROT_READ | sys::PROT_WRITE | executable;
    // SAFETY: a new mapping, of which the upper part is made usable; below it stays a guard.
    let stack = unsafe {
        let at = memory(home, 0, size + GUARD, sys::PROT_NONE, flags).map_err(|e| (failure::MEMORY, e))?;
        memory(home, at + GUARD, size, protection, flags | sys::MAP_FIXED)
            .map_err(|e| (failure::MEMORY, e))?;
        core::slice::from_raw_parts_mut((at + GUARD) as *mut u8, size)
    };
    let strings = size_of_all(page::strings(control, row.argv, row.argc))
        + size_of_all(page::strings(control, row.envp, row.envc));
    let words = (row.argc + row.envc) as usize * 8;
    if strings + words > size / 2 {
        return Err((failure::ARGUMENTS, 0));
    }
    fill(stack, strings, control, row, file, image, interpreter).map_err(|StackFull| (failure::ARGUMENTS, 0))
}

/// Fills the stack, with `size` bytes of arguments and environment; returns the stack pointer.
fn fill(
    memory: &mut [u8],
    strings: usize,
    control: &'static runtime_abi::control::Control,
    row: &'static ScavengerRow,
    file: &CStr,
    image: &Image,
    interpreter: Option<&Image>,
) -> Result<usize, StackFull> {
    const LD_PRELOAD: &[u8] = b"LD_PRELOAD=";
    let preload = page::string(control, control.preload).filter(|_| interpreter.is_some());
    let is_preload = |text: &CStr| text.to_bytes().starts_with(LD_PRELOAD);
    let variables = || page::strings(control, row.envp, row.envc);
    let has_preload = variables().any(is_preload);
    let added = usize::from(preload.is_some() && !has_preload);

    // Strings lie above the words, which the stack pointer points to.
    let ours = match preload {
        None => 0,
        Some(ours) if has_preload => ours.count_bytes() + 1,
        Some(ours) => LD_PRELOAD.len() + ours.count_bytes() + 1,
    };
    let above = strings + ours + file.count_bytes() + 64;
    let (below, above) = memory.split_at_mut(memory.len().checked_sub(above).ok_or(StackFull)?);
    let mut text = Stack::new(above);
    text.bytes(&[0; 8])?;
    let name = text.bytes(file.to_bytes_with_nul())?;
    let mut random = [0_u8; 16];
    // SAFETY: the kernel writes the array.
    unsafe { sys::syscall(sys::nr::GETRANDOM, [random.as_mut_ptr() as usize, random.len(), 0, 0, 0, 0]) };
    let random = text.bytes(&random)?;
    let mut text = text.strings(strings + ours)?;

    let count = 1 + (row.argc as usize + 1) + (row.envc as usize + added + 1) + 2 * auxiliaries::MOST;
    let mut stack = Stack::new(below);
    let words = stack.words(count)?;
    let stack_pointer = words.as_ptr() as usize;
    let mut words = Words::new(words);
    words.push(u64::from(row.argc))?;
    for argument in page::strings(control, row.argv, row.argc) {
        words.push(text.push(&[argument.to_bytes()])?)?;
    }
    words.push(0)?;
    for variable in variables() {
        let at = match preload.filter(|_| is_preload(variable)) {
            None => text.push(&[variable.to_bytes()])?,
            Some(ours) => {
                text.push(&[LD_PRELOAD, ours.to_bytes(), b":", &variable.to_bytes()[LD_PRELOAD.len()..]])?
            }
        };
        words.push(at)?;
    }
    if let Some(ours) = preload.filter(|_| !has_preload) {
        words.push(text.push(&[LD_PRELOAD, ours.to_bytes()])?)?;
    }
    words.push(0)?;
    let known = [
        (stack::AT_PHDR, image.headers as u64),
        (stack::AT_PHENT, 56),
        (stack::AT_PHNUM, image.header_count as u64),
        (stack::AT_BASE, interpreter.map_or(0, |interpreter| interpreter.base as u64)),
        (stack::AT_ENTRY, image.entry as u64),
        (stack::AT_SECURE, 0),
        (stack::AT_RANDOM, random),
        (stack::AT_EXECFN, name),
    ];
    put_auxiliaries(&mut words, &known)?;
    Ok(stack_pointer)
}

/// The kernel's auxiliary vector for this process, with what is different for the new program.
fn put_auxiliaries(words: &mut Words<'_>, known: &[(u64, u64)]) -> Result<(), StackFull> {
    for (key, value) in known {
        words.push(*key)?;
        words.push(*value)?;
    }
    let mut fits = true;
    auxiliaries::each(|key, value| {
        if !known.iter().any(|(other, _)| *other == key) {
            fits &= words.push(key).is_ok() && words.push(value).is_ok();
        }
    });
    if !fits {
        return Err(StackFull);
    }
    words.push(stack::AT_NULL)?;
    words.push(0)
}
