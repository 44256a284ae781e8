//! Calls that do not come back: by well-known names, and by what is seen of a function.
//!
//! Only the precision of the control-flow graph depends on this. The layout of code must be right
//! even if such a call returns.

use crate::code::insn::{Flow, Insn, index_behind};
use crate::module::Module;
use crate::unwind::needed;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use rayon::prelude::*;
use units::Svma;

/// Whether a function of this name never returns, in any library worth knowing. Names with a `*`
/// stand for all that begin so.
pub fn is_known_by_name(name: &[u8]) -> bool {
    const NAMES: &[&str] = &[
        "_Exit",
        "_Unwind_Resume",
        "_ZN4core9panicking*",
        "_ZSt9terminatev",
        "_ZSt10unexpectedv",
        "_ZSt??__throw_*",
        "__assert",
        "__assert_fail",
        "__assert_perror_fail",
        "__chk_fail",
        "__cxa_bad_cast",
        "__cxa_bad_typeid",
        "__cxa_call_terminate",
        "__cxa_call_unexpected",
        "__cxa_rethrow",
        "__cxa_throw",
        "__cxa_throw_bad_array_new_length",
        "__fortify_fail",
        "__libc_fatal",
        "__longjmp_chk",
        "__pthread_unwind_next",
        "__stack_chk_fail",
        "_exit",
        "_longjmp",
        "abort",
        "err",
        "errx",
        "exit",
        "g_assertion_message_expr",
        "longjmp",
        "pthread_exit",
        "quick_exit",
        "siglongjmp",
        "verr",
        "verrx",
    ];
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    NAMES.iter().any(|known| matches(known.as_bytes(), name))
}

/// The same of a function of the module itself. Programs may call functions of theirs as they like,
/// but for names that are reserved for libraries: those that begin with an underscore, and, for all
/// that other files see, the standards' own.
pub fn is_known_by_own_name(name: &[u8], is_global: bool) -> bool {
    const STANDARD: &[&[u8]] =
        &[b"abort", b"exit", b"longjmp", b"pthread_exit", b"quick_exit", b"siglongjmp"];
    let plain = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    is_known_by_name(name) && (plain.starts_with(b"_") || is_global && STANDARD.contains(&plain))
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (Some(b'*'), _) | (None, None) => true,
        (Some(b'?'), Some(_)) => matches(&pattern[1..], &name[1..]),
        (Some(a), Some(b)) if a == b => matches(&pattern[1..], &name[1..]),
        _ => false,
    }
}

/// Whether a call can only come back to what is no code of its function: it is the last instruction
/// there, in a frame that still stands, and behind it is padding or a function that begins without
/// a frame.
fn is_last_call(module: &Module<'_>, unit: usize, call: Insn) -> bool {
    let own = &module.units[unit];
    let is_bare = |unit: usize, at: u32| {
        let fde = &module.frames.fdes[module.units[unit].fde? as usize];
        let cie = &module.frames.cies[fde.cie as usize];
        let rows = needed::rows(module.frames.program(&cie.program), module.frames.program(&fde.program));
        Some(rows[rows.partition_point(|row| row.at <= u64::from(at)).saturating_sub(1)].is_bare)
    };
    if call.end() != own.size || is_bare(unit, call.at) != Some(false) {
        return false;
    }
    match module.unit_at(own.end()) {
        Some(next) => module.units[next].start == own.end() && is_bare(next, 0) == Some(true),
        None => is_padding(module.image.bytes_from(own.end()).unwrap_or(&[])),
    }
}

fn is_padding(bytes: &[u8]) -> bool {
    let code = &bytes[..bytes.len().min(15)];
    let insn = Decoder::new(64, code, DecoderOptions::NONE).decode();
    code.is_empty() || code.starts_with(&[0, 0]) || matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

/// Marks calls to functions of the module that have no way to return: no return instruction, no
/// jump out that could lead to one, nothing undecoded.
pub fn propagate(module: &mut Module<'_>) {
    let count = module.units.len();
    let decoded_module = &*module;
    let mut may_return: Vec<bool> = (0..count)
        .into_par_iter()
        .with_min_len(256)
        .map(|index| {
            let decoded = &decoded_module.decoded[index];
            let ends = |flow| decoded.insns.iter().any(|insn| insn.flow == flow);
            let falls_off = |(at, insn): (usize, &Insn)| {
                insn.flow.falls_through()
                    && index_behind(&decoded.insns, at).is_none()
                    && !(insn.flow.is_call() && is_last_call(decoded_module, index, *insn))
            };
            ends(Flow::Return)
                || !decoded.open_jumps.is_empty()
                || decoded.insns.iter().enumerate().any(falls_off)
                || decoded.insns.is_empty()
        })
        .collect();
    // A jump out may return if what it leads to may. Jumps' sources, by their targets:
    let mut jumps: Vec<(usize, usize)> = Vec::new();
    for (index, may_return) in may_return.iter_mut().enumerate() {
        for &target in &module.decoded[index].jumps_out {
            match module.unit_at(target) {
                Some(to) => jumps.push((to, index)),
                None => *may_return |= !module.is_known_not_to_return(target),
            }
        }
    }
    jumps.sort_unstable();
    let mut work: Vec<usize> = (0..count).filter(|&index| may_return[index]).collect();
    while let Some(to) = work.pop() {
        let first = jumps.partition_point(|jump| jump.0 < to);
        for &(_, from) in jumps[first..].iter().take_while(|jump| jump.0 == to) {
            if !std::mem::replace(&mut may_return[from], true) {
                work.push(from);
            }
        }
    }
    let returns = |target: Svma| match module.unit_at(target) {
        Some(unit) => module.units[unit].start != target || may_return[unit],
        None => true,
    };
    let mut marks = Vec::new();
    for (unit, decoded) in module.decoded.iter().enumerate() {
        if decoded.calls.iter().all(|&target| returns(target)) {
            continue;
        }
        let code = module.code(unit);
        for (index, insn) in decoded.insns.iter().enumerate() {
            if insn.flow == Flow::Call32
                && insn.target(module.units[unit].start, code).is_some_and(|target| !returns(target))
            {
                marks.push((unit, index));
            }
        }
    }
    for (unit, index) in marks {
        module.decoded[unit].insns[index].never_returns = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_own_functions() {
        for (name, is_global) in [("__stack_chk_fail", false), ("exit", true), ("longjmp@@GLIBC_2.2.5", true)]
        {
            assert!(is_known_by_own_name(name.as_bytes(), is_global), "{name}");
        }
        for (name, is_global) in [("err", true), ("verrx", true), ("exit", false), ("_start", true)] {
            assert!(!is_known_by_own_name(name.as_bytes(), is_global), "{name}");
        }
    }

    #[test]
    fn names_with_versions_and_wildcards() {
        for name in
            ["abort", "exit@GLIBC_2.2.5", "_ZSt20__throw_length_errorPKc", "_ZN4core9panicking5panic17h0E"]
        {
            assert!(is_known_by_name(name.as_bytes()), "{name}");
        }
        for name in ["aborted", "exi", "", "__cxa_throwing", "_ZSt4sortIPiEvT_S1_"] {
            assert!(!is_known_by_name(name.as_bytes()), "{name}");
        }
    }
}
