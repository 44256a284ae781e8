//! What calls lead to.

use super::view::{Foreign, GroupViews};
use super::{Known, Summary, Work};
use crate::code::groups::Groups;
use crate::code::insn::Insn;
use crate::code::prototypes::Convention;
use crate::code::regs::RegSet;
use crate::elf::imports::Import;
use crate::flow::order::bottom_up;
use crate::module::Module;
use rayon::prelude::*;

/// The summaries of all units: callees first, and functions that call each other until nothing changes. Those begin with
/// the best that could be hoped for and only get worse, so what is left in the end holds for all of them together.
pub(super) fn summaries(views: &GroupViews<'_, '_>, known: Known) -> Vec<Summary> {
    let GroupViews { module, groups, .. } = *views;
    let calls = call_graph(module, groups);
    let mut summaries = vec![Summary::UNKNOWN; module.units.len()];
    let mut changed = vec![false; groups.members.len()];
    for level in bottom_up(&calls) {
        for &unit in level.iter().flat_map(|&group| &groups.members[group as usize]) {
            summaries[unit as usize] = Summary::HOPED;
        }
        let mut waiting = level.clone();
        while !waiting.is_empty() {
            let found: Vec<(u32, Vec<(u32, Summary)>)> = waiting
                .par_iter()
                .with_min_len(8)
                .map(|&group| {
                    let work = Work::new(views, group as usize, &summaries).seeing();
                    (group, work.knowing(known).summaries())
                })
                .collect();
            for (group, found) in found {
                for (unit, summary) in found {
                    changed[group as usize] |= summaries[unit as usize] != summary;
                    summaries[unit as usize] = summary;
                }
            }
            let meets = |group: &u32| calls[*group as usize].iter().any(|&callee| changed[callee as usize]);
            waiting = level.iter().copied().filter(meets).collect();
            for &group in &level {
                changed[group as usize] = false;
            }
        }
    }
    summaries
}

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

/// Whether nobody knows of which convention what is called is. Compilers' names tell those that arguments of clang's
/// `regcall` are for.
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

/// `call [rax]` where rax was just computed relative to the code, or anywhere in a module with descriptors of thread-local
/// variables (rax may come from a register that was computed long before): such a descriptor's function changes nothing but rax.
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

/// `mov rsp, [memory]`: what returns after that may return anywhere, with anything in any register, as `setcontext` does.
pub(super) fn loads_stack_pointer(bytes: &[u8]) -> bool {
    matches!(bytes, [0x48..=0x4f, 0x8b, modrm, ..] if modrm >> 3 & 7 == 4 && modrm >> 6 != 3 && bytes[0] & 4 == 0)
}
