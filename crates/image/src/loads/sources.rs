//! Where an address comes from: the definitions that reach a use inside a loop, followed back
//! through copies and arithmetic to loads, to what the loop does not change, and to themselves.
//!
//! Values kept in the stack frame or at a fixed address are followed as registers are, so that code
//! without optimisation reads the same. Nothing here has to be right for a program to stay right:
//! it only guesses what misses.

use super::place::{Loaded, Place};
use super::reaching::Region;
use super::unit::Unit;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeSet, HashSet};

/// What an address hangs on.
#[expect(clippy::struct_excessive_bools, reason = "independent kinds of what may come in")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Loads whose value gets into it, by instruction.
    pub loads: BTreeSet<u32>,
    /// It hangs on its own value of a round before, by adding.
    pub steps: bool,
    /// By more than adding and scaling: a hash, a random number.
    pub mixed: bool,
    /// A value from outside the loop.
    pub outside: bool,
    /// Something that cannot be followed: what a call returned, a vector's lane.
    pub unknown: bool,
}

impl Region<'_> {
    /// What the value of a place before an instruction hangs on.
    pub fn of(&self, place: Place, before: u32) -> Sources {
        let mut walk = Walk::default();
        self.follow(place, before, false, &mut walk);
        walk.sources
    }

    fn follow(&self, place: Place, before: u32, mixed: bool, walk: &mut Walk) {
        /// Addresses are short sums; what is longer tells nothing.
        const LONGEST: usize = 200;
        let reaching = self.reaching(place, before);
        walk.sources.outside |= reaching.from_outside;
        for &at in &reaching.definitions {
            let step = (at, place, mixed);
            if walk.path.iter().any(|&(on_path, of, _)| (on_path, of) == (at, place)) {
                // Back where it was: a value that is made from itself.
                walk.sources.steps = true;
                walk.sources.mixed |= mixed;
                continue;
            }
            if !walk.done.insert(step) {
                continue;
            }
            if walk.done.len() > LONGEST {
                walk.sources.unknown = true;
                return;
            }
            match transfer(self.unit, at, place) {
                Transfer::Loads => {
                    walk.sources.loads.insert(at);
                    walk.sources.mixed |= mixed;
                }
                Transfer::Constant => walk.sources.outside = true,
                Transfer::Unknown => walk.sources.unknown = true,
                Transfer::From { places, mixes } => {
                    walk.path.push(step);
                    for from in places {
                        self.follow(from, at, mixed || mixes, walk);
                    }
                    walk.path.pop();
                }
            }
        }
    }
}

#[derive(Default)]
struct Walk {
    path: Vec<(u32, Place, bool)>,
    done: HashSet<(u32, Place, bool)>,
    sources: Sources,
}

/// What an instruction puts into a place.
enum Transfer {
    /// What it loads, from somewhere that is not followed like a register.
    Loads,
    Constant,
    From {
        places: Vec<Place>,
        mixes: bool,
    },
    Unknown,
}

fn transfer(unit: &Unit, at: u32, place: Place) -> Transfer {
    let instruction = &unit.instructions[at as usize];
    if let Place::Slot(..) | Place::Fixed(_) = place {
        // A store to it, or a sum made in it.
        let mut places: Vec<Place> = source_operand(instruction).into_iter().collect();
        if unit.access(at).is_some_and(|access| access.read) {
            places.push(place);
        }
        let understood = !places.is_empty() || instruction.op_count() == 2 && is_immediate(instruction, 1);
        return if understood { derived(places, false) } else { Transfer::Unknown };
    }
    let loaded = unit.loads_from(at);
    let mut places: Vec<Place> = Vec::new();
    for index in 0..instruction.op_count() {
        if instruction.op_kind(index) == OpKind::Register && reads(instruction, index) {
            places.extend(Place::of(instruction.op_register(index)));
        }
    }
    if instruction.mnemonic() == Mnemonic::Cdqe {
        places.push(Place::General(0));
    }
    let mixes = match instruction.mnemonic() {
        Mnemonic::Mov
        | Mnemonic::Movzx
        | Mnemonic::Movsx
        | Mnemonic::Movsxd
        | Mnemonic::Movd
        | Mnemonic::Movq
        | Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::Inc
        | Mnemonic::Dec
        | Mnemonic::Shl
        | Mnemonic::Sal
        | Mnemonic::Cdqe
        | Mnemonic::Xadd
        | Mnemonic::Xchg
        | Mnemonic::Cmova
        | Mnemonic::Cmovae
        | Mnemonic::Cmovb
        | Mnemonic::Cmovbe
        | Mnemonic::Cmove
        | Mnemonic::Cmovg
        | Mnemonic::Cmovge
        | Mnemonic::Cmovl
        | Mnemonic::Cmovle
        | Mnemonic::Cmovne
        | Mnemonic::Cmovno
        | Mnemonic::Cmovnp
        | Mnemonic::Cmovns
        | Mnemonic::Cmovo
        | Mnemonic::Cmovp
        | Mnemonic::Cmovs => false,
        // Clearing tag bits or rounding down keeps a pointer what it is; a small mask makes an
        // index.
        Mnemonic::And => !is_negative_mask(instruction),
        Mnemonic::Lea => {
            places.clear();
            places.extend(Place::of(instruction.memory_base()));
            places.extend(Place::of(instruction.memory_index()));
            return derived(places, false);
        }
        Mnemonic::Xor | Mnemonic::Pxor if is_zeroing(instruction) => return Transfer::Constant,
        Mnemonic::Imul if instruction.op_count() == 3 => false, // an index times the size of what it selects
        Mnemonic::Imul
        | Mnemonic::Mul
        | Mnemonic::Mulx
        | Mnemonic::Xor
        | Mnemonic::Or
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rorx
        | Mnemonic::Div
        | Mnemonic::Idiv
        | Mnemonic::Crc32
        | Mnemonic::Bswap
        | Mnemonic::Not
        | Mnemonic::Neg
        | Mnemonic::Shrx
        | Mnemonic::Shlx
        | Mnemonic::Sarx
        | Mnemonic::Bzhi
        | Mnemonic::Bextr
        | Mnemonic::Pext
        | Mnemonic::Tzcnt
        | Mnemonic::Bsf => true,
        _ => return Transfer::Unknown,
    };
    match loaded {
        // `add rax, [rbx]`: both count, and the load is the stronger sign.
        Loaded::Elsewhere => return Transfer::Loads,
        Loaded::Followed(from) => places.push(from),
        Loaded::Nothing => {}
    }
    if matches!(instruction.mnemonic(), Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Div | Mnemonic::Idiv)
        && instruction.op_count() == 1
    {
        places.push(Place::General(0));
    }
    derived(places, mixes)
}

fn derived(places: Vec<Place>, mixes: bool) -> Transfer {
    if places.is_empty() { Transfer::Constant } else { Transfer::From { places, mixes } }
}

fn source_operand(instruction: &Instruction) -> Option<Place> {
    let sums = [Mnemonic::Mov, Mnemonic::Add, Mnemonic::Sub];
    (sums.contains(&instruction.mnemonic()) && instruction.op1_kind() == OpKind::Register)
        .then(|| Place::of(instruction.op1_register()))
        .flatten()
}

/// Whether an operand's register is read, as far as data flow through general registers goes.
fn reads(instruction: &Instruction, operand: u32) -> bool {
    let only_written = matches!(
        instruction.mnemonic(),
        Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Movd
            | Mnemonic::Movq
    ) || instruction.op_count() == 3 && instruction.mnemonic() == Mnemonic::Imul;
    operand > 0 || !only_written
}

fn is_immediate(instruction: &Instruction, operand: u32) -> bool {
    !matches!(instruction.op_kind(operand), OpKind::Register | OpKind::Memory)
}

fn is_negative_mask(instruction: &Instruction) -> bool {
    is_immediate(instruction, 1) && (instruction.immediate(1) as i64) < 0
}

fn is_zeroing(instruction: &Instruction) -> bool {
    instruction.op_count() >= 2
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
        && instruction.op0_register() != Register::None
}
