//! Names of functions and variables as their programmers wrote them.

use cpp_demangle::DemangleOptions;

/// A linker's name, demangled: Rust's and C++'s; others as they are. The symbol's version goes.
pub fn demangled(name: &str) -> String {
    // Names come from files of all kinds: what is long is left alone.
    const LONGEST: usize = 4096;
    let name = name.split('@').next().unwrap_or(name);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let cpp = (name.starts_with("_Z") && name.len() <= LONGEST)
        .then(|| cpp_demangle::Symbol::new(name).ok()?.demangle(&DemangleOptions::default()).ok())
        .flatten();
    cpp.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_their_programmers_wrote_them() {
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(
            demangled("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back(int&&)"
        );
        assert_eq!(demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(demangled("_Zgarbage"), "_Zgarbage");
    }
}
