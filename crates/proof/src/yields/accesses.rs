//! What inserted code may read and write, of the context that runs and of general registers (rules
//! R13, R14, R17): the value that comes of it, or what is wrong with it. To add one: a function
//! here, its instruction in [`super::ops`], its step in [`super::run`].

use super::ops::{Field, General, RAX, RSP, field};
use super::state::{State, Value};
use iced_x86::Instruction;
use runtime_abi::context;

/// A register takes a value; the stack pointer only its own.
pub(super) fn set(state: &mut State, to: General, value: Value) -> Result<(), &'static str> {
    if to == RSP && value != Value::Program(RSP) {
        return Err("inserted code moves the stack pointer");
    }
    state.general[usize::from(to)] = value;
    Ok(())
}

pub(super) fn load(state: &State, base: General, displacement: i32) -> Result<Value, &'static str> {
    match state.general[usize::from(base)] {
        Value::Context => {}
        Value::Program(RSP) if base == RSP && displacement == 0 => return Ok(Value::Return),
        _ => return Err("reads memory that is neither the context's nor the return address"),
    }
    let kept = |number: General| {
        if state.kept.general >> number & 1 == 1 { Value::Program(number) } else { Value::Anything }
    };
    match field(displacement) {
        Some(Field::Slot(number)) => Ok(kept(number)),
        Some(Field::Rsp) => Ok(kept(RSP)),
        Some(Field::Next) => Ok(Value::Next),
        Some(Field::Fs) => Ok(Value::Local(0)),
        Some(Field::Flags) if state.kept.flags => Ok(Value::Flags),
        _ => Err("reads a field of the context that inserted code must not read"),
    }
}

pub(super) fn store(
    state: &mut State,
    base: General,
    displacement: i32,
    from: General,
) -> Result<(), &'static str> {
    if state.general[usize::from(base)] != Value::Context || state.current != Value::Context {
        return Err("writes memory that is not the context's");
    }
    let value = state.general[usize::from(from)];
    match (field(displacement), value) {
        (Some(Field::Slot(number)), Value::Program(of)) if number == of => state.kept.general |= 1 << number,
        (Some(Field::Rsp), Value::Program(RSP)) => state.kept.general |= 1 << RSP,
        (Some(Field::Flags), Value::Flags) => state.kept.flags = true,
        (Some(Field::Rip), Value::Here(at)) => state.kept.rip = Some(at),
        (Some(Field::Slot(_)), _) => return Err("stores another value into a register's slot"),
        _ => return Err("writes a field of the context that inserted code must not write"),
    }
    Ok(())
}

pub(super) fn vector(
    state: &mut State,
    store: bool,
    number: u8,
    level: u8,
    base: General,
    displacement: i32,
) -> Result<(), &'static str> {
    let right = state.general[usize::from(base)] == Value::Context
        && number < 32
        && displacement == context::vector(number);
    if !right {
        return Err("a vector register outside its own slot");
    }
    let at = usize::from(number);
    if store {
        state.kept.vectors[at] = level.min(state.vectors[at]);
    } else {
        // What lies above is cleared, or was another context's.
        state.vectors[at] = level.min(state.kept.vectors[at]);
    }
    Ok(())
}

/// The context's FS base and the program's registers, added up; or a label's twin by its table.
pub(super) fn sum(state: &State, base: General, index: General, scale: u8) -> Result<Value, &'static str> {
    const WRONG: &str = "computes an address that is not thread-local";
    let both = [base, index].map(|register| state.general[usize::from(register)]);
    if scale == 1 && both == [Value::LabelTable, Value::Distance] {
        return Ok(Value::Label);
    }
    let mut local = None;
    let mut more = (RAX, 0);
    for (register, times) in [(base, 1u64), (index, u64::from(scale))] {
        match state.general[usize::from(register)] {
            Value::Local(sum) if local.is_none() && times == 1 => local = Some(sum),
            Value::Program(of) => more = (of, times),
            _ => return Err(WRONG),
        }
    }
    let sum = local.ok_or(WRONG)?;
    let (of, times) = more;
    // No operand asks for more than nine times a register.
    if (sum >> (4 * of) & 0xf) + times > 0xf {
        return Err(WRONG);
    }
    Ok(Value::Local(sum + (times << (4 * of))))
}

/// Prefetches hang on what the program left in registers.
pub(super) fn prefetch(state: &State, insn: &Instruction) -> Result<Instruction, &'static str> {
    for register in [insn.memory_base(), insn.memory_index()] {
        let changed = register.is_gpr()
            && state.general[register.full_register().number()]
                != Value::Program(register.full_register().number() as General);
        if changed {
            return Err("prefetches through a register that inserted code has changed");
        }
        if register.is_vector_register() {
            return Err("prefetches through a vector register");
        }
    }
    Ok(*insn)
}
