//! What calls lead to.

use super::{Kind, Work};
use crate::groups::Groups;
use crate::imports::Import;
use crate::insn::Insn;
use crate::module::Module;
use crate::prototypes::Convention;
use rayon::prelude::*;
use std::collections::BTreeSet;
use units::Svma;

/// For each group, the groups it calls or jumps to.
pub(super) fn call_graph(module: &Module<'_>, groups: &Groups) -> Vec<Vec<u32>> {
    groups
        .members
        .par_iter()
        .map(|members| {
            let mut callees = BTreeSet::new();
            for &unit in members {
                let decoded = &module.decoded[unit as usize];
                for &target in decoded.calls.iter().chain(&decoded.jumps_out) {
                    if let Some(callee) = module.unit_at(target) {
                        callees.insert(groups.of_unit[callee]);
                    }
                }
            }
            callees.into_iter().collect()
        })
        .collect()
}

impl Work<'_, '_> {
    pub(super) fn direct_call(&self, insn: Insn, start: Svma, code: &[u8]) -> Kind {
        let Some(target) = insn.target(start, code) else { return Kind::Unknown };
        let stub = self.module.imports.stub(target);
        if stub.is_some() {
            return Kind::Foreign(convention(stub));
        }
        match self.module.unit_at(target) {
            // Nobody can check what is not in the unwind table.
            Some(unit)
                if self.module.units[unit].start == target && self.module.units[unit].fde.is_some() =>
            {
                Kind::Local(unit as u32)
            }
            _ => Kind::Unknown,
        }
    }
}

/// How a function of another module is called.
pub(super) fn convention(import: Option<Import<'_>>) -> Convention {
    match import {
        Some(Import::Named(name)) => Convention::of(name),
        _ => Convention::ANY,
    }
}

/// `call [rax]` where rax was just computed relative to the code: a thread-local variable's descriptor, whose function
/// changes nothing but rax.
pub(super) fn is_tls_descriptor_call(insns: &[Insn], index: usize, code: &[u8]) -> bool {
    let bytes = insns[index].bytes(code);
    bytes.ends_with(&[0xff, 0x10])
        && insns[..index]
            .iter()
            .rev()
            .take(6)
            .any(|insn| insn.rip_displacement != 0 && matches!(insn.bytes(code), [0x48, 0x8d, 0x05, ..]))
}
