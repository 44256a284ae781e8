//! Calls that do not come back: by well-known names, and by what is seen of a function.
//!
//! Only the precision of the control-flow graph hangs on this. Whoever lays out code must still be right when such a
//! call does return.

use crate::insn::Flow;
use crate::module::Module;
use units::Svma;

/// Whether a function of this name never returns, in any library worth knowing. Names with a `*` stand for all that
/// begin so.
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

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (Some(b'*'), _) | (None, None) => true,
        (Some(b'?'), Some(_)) => matches(&pattern[1..], &name[1..]),
        (Some(a), Some(b)) if a == b => matches(&pattern[1..], &name[1..]),
        _ => false,
    }
}

/// Marks calls to functions of the module that have no way to return: no return instruction, no jump out that could
/// lead to one, nothing undecoded.
pub fn propagate(module: &mut Module<'_>) {
    let count = module.units.len();
    let mut may_return: Vec<bool> = (0..count)
        .map(|index| {
            let decoded = &module.decoded[index];
            let ends = |flow| decoded.insns.iter().any(|insn| insn.flow == flow);
            let falls_off = decoded.insns.iter().any(|insn| {
                insn.flow.falls_through()
                    && !insn.flow.is_call()
                    && crate::insn::index_at(&decoded.insns, insn.end()).is_none()
            });
            ends(Flow::Return) || !decoded.open_jumps.is_empty() || falls_off || decoded.insns.is_empty()
        })
        .collect();
    // A jump out may return if what it leads to may.
    loop {
        let mut changed = false;
        for index in 0..count {
            if may_return[index] {
                continue;
            }
            let leads_to_return =
                module.decoded[index].jumps_out.iter().any(|&target| match module.unit_at(target) {
                    Some(unit) => may_return[unit],
                    None => !module.is_known_not_to_return(target),
                });
            if leads_to_return {
                may_return[index] = true;
                changed = true;
            }
        }
        if !changed {
            break;
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
