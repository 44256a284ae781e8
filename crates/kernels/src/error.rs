//! Why a specification has no kernel.

use iced_x86::IcedError;

#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error("{what} is {value}, but must be from {min} to {max}")]
    OutOfRange { what: &'static str, value: u64, min: u64, max: u64 },
    #[error("{what} is {value}, but must be a multiple of {of}")]
    NotAMultiple { what: &'static str, value: u64, of: u64 },
    #[error("the assembler refused: {0}")]
    Encoding(#[from] IcedError),
}

/// `Ok` if `min <= value <= max`; `what` names the parameter in the message.
pub(crate) fn in_range(what: &'static str, value: u32, min: u32, max: u32) -> Result<(), KernelError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(KernelError::OutOfRange { what, value: value.into(), min: min.into(), max: max.into() })
    }
}

/// `Ok` if `of` divides `value`.
pub(crate) fn multiple(what: &'static str, value: u32, of: u32) -> Result<(), KernelError> {
    if value % of == 0 {
        Ok(())
    } else {
        Err(KernelError::NotAMultiple { what, value: value.into(), of: of.into() })
    }
}
