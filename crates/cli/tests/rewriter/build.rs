//! Building programs, with the results kept by what went into them.

use crate::directives::{Directives, End};
use crate::outcome::run;
use crate::variant::{Group, Shape};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// A program to be rewritten.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) source: PathBuf,
    pub(crate) directives: Directives,
    /// Where its variants are built and run.
    pub(crate) folder: PathBuf,
}

impl Program {
    pub(crate) fn variant_folder(&self, group: &Group, shape: Shape) -> PathBuf {
        self.folder.join(group.variant(shape))
    }

    /// The command that builds a variant in one step, to repeat it by hand.
    pub(crate) fn in_one_command(&self, group: &Group, shape: Shape) -> String {
        let mut words = vec![group.compiler.command(&self.source).to_owned()];
        words.extend(self.flags(group, shape.compile_flag()));
        words.push(shape.link_flag().to_owned());
        let sources = std::iter::once(&self.source).chain(&self.directives.with);
        words.extend(sources.map(|source| source.display().to_string()));
        words.extend(self.directives.libs.iter().cloned());
        words.join(" ")
    }

    fn flags(&self, group: &Group, place: &str) -> Vec<String> {
        let own = self.directives.flags_for(group.compiler.name);
        ["-w", group.level, place].into_iter().chain(own).map(str::to_owned).collect()
    }

    /// Builds what is not there yet or was made of something else: `original/program` in each
    /// variant's folder, beside it the program's library, and `symbols`, the program before it was
    /// stripped.
    pub(crate) fn build(&self, group: &Group) -> Result<(), String> {
        let key = self.key(group)?;
        let stale: Vec<Shape> =
            group.shapes.iter().copied().filter(|&s| !self.is_current(group, s, &key)).collect();
        for pie in [true, false] {
            let shapes: Vec<Shape> = stale.iter().copied().filter(|shape| shape.is_pie() == pie).collect();
            let Some(first) = shapes.first() else { continue };
            let work = self.folder.join(format!("{}-objects", group.variant(*first)));
            fresh(&work)?;
            let sources = std::iter::once(&self.source).chain(&self.directives.with);
            let objects = sources
                .enumerate()
                .map(|(index, source)| {
                    let object = work.join(format!("{index}.o"));
                    let mut command = Command::new(group.compiler.command(source));
                    command
                        .args(self.flags(group, first.compile_flag()))
                        .arg("-c")
                        .arg(source)
                        .arg("-o")
                        .arg(&object);
                    succeed(command, &work).map(|()| object)
                })
                .collect::<Result<Vec<_>, String>>()?;
            for &shape in &shapes {
                self.link(group, shape, &objects)?;
                let done = self.variant_folder(group, shape).join("made-of");
                std::fs::write(&done, &key).map_err(|e| format!("{}: {e}", done.display()))?;
            }
            let _ = std::fs::remove_dir_all(&work);
        }
        Ok(())
    }

    fn link(&self, group: &Group, shape: Shape, objects: &[PathBuf]) -> Result<(), String> {
        let folder = self.variant_folder(group, shape);
        fresh(&folder)?;
        let original = folder.join("original");
        fresh(&original)?;
        let library = match &self.directives.library {
            Some(source) => {
                let stem = source.file_stem().unwrap_or_default().to_string_lossy();
                let path = original.join(format!("lib{stem}.so"));
                let mut command = Command::new(group.compiler.command(source));
                command
                    .args(self.flags(group, "-fPIC"))
                    .arg("-shared")
                    .arg(format!("-Wl,-soname,lib{stem}.so"));
                command.arg(source).arg("-o").arg(&path);
                succeed(command, &folder)?;
                Some(path)
            }
            None => None,
        };
        let program = original.join("program");
        let mut command = Command::new(group.compiler.command(&self.source));
        command.args(self.flags(group, shape.compile_flag())).arg(shape.link_flag()).args(objects);
        if let Some(library) = library {
            command.arg(library).arg("-Wl,-rpath,$ORIGIN");
        }
        command.args(&self.directives.libs).arg("-o").arg(&program);
        succeed(command, &folder)?;
        if shape == Shape::Stripped {
            let symbols = folder.join("symbols");
            std::fs::rename(&program, &symbols).map_err(|e| e.to_string())?;
            let mut command = Command::new("strip");
            command.arg(&symbols).arg("-o").arg(&program);
            succeed(command, &folder)?;
        }
        Ok(())
    }

    fn is_current(&self, group: &Group, shape: Shape, key: &str) -> bool {
        let folder = self.variant_folder(group, shape);
        std::fs::read_to_string(folder.join("made-of")).is_ok_and(|found| found == key)
            && folder.join("original/program").is_file()
    }

    /// What decides about the result: compiler, flags, and every source with what it includes from
    /// beside it.
    fn key(&self, group: &Group) -> Result<String, String> {
        let mut hasher = DefaultHasher::new();
        group.compiler.version().hash(&mut hasher);
        (self.flags(group, ""), &self.directives.libs).hash(&mut hasher);
        let mut ahead: Vec<PathBuf> = vec![self.source.clone()];
        ahead.extend(self.directives.with.iter().chain(&self.directives.library).cloned());
        let mut seen = BTreeSet::new();
        while let Some(path) = ahead.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            text.hash(&mut hasher);
            let included =
                text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
            let beside = path.parent().unwrap_or(Path::new(""));
            ahead.extend(included.map(|name| beside.join(name)).filter(|path| path.is_file()));
        }
        Ok(format!("{:016x}", hasher.finish()))
    }
}

/// An empty folder.
pub(crate) fn fresh(folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

pub(crate) fn succeed(command: Command, folder: &Path) -> Result<(), String> {
    let what = format!("{command:?}");
    let outcome = run(command, folder, LIMIT)?;
    if outcome.end == End::Exit(0) {
        return Ok(());
    }
    Err(format!("{what}: {:?}\n{}", outcome.end, String::from_utf8_lossy(&outcome.err).trim_end()))
}
