//! The ways a program is built: compilers × levels × shapes.
//!
//! A program is built in enough of them that each compiler meets each level and each shape: a
//! quarter of the product. Which quarter differs from program to program, so all of the product is
//! met by some program. Of the static variants one is poisoned: each holds the whole C library, and
//! poisoning and proving that is most of all the work.
//! `GLEANER_MATRIX=all` takes the whole product of variants and modes for each program.
//!
//! To add one: an entry in [`COMPILERS`], [`LEVELS`] or [`Shape::ALL`].

use crate::directives::Directives;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) name: &'static str,
    c: &'static str,
    plus: &'static str,
    version: OnceLock<Option<String>>,
}

pub(crate) static COMPILERS: [Compiler; 2] =
    [Compiler::new("gcc", "gcc", "g++"), Compiler::new("clang", "clang", "clang++")];
pub(crate) const LEVELS: [&str; 4] = ["-O0", "-O2", "-O3", "-Os"];

impl Compiler {
    const fn new(name: &'static str, c: &'static str, plus: &'static str) -> Self {
        Self { name, c, plus, version: OnceLock::new() }
    }
    /// The command for a source.
    pub(crate) fn command(&self, source: &Path) -> &'static str {
        if source.extension().is_some_and(|extension| extension == "cpp") { self.plus } else { self.c }
    }
    /// What it says it is; `None` if it is not there.
    pub(crate) fn version(&self) -> Option<&str> {
        let asked = self.version.get_or_init(|| {
            [self.c, self.plus].iter().map(|command| first_line(command)).collect::<Option<String>>()
        });
        asked.as_deref()
    }
}

fn first_line(command: &str) -> Option<String> {
    let output = Command::new(command).arg("--version").stderr(Stdio::null()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))?
}

/// Whether a command is there.
fn is_there(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Pie,
    Stripped,
    Fixed,
    Static,
}

impl Shape {
    pub(crate) const ALL: [Self; 4] = [Self::Pie, Self::Stripped, Self::Fixed, Self::Static];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pie => "pie",
            Self::Stripped => "stripped",
            Self::Fixed => "fixed",
            Self::Static => "static",
        }
    }
    pub(crate) fn compile_flag(self) -> &'static str {
        if self.is_pie() { "-fPIE" } else { "-fno-pie" }
    }
    pub(crate) fn link_flag(self) -> &'static str {
        match self {
            Self::Pie | Self::Stripped => "-pie",
            Self::Fixed => "-no-pie",
            Self::Static => "-static",
        }
    }
    pub(crate) fn is_pie(self) -> bool {
        matches!(self, Self::Pie | Self::Stripped)
    }
}

/// The shapes of one compiler and level: they share what is compiled and differ in how it is
/// linked.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) compiler: &'static Compiler,
    pub(crate) level: &'static str,
    pub(crate) shapes: Vec<Shape>,
    /// Of these shapes those that are not poisoned.
    pub(crate) not_poisoned: Vec<Shape>,
}

impl Group {
    pub(crate) fn variant(&self, shape: Shape) -> String {
        format!("{}{}-{}", self.compiler.name, self.level, shape.name())
    }

    /// Whether all of these words are part of a variant's name, for any of the lists.
    pub(crate) fn is_among(&self, shape: Shape, lists: &[Vec<String>]) -> bool {
        let parts = [self.compiler.name, &self.level[1..], shape.name()];
        lists.iter().any(|words| words.iter().all(|word| parts.contains(&word.as_str())))
    }
}

/// What of a program can be run here, and what is skipped for what this machine lacks.
pub(crate) struct Matrix {
    pub(crate) groups: Vec<Group>,
    pub(crate) lacking: Vec<String>,
}

/// How much of the product of compilers, levels and shapes is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// What takes each pair with a compiler; a number by which programs differ in what is
    /// preferred.
    Pairs(usize),
    All,
}

impl Breadth {
    /// For a program of this name, as the environment has it. To name variants means those and no
    /// others.
    pub(crate) fn of(program: &str, wanted: &[String]) -> Self {
        match std::env::var("GLEANER_MATRIX").as_deref() {
            Ok("all") => Self::All,
            Ok("pairs") | Err(_) if wanted.is_empty() => Self::Pairs(program.bytes().map(usize::from).sum()),
            Ok("pairs") | Err(_) => Self::All,
            Ok(other) => panic!("GLEANER_MATRIX={other} is neither all nor pairs"),
        }
    }
}

/// One variant by its numbers in [`COMPILERS`], [`LEVELS`] and [`Shape::ALL`].
type Indices = [usize; 3];

/// A compiler with a level, and a compiler with a shape.
fn pairs_of([compiler, level, shape]: Indices) -> [(bool, usize, usize); 2] {
    [(false, compiler, level), (true, compiler, shape)]
}

/// How many parts the product is shared out to.
const QUARTERS: usize = 4;

/// Of these variants enough that each pair with a compiler that any of them has is met: one shape
/// for each level, another one by the other compiler.
fn pairs(all: &[Indices], quarter: usize) -> Vec<Indices> {
    let preferred =
        |&[compiler, level, shape]: &Indices| (level + 2 * compiler + quarter) % QUARTERS == shape;
    let mut chosen: Vec<Indices> = all.iter().copied().filter(preferred).collect();
    // Where a program leaves out variants, pairs may be left that only the other quarters have.
    for &other in all {
        let met = |pair: &(bool, usize, usize)| chosen.iter().any(|&v| pairs_of(v).contains(pair));
        if !pairs_of(other).iter().all(met) {
            chosen.push(other);
        }
    }
    chosen
}

/// Keeps those variants of the groups that `breadth` takes.
fn narrow(groups: &mut Vec<Group>, breadth: Breadth) {
    let Breadth::Pairs(turn) = breadth else { return };
    let indices = |group: &Group, shape: Shape| {
        let compiler = COMPILERS.iter().position(|compiler| compiler.name == group.compiler.name);
        let level = LEVELS.iter().position(|level| *level == group.level);
        let shape = Shape::ALL.iter().position(|other| *other == shape);
        [compiler, level, shape].map(|index| index.expect("it is among them"))
    };
    let all: Vec<Indices> =
        groups.iter().flat_map(|group| group.shapes.iter().map(|&shape| indices(group, shape))).collect();
    let chosen = pairs(&all, turn % QUARTERS);
    for group in groups.iter_mut() {
        let of = group.clone();
        group.shapes.retain(|&shape| chosen.contains(&indices(&of, shape)));
    }
    groups.retain(|group| !group.shapes.is_empty());
    let statics = groups.iter_mut().filter(|group| group.shapes.contains(&Shape::Static));
    let statics: Vec<&mut Group> = statics.collect();
    let poisoned = turn / QUARTERS % statics.len().max(1);
    for (_, group) in statics.into_iter().enumerate().filter(|(index, _)| *index != poisoned) {
        group.not_poisoned.push(Shape::Static);
    }
}

/// `wanted`: parts of variants' names, of which one must be in the name; none: all.
pub(crate) fn matrix(program: &Directives, wanted: &[String], breadth: Breadth) -> Matrix {
    let mut lacking: Vec<String> = program
        .needs
        .iter()
        .filter(|need| !cpu_has(need))
        .map(|need| format!("this CPU has no {need}"))
        .collect();
    let mut groups = Vec::new();
    for compiler in &COMPILERS {
        let listed = program.commands.iter().filter(|(name, _)| *name == compiler.name);
        let command = listed.flat_map(|(_, commands)| commands).find(|command| !is_there(command));
        let absent = match (compiler.version(), command) {
            (None, _) => Some(compiler.name),
            (Some(_), Some(command)) => Some(command.as_str()),
            (Some(_), None) => None,
        };
        let mut any = false;
        for level in LEVELS {
            let mut group = Group { compiler, level, shapes: Vec::new(), not_poisoned: Vec::new() };
            for shape in Shape::ALL {
                let parts = [compiler.name, &level[1..], shape.name()];
                let in_list = |list: &Vec<String>| list.iter().any(|word| parts.contains(&word.as_str()));
                let name = group.variant(shape);
                if program.only.iter().all(in_list)
                    && !group.is_among(shape, &program.skips)
                    && (wanted.is_empty() || wanted.iter().any(|part| name.contains(part)))
                {
                    group.shapes.push(shape);
                }
            }
            any |= !group.shapes.is_empty();
            if absent.is_none() && lacking.is_empty() && !group.shapes.is_empty() {
                groups.push(group);
            }
        }
        if let Some(absent) = absent.filter(|_| any) {
            lacking.push(format!("no {absent} here"));
        }
    }
    narrow(&mut groups, breadth);
    Matrix { groups, lacking }
}

/// What is taken of the whole product, and of one that lacks some: each pair with a compiler is
/// met, and programs share out the product among them.
pub(crate) fn pairs_are_met() -> Result<(), String> {
    let product: Vec<Indices> = (0..32).map(|n| [n / 16, n / 4 % 4, n % 4]).collect();
    let met = |variants: &[Indices]| -> BTreeSet<_> { variants.iter().flat_map(|&v| pairs_of(v)).collect() };
    let gcc_only: Vec<Indices> = product.iter().copied().filter(|v| v[0] == 0).collect();
    let pie_only: Vec<Indices> = product.iter().copied().filter(|v| v[2] == 0).collect();
    let not_clang_static: Vec<Indices> = product.iter().copied().filter(|v| v[0] == 0 || v[2] != 3).collect();
    for quarter in 0..QUARTERS {
        for (all, most) in [(&product, 8), (&gcc_only, 4), (&pie_only, 8), (&not_clang_static, 8)] {
            let chosen = pairs(all, quarter);
            if chosen.len() > most || met(&chosen) != met(all) {
                return Err(format!("quarter {quarter} of {all:?}: {chosen:?}"));
            }
        }
    }
    let quarters: BTreeSet<Indices> = (0..QUARTERS).flat_map(|quarter| pairs(&product, quarter)).collect();
    if quarters.len() == product.len() {
        return Ok(());
    }
    Err(format!("the quarters do not make the product: {quarters:?}"))
}

fn cpu_has(feature: &str) -> bool {
    match feature {
        "avx2" => std::is_x86_feature_detected!("avx2"),
        "avx512f" => std::is_x86_feature_detected!("avx512f"),
        "avx512bw" => std::is_x86_feature_detected!("avx512bw"),
        "avx512dq" => std::is_x86_feature_detected!("avx512dq"),
        "avx512vl" => std::is_x86_feature_detected!("avx512vl"),
        // The standard library does not know these by name yet.
        "amx_tile" | "amx_int8" | "amx_bf16" => std::fs::read_to_string("/proc/cpuinfo")
            .is_ok_and(|info| info.split_whitespace().any(|word| word == feature)),
        other => panic!("needs: {other}: the runner does not know how to find out"),
    }
}
