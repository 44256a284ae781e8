//! Test programs, compiled once, and ways to run them.

use libtest_mimic::Failed;
use std::fmt::Debug;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// First argument that makes the test program a launcher.
pub(crate) const LAUNCH: &str = "launch";
/// After which a harvest hangs. Generous: machines may be busy, and scavengers at home run where
/// nobody else wants to. Waited in naps, of which a machine that sleeps takes one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
const NAP: Duration = Duration::from_millis(2);

/// How a program ended, as a shell has it, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) output: String,
}

pub(crate) struct Harvested {
    pub(crate) primary: Ended,
    /// What scavengers printed.
    pub(crate) output: String,
    pub(crate) ends: Vec<String>,
    pub(crate) boardings: u64,
    /// All that is known of it beside that, to be read.
    pub(crate) story: String,
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) directory: PathBuf,
    /// What launchers are started by: a program and its first arguments.
    pub(crate) before: Vec<String>,
    pub(crate) patience: Duration,
}

/// Where the compiled programs are.
fn programs() -> Result<&'static Path, Failed> {
    static DIRECTORY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = DIRECTORY.get_or_init(|| {
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{}", std::process::id()));
        std::fs::create_dir_all(&to).map_err(|error| error.to_string())?;
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/programs");
        for (name, side) in [
            ("deny", "ALONE"),
            ("host", "ALONE"),
            ("host", "PRIMARY"),
            ("guest", "ALONE"),
            ("guest", "SCAVENGER"),
        ] {
            let compile = |compiler: &str, language: &str| {
                let done = Command::new(compiler)
                    .args(["-x", language, "-O2", "-w", "-pthread", "-fno-stack-protector"])
                    .arg("-fno-tree-loop-distribute-patterns")
                    .arg(format!("-D{side}"))
                    .arg("-o")
                    .arg(to.join(format!("{name}_{side}")))
                    .arg(from.join(format!("{name}.c")))
                    .status();
                done.is_ok_and(|status| status.success())
            };
            // Where there is no C++, nobody throws.
            let compiled = name == "guest" && compile("c++", "c++") || compile("cc", "c");
            if !compiled {
                return Err(format!("cc could not compile {name}.c"));
            }
        }
        Ok(to)
    });
    made.as_deref().map_err(|why| why.clone().into())
}

impl World {
    pub(crate) fn new(name: &str) -> Result<Self, Failed> {
        let directory = programs()?.join(name.replace("::", "-"));
        std::fs::create_dir_all(&directory)?;
        Ok(Self { directory, before: Vec::new(), patience: PATIENCE })
    }

    pub(crate) fn program(side: &str) -> String {
        programs().map(|at| at.join(side).to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(crate) fn alone(&self, name: &str, arguments: &[&str]) -> Ended {
        self.run(&Self::program(&format!("{name}_ALONE")), arguments)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Ended {
        self.ended(Command::new(program).args(arguments))
    }

    /// Waits for it, not for ever, and not for what it left behind with its output open.
    fn ended(&self, command: &mut Command) -> Ended {
        let path = self.directory.join("stdout");
        let file = std::fs::File::create(&path).expect("a file for its output");
        let errors = std::fs::File::create(self.directory.join("stderr")).expect("a file for its errors");
        let mut child = command
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .expect("a start");
        let naps = self.patience.as_millis() / NAP.as_millis();
        let mut rest = 0..naps;
        let status = loop {
            if let Some(status) = child.try_wait().expect("an end") {
                break status;
            }
            if rest.next().is_none() {
                let threads = self.left().map(|left| left.join("\n    ")).unwrap_or_default();
                child.kill().expect("an end");
                child.wait().expect("an end");
                return Ended { code: -1, output: format!("hangs: {command:?}\n    {threads}") };
            }
            std::thread::sleep(NAP);
        };
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        let output = String::from_utf8_lossy(&std::fs::read(path).expect("its output")).into_owned();
        Ended { code, output }
    }

    fn launcher(&self) -> Command {
        let own = std::env::current_exe().expect("this program");
        let Some((first, rest)) = self.before.split_first() else { return Command::new(own) };
        let mut command = Command::new(first);
        command.args(rest).arg(own);
        command
    }

    /// What the last program said on standard error.
    pub(crate) fn errors(&self) -> String {
        let bytes = std::fs::read(self.directory.join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What a failed test leaves is of use; nobody misses the rest.
    pub(crate) fn clear(&self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }

    /// With the test programs as primary and scavengers.
    pub(crate) fn harvest(&self, options: &[&str], primary: &[&str], scavengers: &[Vec<&str>]) -> Harvested {
        let guest = Self::program("guest_SCAVENGER");
        let all: Vec<Vec<&str>> =
            scavengers.iter().map(|argv| [&[guest.as_str()], &argv[..]].concat()).collect();
        self.harvest_programs(options, primary, &all)
    }

    /// With the test program as primary.
    pub(crate) fn harvest_programs(
        &self,
        options: &[&str],
        primary: &[&str],
        scavengers: &[Vec<&str>],
    ) -> Harvested {
        self.harvest_of(&Self::program("host_PRIMARY"), options, primary, scavengers)
    }

    pub(crate) fn harvest_of(
        &self,
        file: &str,
        options: &[&str],
        primary: &[&str],
        scavengers: &[Vec<&str>],
    ) -> Harvested {
        let (report, output) = (self.directory.join("report"), self.directory.join("output"));
        for path in [&report, &output] {
            std::fs::write(path, "").expect("an empty file");
        }
        // Of a scavenger before.
        let _ = std::fs::remove_file(self.directory.join("done"));
        let mut command = self.launcher();
        command.arg(LAUNCH).args(options).arg("--report").arg(&report).arg("--output").arg(&output);
        command.arg(file).args(primary);
        for argv in scavengers {
            command.arg("--").args(argv);
        }
        let primary = self.ended(&mut command);
        let read = |path| String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned();
        let told = read(&report);
        let lines: Vec<String> = told.lines().map(str::to_owned).collect();
        let of = |line: &String| line.split("; ").next().unwrap_or_default().to_owned();
        let boardings = lines
            .iter()
            .filter_map(|line| line.split("; ").nth(1)?.split(' ').next()?.parse::<u64>().ok())
            .sum();
        let output = read(&output);
        let story = format!(
            "{command:?}\nstandard error:\n{}\nscavengers:\n{told}\ntheir output:\n{output}",
            self.errors()
        );
        Harvested { primary, output, ends: lines.iter().map(of).collect(), boardings, story }
    }

    /// The threads of all processes of ours: name, what the kernel says it does, and where it
    /// waits.
    fn left(&self) -> std::io::Result<Vec<String>> {
        let here = self.directory.to_string_lossy().into_owned();
        let is_here = |process: &PathBuf| {
            std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&here))
        };
        let processes = std::fs::read_dir("/proc")?.filter_map(|entry| Some(entry.ok()?.path()));
        let threads = processes.filter(is_here).flat_map(|process| {
            std::fs::read_dir(process.join("task"))
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
        });
        let read = |path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let line = |thread: PathBuf| {
            let process =
                thread.ancestors().nth(2).map(|process| read(process.join("cmdline"))).unwrap_or_default();
            let [stat, wait, call] = ["stat", "wchan", "syscall"].map(|file| read(thread.join(file)));
            format!("{stat}; waits in {wait}, system call {call}; {}", process.replace('\0', " "))
        };
        Ok(threads.map(line).collect())
    }

    /// No process of ours is left, neither running nor waiting to be reaped. What the programs
    /// leave behind on purpose (children that outlive them) is none.
    pub(crate) fn nobody_left(&self) -> Result<(), Failed> {
        let mut left = Vec::new();
        for _ in 0..1000 {
            left = self.left()?;
            if left.is_empty() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("left behind:\n    {}", left.join("\n    ")).into())
    }
}

pub(crate) fn same<T: PartialEq + Debug>(what: &str, is: &T, should: &T) -> Result<(), Failed> {
    if is == should {
        Ok(())
    } else {
        Err(format!("{what}:\n  is        {is:?}\n  should be {should:?}").into())
    }
}
