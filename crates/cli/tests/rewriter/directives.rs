//! What a program asks of the runner: the lines `//# word: value` in its head, among the comments
//! it begins with.
//!
//! | directive | meaning |
//! |---|---|
//! | `flags: -pthread` | to compile and link; `flags-gcc`, `flags-clang`: that compiler only |
//! | `libs: -lm` | for linking, behind everything else |
//! | `twins: f g` | functions whose twins must run: without them it fails (default: `main`) |
//! | `refused: f reason` | a function that must have no twin, and why (or `this|that`) |
//! | `needs: avx512f` | what the CPU must have; without it the program is skipped by name |
//! | `needs-clang: ld.lld` | a command that this compiler needs (also `needs-gcc`) |
//! | `compilers: gcc`, `levels: -O2 -O3`, `shapes: pie static` | only these |
//! | `skip: clang static: why` | not where all of these words are part of the variant's name |
//! | `unproven: clang static: why` | poison is refused as not proven there |
//! | `with: lib/<name>.c` | a second source, compiled apart and linked with it |
//! | `library: lib/<name>.c` | a shared object, rewritten too; no static variants |
//! | `expect-exit: 3`, `expect-signal: 6` | how it must end (default: exit 0) |
//! | `varies: why` | what it prints may differ between compilers and levels |
//!
//! To add one: a row above, a line in [`Directives::take`], and what it means where it is used.

use std::path::{Path, PathBuf};

/// How a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    TimedOut,
}

/// Words for each compiler, by its name.
pub(crate) type PerCompiler = Vec<(&'static str, Vec<String>)>;

#[derive(Debug)]
pub(crate) struct Directives {
    pub(crate) needs: Vec<String>,
    pub(crate) commands: PerCompiler,
    pub(crate) only: Vec<Vec<String>>,
    pub(crate) flags: Vec<String>,
    pub(crate) own_flags: PerCompiler,
    pub(crate) libs: Vec<String>,
    pub(crate) twins: Vec<String>,
    pub(crate) refused: Vec<(String, String)>,
    /// Parts of the names of variants: those that have them all.
    pub(crate) skips: Vec<Vec<String>>,
    pub(crate) unproven: Vec<Vec<String>>,
    pub(crate) with: Vec<PathBuf>,
    pub(crate) library: Option<PathBuf>,
    pub(crate) end: End,
    pub(crate) varies: bool,
}

impl Directives {
    /// Those in a program's text; `folder` is where it lies.
    pub(crate) fn read(text: &str, folder: &Path) -> Result<Self, String> {
        let mut all = Self {
            needs: Vec::new(),
            commands: Vec::new(),
            only: Vec::new(),
            flags: Vec::new(),
            own_flags: Vec::new(),
            libs: Vec::new(),
            twins: Vec::new(),
            refused: Vec::new(),
            skips: Vec::new(),
            unproven: Vec::new(),
            with: Vec::new(),
            library: None,
            end: End::Exit(0),
            varies: false,
        };
        for line in text.lines().take_while(|line| line.starts_with("//")) {
            if let Some(directive) = line.strip_prefix("//#") {
                let (word, value) = directive.split_once(':').ok_or_else(|| format!("no colon: {line}"))?;
                all.take(word.trim(), value.trim(), folder).map_err(|why| format!("{why}: {line}"))?;
            }
        }
        if all.twins.is_empty() {
            all.twins.push("main".to_owned());
        }
        if all.library.is_some() {
            all.skips.push(vec!["static".to_owned()]);
        }
        Ok(all)
    }

    fn take(&mut self, word: &str, value: &str, folder: &Path) -> Result<(), String> {
        let words = || value.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if value.is_empty() {
            return Err("no value".to_owned());
        }
        match word {
            "needs" => self.needs.extend(words()),
            "needs-gcc" => self.commands.push(("gcc", words())),
            "needs-clang" => self.commands.push(("clang", words())),
            "compilers" => self.only.push(words()),
            "levels" => self.only.push(words().iter().map(|level| level.replace('-', "")).collect()),
            "shapes" => self.only.push(words()),
            "flags" => self.flags.extend(words()),
            "libs" => self.libs.extend(words()),
            "flags-gcc" => self.own_flags.push(("gcc", words())),
            "flags-clang" => self.own_flags.push(("clang", words())),
            "twins" => self.twins.extend(words()),
            "refused" => {
                let (name, reason) = value.split_once(' ').ok_or("no reason")?;
                self.refused.push((name.to_owned(), reason.trim().to_owned()));
            }
            "skip" | "unproven" => {
                let (parts, _why) = value.split_once(':').ok_or("no reason")?;
                let parts = parts.split_whitespace().map(|part| part.replace('-', "")).collect();
                if word == "skip" { &mut self.skips } else { &mut self.unproven }.push(parts);
            }
            "with" => self.with.push(folder.join(value)),
            "library" => self.library = Some(folder.join(value)),
            "expect-exit" => self.end = End::Exit(value.parse().map_err(|_| "not a number")?),
            "expect-signal" => self.end = End::Signal(value.parse().map_err(|_| "not a number")?),
            "varies" => self.varies = true,
            _ => return Err("no such directive".to_owned()),
        }
        Ok(())
    }

    /// The flags for one compiler.
    pub(crate) fn flags_for(&self, compiler: &str) -> impl Iterator<Item = &str> {
        let own = self.own_flags.iter().filter(move |(name, _)| *name == compiler);
        self.flags.iter().chain(own.flat_map(|(_, flags)| flags)).map(String::as_str)
    }
}
