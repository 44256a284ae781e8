//! What calls and jumps lead to that leave the module, or never come back.

use crate::container::elf::{self, Elf};
use crate::container::read::{Reader, number};
use crate::container::relocations::{Holds, Relocations};
use object::elf::{DT_STRTAB, DT_SYMTAB, SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, STT_FUNC};
use std::collections::HashSet;
use units::Svma;

pub(crate) struct Linkage<'c, 'd> {
    original: &'c Elf<'d>,
    relocations: &'c Relocations,
    /// Functions of the module that never return, by name.
    dead_ends: HashSet<u64>,
}

/// Where a linkage stub leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// To a function that may return.
    Returns,
    NeverReturns,
}

impl<'c, 'd> Linkage<'c, 'd> {
    pub(crate) fn of(original: &'c Elf<'d>, relocations: &'c Relocations) -> Self {
        let mut dead_ends = HashSet::new();
        for table in original.symbol_tables(SHT_SYMTAB).chain(original.symbol_tables(SHT_DYNSYM)) {
            for symbol in table.symbols.iter().filter(|symbol| symbol.st_type() == STT_FUNC) {
                let (name, is_global) = (table.name(symbol), symbol.st_bind() != STB_LOCAL);
                if elf::value(symbol) != 0 && is_dead_end(name) && is_reserved(name, is_global) {
                    dead_ends.insert(elf::value(symbol));
                }
            }
        }
        Self { original, relocations, dead_ends }
    }

    /// What the code at this address is a stub for: `[endbr64] [bnd] jmp [slot]`, the slot being
    /// filled at run time.
    pub(crate) fn stub(&self, address: u64) -> Option<Outside> {
        self.slot(self.stub_slot(address)?.0)
    }
    /// Where the stub at this address ends, if there is one.
    pub(crate) fn stub_end(&self, address: u64) -> Option<u64> {
        let (slot, end) = self.stub_slot(address)?;
        self.slot(slot).map(|_| end)
    }
    /// The slot of what looks like a stub, and where that ends.
    fn stub_slot(&self, address: u64) -> Option<(u64, u64)> {
        let bytes = self.original.bytes_from(Svma(address))?;
        let bytes = bytes.get(..16).unwrap_or(bytes);
        let rest = bytes.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(bytes);
        let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
        let rest = rest.strip_prefix(&[0xff, 0x25])?;
        let distance = Reader::new(rest, 0).signed(4)?;
        let end = address + (bytes.len() - rest.len() + 4) as u64;
        Some((end.wrapping_add_signed(distance), end))
    }
    /// The name of the function that a call leads to: of a stub at this address, or by the slot
    /// that it is.
    pub(crate) fn name_behind(&self, address: u64) -> Option<&'d [u8]> {
        let place = self.stub_slot(address).map_or(address, |(slot, _)| slot);
        match self.relocations.slot(place)? {
            Holds::Named(symbol) => self.name(symbol),
            _ => None,
        }
    }
    /// Whether what a call leads to (of a stub at this address, or by the slot that it is) has a
    /// name, by which it may be known to follow the ABI: the names of what clang's `regcall` passes
    /// arguments to say so.
    pub(crate) fn is_by_the_abi(&self, address: u64) -> bool {
        const REGCALL: &[u8] = b"__regcall";
        let name = self.name_behind(address);
        name.is_some_and(|name| !name.windows(REGCALL.len()).any(|part| part == REGCALL))
    }
    /// What a call or jump through the word at this address leads to, if it is a slot.
    pub(crate) fn slot(&self, place: u64) -> Option<Outside> {
        match self.relocations.slot(place)? {
            Holds::Named(symbol) if self.name(symbol).is_some_and(is_dead_end) => Some(Outside::NeverReturns),
            Holds::ThreadLocal => None,
            _ => Some(Outside::Returns),
        }
    }
    /// Whether what is found by this word is a thread-local variable: by a call that keeps all
    /// registers but rax.
    pub(crate) fn is_thread_local(&self, place: u64) -> bool {
        self.relocations.slot(place) == Some(Holds::ThreadLocal)
    }
    pub(crate) fn is_dead_end(&self, address: u64) -> bool {
        self.dead_ends.contains(&address)
    }

    fn name(&self, symbol: u32) -> Option<&'d [u8]> {
        let table = self.original.dynamic_value(DT_SYMTAB)?;
        let entry = self.original.bytes_from(Svma(table.checked_add(24 * u64::from(symbol))?))?;
        let strings = self.original.bytes_from(Svma(self.original.dynamic_value(DT_STRTAB)?))?;
        Reader::new(strings, number(entry, 0, 4)? as usize).text()
    }
}

/// Whether no program may call a function of its own by this name: it begins with an underscore, or
/// other files see it and it is the standards'.
fn is_reserved(name: &[u8], is_global: bool) -> bool {
    const STANDARD: &[&[u8]] =
        &[b"abort", b"exit", b"longjmp", b"pthread_exit", b"quick_exit", b"siglongjmp"];
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    name.starts_with(b"_") || is_global && STANDARD.contains(&name)
}

/// Functions that by the C, C++, POSIX or Linux standards' own words, or by that of the compiler's
/// runtime, never return.
fn is_dead_end(name: &[u8]) -> bool {
    const WHOLE: &[&[u8]] = &[
        b"_Exit",
        b"_Unwind_Resume",
        b"__assert",
        b"__assert_fail",
        b"__assert_perror_fail",
        b"__chk_fail",
        b"__cxa_bad_cast",
        b"__cxa_bad_typeid",
        b"__cxa_call_terminate",
        b"__cxa_call_unexpected",
        b"__cxa_rethrow",
        b"__cxa_throw",
        b"__cxa_throw_bad_array_new_length",
        b"__fortify_fail",
        b"__libc_fatal",
        b"__longjmp_chk",
        b"__pthread_unwind_next",
        b"__stack_chk_fail",
        b"_exit",
        b"_longjmp",
        b"_ZSt9terminatev",
        b"_ZSt10unexpectedv",
        b"abort",
        b"err",
        b"errx",
        b"exit",
        b"g_assertion_message_expr",
        b"longjmp",
        b"pthread_exit",
        b"quick_exit",
        b"siglongjmp",
        b"verr",
        b"verrx",
    ];
    let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
    let throws = name.starts_with(b"_ZSt") && name.get(6..).is_some_and(|rest| rest.starts_with(b"__throw_"));
    WHOLE.contains(&name) || throws || name.starts_with(b"_ZN4core9panicking")
}
