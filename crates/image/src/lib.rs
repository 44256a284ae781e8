//! ELF reading, decoding, functions, control flow and liveness. Pure: bytes in, facts out.
#![forbid(unsafe_code)]
