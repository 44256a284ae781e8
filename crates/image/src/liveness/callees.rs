//! What calls lead to.

use super::step::Foreign;
use crate::code::groups::Groups;
use crate::code::insn::Insn;
use crate::code::prototypes::Convention;
use crate::code::regs::RegSet;
use crate::elf::imports::Import;
use crate::module::Module;
use rayon::prelude::*;

/// For each group, the groups it calls or jumps to.
pub(super) fn call_graph(module: &Module<'_>, groups: &Groups) -> Vec<Vec<u32>> {
    groups
        .members
        .par_iter()
        .map(|members| {
            let mut callees: Vec<u32> = Vec::new();
            for &unit in members {
                let decoded = &module.decoded[unit as usize];
                let targets = decoded.calls.iter().chain(&decoded.jumps_out);
                callees.extend(
                    targets.filter_map(|&to| module.unit_at(to)).map(|callee| groups.of_unit[callee]),
                );
            }
            callees.sort_unstable();
            callees.dedup();
            callees
        })
        .collect()
}

impl Foreign {
    /// A call of what is imported, or by a pointer.
    pub(super) fn of(import: Option<Import<'_>>) -> Self {
        let by_another = is_by_pointer(import).then_some(RegSet::ALL - RegSet::ARITHMETIC_FLAGS);
        Self { by: convention(import), by_another, keeps: RegSet::EMPTY }
    }
}

/// Whether nobody knows of which convention what is called is. Compilers' names tell those that
/// arguments of clang's `regcall` are for.
fn is_by_pointer(import: Option<Import<'_>>) -> bool {
    const REGCALL: &[u8] = b"__regcall";
    match import {
        Some(Import::Named(name)) => name.windows(REGCALL.len()).any(|part| part == REGCALL),
        _ => true,
    }
}

/// How a function of another module is called.
fn convention(import: Option<Import<'_>>) -> Convention {
    match import {
        Some(Import::Named(name)) => Convention::of(name),
        _ => Convention::ANY,
    }
}

/// `call [rax]` where rax was just computed relative to the code, or anywhere in a module with
/// descriptors of thread-local variables (rax may come from a register that was computed long
/// before): such a descriptor's function changes nothing but rax.
pub(super) fn is_tls_descriptor_call(module: &Module<'_>, insns: &[Insn], index: usize, code: &[u8]) -> bool {
    let bytes = insns[index].bytes(code);
    let just_computed = || {
        insns[..index]
            .iter()
            .rev()
            .take(6)
            .any(|insn| insn.rip_displacement != 0 && matches!(insn.bytes(code), [0x48, 0x8d, 0x05, ..]))
    };
    bytes.ends_with(&[0xff, 0x10]) && (module.has_tls_descriptors || just_computed())
}

/// `mov rsp, [memory]`: what returns after that may return anywhere, with anything in any register,
/// as `setcontext` does.
pub(super) fn loads_stack_pointer(bytes: &[u8]) -> bool {
    matches!(bytes, [0x48..=0x4f, 0x8b, modrm, ..] if modrm >> 3 & 7 == 4 && modrm >> 6 != 3 && bytes[0] & 4 == 0)
}
