//! Addresses that cannot be mixed up: an offset in a file, an address as the file states it, and an
//! address in a running process.

use serde::{Deserialize, Serialize};

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The address `delta` bytes further; `None` past the end of the address space.
            pub fn checked_add(self, delta: u64) -> Option<Self> {
                self.0.checked_add(delta).map(Self)
            }

            /// How many bytes `self` lies after `base`; `None` if it lies before.
            pub fn checked_offset_from(self, base: Self) -> Option<u64> {
                self.0.checked_sub(base.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

address!(
    /// A byte's place in a file.
    FileOffset
);
address!(
    /// Stated virtual memory address: as the ELF file's headers and symbols say, before it is
    /// loaded anywhere.
    Svma
);
address!(
    /// Actual virtual memory address: in a running process.
    Avma
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_does_not_wrap() {
        assert_eq!(Svma(u64::MAX).checked_add(1), None);
        assert_eq!(Svma(4).checked_offset_from(Svma(5)), None);
        assert_eq!(Avma(0x10).checked_offset_from(Avma(4)), Some(12));
        assert_eq!(format!("{} {:?}", FileOffset(255), Avma(16)), "0xff Avma(0x10)");
    }
}
