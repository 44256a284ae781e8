//! Symbolic values of registers along a straight path: just enough arithmetic to recognise how
//! compilers compute the target of a `switch`.
//!
//! Terms are hash-consed, so equal terms have equal numbers. Anything not understood becomes a
//! fresh unknown.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::HashMap;

/// The number of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// What a register held where the path starts.
    Initial(u8),
    Unknown(u32),
    Constant(u64),
    /// The low bits, zero-extended.
    Zext(Term, u8),
    /// The low bits, sign-extended.
    Sext(Term, u8),
    Add(Term, Term),
    Offset(Term, i64),
    Scaled(Term, u8),
    Masked(Term, u32),
    /// A number of bits of memory, zero-extended; the last number counts the writes before.
    Load(Term, u8, u32),
}

/// The state along a path.
pub struct Path {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Term>,
    registers: [Term; 16],
    writes: u32,
    /// The last comparison with a constant whose flags still stand.
    compared: Option<(Term, u64)>,
    /// `x <= n` along this path.
    pub bounds: Vec<(Term, u64)>,
    /// The instruction (by its address) that loaded a term; `None` if several did.
    pub loaded_by: HashMap<Term, Option<u64>>,
    factory: InstructionInfoFactory,
}

impl Default for Path {
    fn default() -> Self {
        Self::starting_with(&[None; 16])
    }
}

impl Path {
    /// A path at whose start some registers hold known constants.
    pub fn starting_with(known: &[Option<u64>; 16]) -> Self {
        let mut path = Self {
            nodes: Vec::new(),
            numbers: HashMap::new(),
            registers: [Term(0); 16],
            writes: 0,
            compared: None,
            bounds: Vec::new(),
            loaded_by: HashMap::new(),
            factory: InstructionInfoFactory::new(),
        };
        for (register, constant) in known.iter().enumerate() {
            let node = constant.map_or(Node::Initial(register as u8), Node::Constant);
            path.registers[register] = path.term(node);
        }
        path
    }

    pub fn node(&self, term: Term) -> Node {
        self.nodes[term.0 as usize]
    }
    pub fn register(&self, number: u8) -> Term {
        self.registers[usize::from(number)]
    }

    fn term(&mut self, node: Node) -> Term {
        let next = Term(self.nodes.len() as u32);
        let nodes = &mut self.nodes;
        *self.numbers.entry(node).or_insert_with(|| {
            nodes.push(node);
            next
        })
    }
    fn unknown(&mut self) -> Term {
        let count = self.nodes.len() as u32;
        self.term(Node::Unknown(count))
    }

    pub fn zext(&mut self, term: Term, bits: u8) -> Term {
        if bits >= 64 || self.significant_bits(term) <= bits {
            return term;
        }
        let mask = (1u64 << bits) - 1;
        match self.node(term) {
            Node::Constant(value) => self.term(Node::Constant(value & mask)),
            Node::Zext(inner, wide) if wide >= bits => self.zext(inner, bits),
            Node::Sext(inner, wide) if wide >= bits => self.zext(inner, bits),
            Node::Load(address, wide, writes) if wide > bits => {
                // The low bytes in memory come first.
                self.term(Node::Load(address, bits, writes))
            }
            Node::Offset(inner, offset) => {
                let shift = 64 - u32::from(bits);
                let offset = offset.wrapping_shl(shift) >> shift;
                let inner = match self.node(inner) {
                    Node::Zext(base, wide) | Node::Sext(base, wide) if wide >= bits => base,
                    _ => inner,
                };
                let sum = self.offset(inner, offset);
                self.term(Node::Zext(sum, bits))
            }
            _ => self.term(Node::Zext(term, bits)),
        }
    }
    pub fn sext(&mut self, term: Term, bits: u8) -> Term {
        if bits >= 64 || self.significant_bits(term) < bits {
            return term;
        }
        match self.node(term) {
            Node::Constant(value) => {
                let shift = 64 - u32::from(bits);
                self.term(Node::Constant(((value << shift) as i64 >> shift) as u64))
            }
            Node::Zext(inner, wide) if wide >= bits => self.sext(inner, bits),
            _ => self.term(Node::Sext(term, bits)),
        }
    }
    fn offset(&mut self, term: Term, offset: i64) -> Term {
        match self.node(term) {
            _ if offset == 0 => term,
            Node::Constant(value) => self.term(Node::Constant(value.wrapping_add_signed(offset))),
            Node::Offset(inner, more) => self.offset(inner, more.wrapping_add(offset)),
            _ => self.term(Node::Offset(term, offset)),
        }
    }
    fn add(&mut self, a: Term, b: Term) -> Term {
        match (self.node(a), self.node(b)) {
            (Node::Constant(value), _) => self.offset(b, value as i64),
            (_, Node::Constant(value)) => self.offset(a, value as i64),
            (Node::Offset(inner, offset), _) => {
                let sum = self.add(inner, b);
                self.offset(sum, offset)
            }
            (_, Node::Offset(inner, offset)) => {
                let sum = self.add(a, inner);
                self.offset(sum, offset)
            }
            _ if a == b => self.scaled(a, 2),
            _ => self.term(Node::Add(a.min_by_number(b), a.max_by_number(b))),
        }
    }
    fn scaled(&mut self, term: Term, factor: u8) -> Term {
        match self.node(term) {
            _ if factor == 1 => term,
            Node::Constant(value) => self.term(Node::Constant(value.wrapping_mul(u64::from(factor)))),
            Node::Scaled(inner, more) if more <= 8 && factor <= 8 => self.scaled(inner, more * factor),
            Node::Offset(inner, offset) => {
                let inner = self.scaled(inner, factor);
                self.offset(inner, offset.wrapping_mul(i64::from(factor)))
            }
            _ => self.term(Node::Scaled(term, factor)),
        }
    }

    /// How many low bits of a value may be set.
    pub fn significant_bits(&self, term: Term) -> u8 {
        match self.node(term) {
            Node::Constant(value) => 64 - value.leading_zeros() as u8,
            Node::Zext(_, bits) | Node::Load(_, bits, _) => bits,
            Node::Masked(_, mask) => 32 - mask.leading_zeros() as u8,
            _ => 64,
        }
    }

    fn read_register(&mut self, register: Register) -> Option<Term> {
        let bits = (register.size() * 8) as u8;
        if !register.is_gpr() || matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
        {
            return None;
        }
        let term = self.registers[register.full_register().number()];
        Some(self.zext(term, bits))
    }
    fn write_register(&mut self, register: Register, value: Term) {
        let number = register.full_register().number();
        let whole = match register.size() {
            8 => value,
            4 => self.zext(value, 32),
            _ => self.unknown(),
        };
        self.registers[number] = whole;
    }

    /// The address of the memory operand.
    pub fn address(&mut self, instruction: &Instruction) -> Option<Term> {
        if !matches!(
            instruction.segment_prefix(),
            Register::None | Register::DS | Register::CS | Register::SS | Register::ES
        ) {
            return None;
        }
        if instruction.is_ip_rel_memory_operand() {
            return Some(self.term(Node::Constant(instruction.ip_rel_memory_address())));
        }
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        if [base, index].iter().any(|r| *r != Register::None && r.size() != 8) {
            return None;
        }
        let mut sum = self.term(Node::Constant(instruction.memory_displacement64()));
        if index != Register::None {
            let index = self.read_register(index)?;
            let scaled = self.scaled(index, instruction.memory_index_scale() as u8);
            sum = self.add(sum, scaled);
        }
        if base != Register::None {
            let base = self.read_register(base)?;
            sum = self.add(sum, base);
        }
        Some(sum)
    }

    /// The value of an operand that is read.
    pub fn operand(&mut self, instruction: &Instruction, operand: u32) -> Option<Term> {
        match instruction.op_kind(operand) {
            OpKind::Register => self.read_register(instruction.op_register(operand)),
            OpKind::Memory => {
                let bits = instruction.memory_size().size() * 8;
                if !matches!(bits, 8 | 16 | 32 | 64) {
                    return None;
                }
                let address = self.address(instruction)?;
                let term = self.term(Node::Load(address, bits as u8, self.writes));
                let by = Some(instruction.ip());
                self.loaded_by
                    .entry(term)
                    .and_modify(|old| {
                        if *old != by {
                            *old = None;
                        }
                    })
                    .or_insert(by);
                Some(term)
            }
            OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32 => None,
            _ => Some(instruction.immediate(operand)).map(|value| self.term(Node::Constant(value))),
        }
    }

    /// Carries the state over one instruction.
    pub fn step(&mut self, instruction: &Instruction) {
        let result = self.result(instruction);
        let compared = self.comparison(instruction);
        if compared.is_some() || instruction.rflags_modified() != 0 {
            self.compared = compared;
        }
        let is_call = matches!(
            instruction.flow_control(),
            iced_x86::FlowControl::Call | iced_x86::FlowControl::IndirectCall
        );
        if is_call {
            self.compared = None;
            self.writes += 1;
            // What a called function may change by the ABI. Compilers rely on no less.
            for register in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
                self.registers[register] = self.unknown();
            }
            return;
        }
        let mut changed: [bool; 16] = [false; 16];
        let mut wrote = false;
        let info = self.factory.info(instruction);
        let writes = |access| {
            matches!(
                access,
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        for used in info.used_registers() {
            if writes(used.access()) && used.register().is_gpr() {
                changed[used.register().full_register().number()] = true;
            }
        }
        for used in info.used_memory() {
            wrote |= writes(used.access());
        }
        for (register, changed) in changed.into_iter().enumerate() {
            if changed {
                self.registers[register] = self.unknown();
            }
        }
        if wrote {
            self.writes += 1;
        }
        if let Some((register, value)) = result {
            self.write_register(register, value);
        }
    }

    /// What register gets which value, if the operation is understood.
    fn result(&mut self, instruction: &Instruction) -> Option<(Register, Term)> {
        match instruction.mnemonic() {
            Mnemonic::Cdqe => {
                let low = self.registers[0];
                return Some((Register::RAX, self.sext(low, 32)));
            }
            _ if instruction.op_count() == 0
                || instruction.op0_kind() != OpKind::Register
                || !instruction.op0_register().is_gpr()
                || instruction.op0_register().size() < 4 =>
            {
                return None;
            }
            _ => {}
        }
        let bits = (instruction.op0_register().size() * 8) as u8;
        let value = match instruction.mnemonic() {
            Mnemonic::Cmova | Mnemonic::Cmovae | Mnemonic::Cmovb | Mnemonic::Cmovbe => {
                self.chosen(instruction)?
            }
            Mnemonic::Mov | Mnemonic::Movzx => self.operand(instruction, 1)?,
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let narrow = match instruction.op1_kind() {
                    OpKind::Register => instruction.op1_register().size(),
                    _ => instruction.memory_size().size(),
                };
                let value = self.operand(instruction, 1)?;
                self.sext(value, (narrow * 8) as u8)
            }
            Mnemonic::Lea => self.address(instruction)?,
            Mnemonic::Xor | Mnemonic::Sub
                if instruction.op1_kind() == OpKind::Register
                    && instruction.op0_register() == instruction.op1_register() =>
            {
                self.term(Node::Constant(0))
            }
            Mnemonic::Add => {
                let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
                self.add(a, b)
            }
            Mnemonic::Sub => {
                let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
                let Node::Constant(value) = self.node(b) else { return None };
                self.offset(a, (value as i64).wrapping_neg())
            }
            Mnemonic::Inc | Mnemonic::Dec => {
                let value = self.operand(instruction, 0)?;
                self.offset(value, if instruction.mnemonic() == Mnemonic::Inc { 1 } else { -1 })
            }
            Mnemonic::And => {
                let (a, b) = (self.operand(instruction, 0)?, self.operand(instruction, 1)?);
                let Node::Constant(value) = self.node(b) else { return None };
                let value = if bits == 32 { value & 0xffff_ffff } else { value };
                // A mask with its top bit set would also keep the sign bits of a 64-bit immediate.
                let mask = u32::try_from(value).ok().filter(|mask| mask >> 31 == 0)?;
                self.term(Node::Masked(a, mask))
            }
            Mnemonic::Shl => {
                let a = self.operand(instruction, 0)?;
                let Node::Constant(by @ 0..=3) = self.operand(instruction, 1).map(|b| self.node(b))? else {
                    return None;
                };
                self.scaled(a, 1 << by)
            }
            _ => return None,
        };
        Some((instruction.op0_register(), value))
    }

    /// What a conditional move leaves, where both values it chooses from are bounded: as rustc
    /// takes the number of a variant that is kept in a field of another one, and that other one's
    /// number for all that are none.
    fn chosen(&mut self, instruction: &Instruction) -> Option<Term> {
        let mut largest = 0;
        for (operand, moved) in [(0, false), (1, true)] {
            let value = self.operand(instruction, operand)?;
            let known = self.bounds.len();
            self.leave(instruction, moved);
            let bound = self.bound(value);
            self.bounds.truncate(known);
            largest = largest.max(bound?);
        }
        let chosen = self.unknown();
        self.bounds.push((chosen, largest));
        Some(chosen)
    }

    fn comparison(&mut self, instruction: &Instruction) -> Option<(Term, u64)> {
        if instruction.mnemonic() != Mnemonic::Cmp {
            return None;
        }
        let a = self.operand(instruction, 0)?;
        let b = self.operand(instruction, 1)?;
        let Node::Constant(value) = self.node(b) else { return None };
        let bits = match instruction.op0_kind() {
            OpKind::Register => instruction.op0_register().size() * 8,
            _ => instruction.memory_size().size() * 8,
        };
        let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
        Some((a, value))
    }

    /// Notes what is known after leaving by this conditional jump, taken or not.
    pub fn leave(&mut self, branch: &Instruction, taken: bool) {
        use iced_x86::ConditionCode as Cc;
        let Some((term, value)) = self.compared else { return };
        let least = match (branch.condition_code(), taken) {
            (Cc::ae, true) | (Cc::b, false) => Some(value),
            (Cc::a, true) | (Cc::be, false) => value.checked_add(1),
            _ => None,
        };
        let bits = match self.significant_bits(term) {
            0..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            _ => 64,
        };
        let greatest = u64::MAX >> (64 - bits);
        if let Some(least) = least.filter(|&least| least <= greatest && bits >= 32) {
            // x >= n means that x - n does not wrap around.
            let above = self.offset(term, (least as i64).wrapping_neg());
            let above = self.zext(above, bits);
            self.bounds.push((above, greatest - least));
        }
        let bound = match (branch.condition_code(), taken) {
            (Cc::a | Cc::ne, false) | (Cc::be | Cc::e, true) => Some(value),
            (Cc::ae, false) | (Cc::b, true) => value.checked_sub(1),
            _ => None,
        };
        self.bounds.extend(bound.map(|bound| (term, bound)));
    }

    /// Whether a comparison on this path, and not only its form, says how large a term can be.
    pub fn is_compared(&mut self, term: Term) -> bool {
        let by_form = std::mem::take(&mut self.bounds);
        let natural = self.bound(term);
        self.bounds = by_form;
        self.bound(term) != natural
    }

    /// The largest value a term can have here, if a comparison on this path or its own form says
    /// so.
    pub fn bound(&mut self, term: Term) -> Option<u64> {
        let compared =
            self.bounds.iter().filter(|(bounded, _)| *bounded == term).map(|&(_, bound)| bound).min();
        let natural = match self.node(term) {
            Node::Masked(_, mask) => Some(u64::from(mask)),
            Node::Zext(_, bits @ 0..=8) | Node::Load(_, bits @ 0..=8, _) => Some((1 << bits) - 1),
            Node::Constant(value) => Some(value),
            Node::Zext(inner, bits) => self.bound(inner).filter(|&bound| bound >> bits == 0),
            Node::Sext(inner, bits) => {
                let low = self.zext(inner, bits);
                self.bound(low).filter(|&bound| bound < 1 << (bits - 1))
            }
            _ => None,
        };
        match (compared, natural) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl Term {
    fn min_by_number(self, other: Self) -> Self {
        if self.0 <= other.0 { self } else { other }
    }
    fn max_by_number(self, other: Self) -> Self {
        if self.0 <= other.0 { other } else { self }
    }
}
