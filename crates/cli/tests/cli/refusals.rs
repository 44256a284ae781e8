//! What cannot be rewritten gets one clear line, and no output file: no program of this test may
//! leave one.
//!
//! To add a case: a line in one of the tables, with what is said behind the file's name.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }
    /// What `gleaner twin` says of a file, without its name; nothing may be left where the output
    /// was to go.
    fn refused(&self, input: &Path, output: &Path) -> (Option<i32>, String) {
        // Not of devices: some give bytes without end.
        let is_file = std::fs::metadata(output).is_ok_and(|there| there.is_file());
        let content = || is_file.then(|| std::fs::read(output).unwrap());
        let before = content();
        let mut folder = self.listed();
        let mut last = None;
        for mode in ["--identity", "--poison"] {
            let ran = Command::new(env!("CARGO_BIN_EXE_gleaner"))
                .args(["twin", mode, "-o"])
                .args([output, input])
                .stdin(Stdio::null())
                .output()
                .expect("it runs");
            let said = String::from_utf8(ran.stderr).unwrap();
            assert!(ran.stdout.is_empty(), "on standard output: {:?}", ran.stdout);
            assert_eq!(said.lines().count(), 1, "one line: {said:?}");
            assert_eq!(content(), before, "an output: {said}");
            assert!(is_file || !output.is_file(), "an output: {said}");
            let now = self.listed();
            assert_eq!(now, folder, "files left: {said}");
            folder = now;
            let said = said.trim_end().strip_prefix("gleaner: ").expect("it says who it is").to_owned();
            let said = said.replace(&format!("{}: ", input.display()), "");
            let told = (ran.status.code(), said);
            assert!(last.as_ref().is_none_or(|last| *last == told), "{mode}: {told:?}, before: {last:?}");
            last = Some(told);
        }
        last.unwrap()
    }
    fn listed(&self) -> Vec<PathBuf> {
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(self.folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        names.sort();
        names
    }
}

/// A program to begin with.
fn program() -> Vec<u8> {
    std::fs::read("/bin/true").unwrap()
}

/// The program with some bytes of its head replaced.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut program = program();
    program[at..at + bytes.len()].copy_from_slice(bytes);
    program
}

#[test]
fn what_is_no_program_for_this_processor() {
    let place = Place::new();
    let output = place.path("output");
    for (content, why) in [
        (Vec::new(), "not an ELF file"),
        (b"#!/bin/sh\necho hello\n".to_vec(), "not an ELF file"),
        (b"MZ\x90\0 a program for another system".to_vec(), "not an ELF file"),
        (with(4, &[1]), "a 32-bit ELF file; only 64-bit x86-64 is supported"),
        (with(5, &[2]), "a big-endian ELF file; only x86-64 is supported"),
        (with(18, &[183, 0]), "an ELF file for machine 183; only x86-64 (62) is supported"),
        (with(16, &[1, 0]), "an ELF file of type 1; only executables and shared objects are supported"),
        (with(16, &[4, 0]), "an ELF file of type 4; only executables and shared objects are supported"),
    ] {
        let input = place.file("input", &content);
        assert_eq!(place.refused(&input, &output), (Some(2), why.to_owned()));
    }
}

#[test]
fn what_is_cut_short() {
    let place = Place::new();
    let output = place.path("output");
    let whole = program();
    // Everywhere in the headers, and a few places in what follows; but not where only section names
    // are lost.
    let cuts = (4..80).chain((80..whole.len() / 2).step_by(whole.len() / 40));
    for cut in cuts {
        let input = place.file("input", &whole[..cut]);
        let (code, said) = place.refused(&input, &output);
        assert_eq!(code, Some(2), "cut at {cut}: {said}");
        assert!(
            said.starts_with("truncated: ") || said.starts_with("malformed: ") || said == "not an ELF file",
            "cut at {cut}: {said}"
        );
    }
}

#[test]
fn what_was_rewritten_already() {
    let place = Place::new();
    let (input, once) = (place.file("input", &program()), place.path("once"));
    for mode in ["--identity", "--poison"] {
        let ran = Command::new(env!("CARGO_BIN_EXE_gleaner"))
            .args(["twin", mode, "-q", "-o"])
            .args([&once, &input])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let told = place.refused(&once, &place.path("twice"));
        assert_eq!(told, (Some(2), "already rewritten: it carries this program's note".to_owned()));
    }
}

#[test]
fn what_has_rights_that_a_copy_would_lose() {
    let place = Place::new();
    let input = place.file("input", &program());
    for mode in [0o4755, 0o2755, 0o6711] {
        std::fs::set_permissions(&input, std::fs::Permissions::from_mode(mode)).unwrap();
        let told = place.refused(&input, &place.path("output"));
        assert_eq!(
            told,
            (Some(2), "setuid or setgid: a rewritten copy would run without these privileges".to_owned())
        );
    }
}

#[test]
fn what_is_no_program_yet_or_no_more() {
    let place = Place::new();
    let source = place.file("source.c", b"int main(void) { return 0; }\n");
    let object = place.path("object.o");
    let built = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status();
    assert!(built.is_ok_and(|status| status.success()), "a compiler is needed for this test");
    let told = place.refused(&object, &place.path("output"));
    let why = "an ELF file of type 1; only executables and shared objects are supported";
    assert_eq!(told, (Some(2), why.to_owned()));
}

/// A core file as the kernel's tools write it: of type 4, with segments, and no program.
#[test]
fn what_a_program_left_when_it_ended() {
    let place = Place::new();
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "starti", "-ex"])
        .arg(format!("generate-core-file {}", place.path("core").display()))
        .arg("/bin/true");
    let made = gdb.stdin(Stdio::null()).output().is_ok() && place.path("core").exists();
    if !made {
        eprintln!("skipped: no gdb that leaves a core file here");
        return;
    }
    let told = place.refused(&place.path("core"), &place.path("output"));
    let why = "an ELF file of type 4; only executables and shared objects are supported";
    assert_eq!(told, (Some(2), why.to_owned()));
}

/// Names come from the debug information of the very build; no other is taken.
#[test]
fn debug_information_of_something_else() {
    let place = Place::new();
    let source = place
        .file("source.c", b"int seen(int x) { return x * 3; }\nint main(void) { return seen(14) != 42; }\n");
    let (whole, stripped, debug) = (place.path("whole"), place.path("stripped"), place.path("whole.debug"));
    let run = |program: &str, arguments: &[&dyn AsRef<std::ffi::OsStr>]| {
        let mut command = Command::new(program);
        for argument in arguments {
            command.arg(argument.as_ref());
        }
        let done = command.status();
        assert!(done.is_ok_and(|status| status.success()), "{program} is needed for this test");
    };
    run("cc", &[&"-g", &"-O1", &"-Wl,--build-id", &"-o", &whole, &source]);
    run("objcopy", &[&"--only-keep-debug", &whole, &debug]);
    run("strip", &[&"-o", &stripped, &whole]);
    let output = place.path("output");
    let with = |debug: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
        command.args(["twin", "--identity", "-q", "--debug"]).arg(debug).arg("-o").args([&output, &stripped]);
        let ran = command.output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    assert_eq!(with(&debug), (Some(0), String::new()));
    let rewritten = std::fs::read(&output).unwrap();
    let named = |name: &[u8]| rewritten.windows(name.len()).any(|window| window == name);
    assert!(named(b"\0seen.twin\0"), "names come from the debug information");
    assert!(Command::new(&output).status().unwrap().success());
    std::fs::remove_file(&output).unwrap();
    std::fs::write(place.path("other.c"), b"int main(void) { return 1; }\n").unwrap();
    run("cc", &[&"-g", &"-Wl,--build-id", &"-o", &place.path("other"), &place.path("other.c")]);
    for (debug, why) in [
        (place.path("other"), "is of another build: their build ids differ"),
        (place.file("text", b"no ELF file"), ": not an ELF file"),
    ] {
        let (code, said) = with(&debug);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with("gleaner: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains("the separate debug information") && said.trim_end().ends_with(why), "{said}");
        assert!(!output.exists(), "an output");
    }
}

#[test]
fn what_is_no_file() {
    let place = Place::new();
    let output = place.path("output");
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()));
    for no_file in [place.folder.path(), Path::new("/dev/null"), &fifo] {
        assert_eq!(place.refused(no_file, &output), (Some(2), "not a regular file".to_owned()));
    }
    let missing = (Some(2), "No such file or directory".to_owned());
    assert_eq!(place.refused(&place.path("none"), &output), missing);
    assert_eq!(place.refused(Path::new(""), &output).0, Some(2));
}

#[test]
fn where_no_file_can_be() {
    let place = Place::new();
    let input = place.file("input", &program());
    let locked = place.path("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    let inside = input.join("output");
    let in_locked = locked.join("output");
    for (nowhere, why) in [
        (Path::new("/no/such/folder/output"), "No such file or directory"),
        (Path::new("/proc/output"), "No such file or directory"),
        (&inside, "Not a directory"),
        (place.folder.path(), "is a directory"),
        (Path::new("/dev/full"), "No space left on device"),
        (&in_locked, "Permission denied"),
    ] {
        if nowhere == in_locked && std::fs::write(locked.join("probe"), "").is_ok() {
            std::fs::remove_file(locked.join("probe")).unwrap();
            continue; // root may write anywhere
        }
        let (code, said) = place.refused(&input, nowhere);
        let wanted = format!("cannot write {}: {why}", nowhere.display());
        let code_by_contract = if why.starts_with("No space") { 3 } else { 2 };
        assert_eq!((code, said), (Some(code_by_contract), wanted));
    }
    let told = place.refused(&input, Path::new("-"));
    assert_eq!(
        told,
        (Some(2), "-o -: a rewritten file cannot go to standard output; give it a name".to_owned())
    );
}

#[test]
fn an_output_that_is_the_input() {
    let place = Place::new();
    let input = place.file("input", &program());
    let (hard, soft) = (place.path("hard"), place.path("soft"));
    std::fs::hard_link(&input, &hard).unwrap();
    std::os::unix::fs::symlink("input", &soft).unwrap();
    for output in [&input, &hard, &soft] {
        let told = place.refused(&input, output);
        assert_eq!(told, (Some(2), "the output would overwrite the original".to_owned()));
    }
    assert_eq!(std::fs::read(&input).unwrap(), program());
}

#[test]
fn devices_keep_their_rights() {
    let place = Place::new();
    let input = place.file("input", &program());
    std::fs::set_permissions(&input, std::fs::Permissions::from_mode(0o700)).unwrap();
    let rights = || std::fs::metadata("/dev/null").unwrap().permissions().mode();
    let before = rights();
    let ran = Command::new(env!("CARGO_BIN_EXE_gleaner"))
        .args(["twin", "--identity", "-q", "-o", "/dev/null"])
        .arg(&input)
        .output()
        .unwrap();
    let after = rights();
    if after != before {
        std::fs::set_permissions("/dev/null", std::fs::Permissions::from_mode(before)).unwrap();
    }
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(after, before);
}

/// Needs a file system of its own, so root or user namespaces; `make test` names it as skipped
/// where it has neither.
#[test]
fn on_a_full_disk_there_is_no_half_of_a_file() {
    let place = Place::new();
    let input = place.file("input", &program());
    let disk = place.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = r#"
        mount -t tmpfs -o size=32k none "$1" || exit 77
        cd "$1" && printf old > there || exit 77
        "$2" twin --identity -q -o there "$3"; echo "exit $?"
        "$2" twin --identity -q -o new "$3"; echo "exit $?"
        cat there; ls -A
    "#;
    let run = |flags: &str| {
        Command::new("unshare")
            .args([flags, "sh", "-c", script, "sh"])
            .args([&disk, Path::new(env!("CARGO_BIN_EXE_gleaner")), &input])
            .env("LC_ALL", "C")
            .output()
    };
    let mounted = |o: &std::process::Output| o.status.success() && !o.stdout.is_empty();
    let Some(output) = ["-m", "-rm"].into_iter().filter_map(|f| run(f).ok()).find(mounted) else {
        eprintln!("skipped: no file system of our own can be mounted here");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "exit 3\nexit 3\noldthere\n");
    let said = "gleaner: cannot write there: No space left on device\ngleaner: cannot write new: No space left on device\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
}

#[test]
fn an_output_that_stood_there_stays_when_the_input_is_refused() {
    let place = Place::new();
    let input = place.file("input", b"no program");
    let output = place.file("output", b"what was there");
    assert_eq!(place.refused(&input, &output), (Some(2), "not an ELF file".to_owned()));
}
