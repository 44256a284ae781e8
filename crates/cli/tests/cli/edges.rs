//! What is seldom met, by the front door: names that are no text, small limits, pipes for output,
//! narrow terminals.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use testkit::{Place, said, text, without_summary};

/// Chases through a small list for a while, until a file (`until FILE BYTES`) is so long and a
/// while more, or as long as it may.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
static void *ring[64];
static void *volatile gone_through;
__attribute__((noinline)) static void **chase(void **p, long n) { while (n--) p = *p; return p; }
int main(int argc, char **argv) {
    for (int i = 0; i < 64; i++) ring[i] = &ring[(i + 5) % 64];
    void **p = chase(ring, 1000000);
    if (argc > 1 && !strcmp(argv[1], "spin")) for (;;) gone_through = p = chase(p, 1000000);
    if (argc > 3 && !strcmp(argv[1], "until")) {
        struct stat file;
        alarm(120);
        while (stat(argv[2], &file) || file.st_size < atol(argv[3])) gone_through = p = chase(p, 1000000), usleep(1000); /* for scavengers at home */
        gone_through = chase(p, 100000000);
    }
    if (argc > 1 && !strcmp(argv[1], "long")) gone_through = chase(p, 1000000000);
    if (argc > 1 && !strcmp(argv[1], "files")) {
        struct rlimit limit;
        struct sigaction action;
        getrlimit(RLIMIT_FSIZE, &limit);
        sigaction(SIGXFSZ, 0, &action);
        printf("%ld, %s\n", (long)limit.rlim_cur, action.sa_handler == SIG_DFL ? "ends" : action.sa_handler == SIG_IGN ? "ignored" : "?");
        return 6;
    }
    for (int i = 1; i < argc; i++) printf("%s\n", argv[i]);
    return 7;
}
"#;

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

/// A harvest that is begun by these words of a shell, of which the last begin it.
fn shell(place: &Place, words: &str) -> Command {
    let mut command = place.command("sh");
    command.args(["-c", words]).env("GLEANER", env!("CARGO_BIN_EXE_gleaner"));
    command
}

#[test]
fn names_may_be_any_bytes() {
    let place = place();
    let folder = place.folder().join(OsStr::from_bytes(b"n\xff\xc3 \\xff\nx"));
    std::fs::create_dir(&folder).unwrap();
    // Two that look alike where what is no text is left out: each is itself.
    for name in [b"p\xff".as_slice(), b"p\xfe"] {
        std::fs::copy(place.at("p"), folder.join(OsStr::from_bytes(name))).unwrap();
    }
    assert!(place.compile("cc", "other", &["-DRING", "-O1"]));
    std::fs::copy(place.at("other"), folder.join(OsStr::from_bytes(b"p\xfd"))).unwrap();
    for name in [b"./p\xff".as_slice(), b"./p\xfd"] {
        let mut harvest = place.harvest(&["--record", "run.json", "--scavenger-out", "out", "--scavenger"]);
        harvest.arg(OsStr::from_bytes(b"'./p\xfe' spin \xfa")).args(["--scavengers"]);
        harvest.arg(OsStr::from_bytes(b"2 x ./p\xfd 'a\xfb\n'")).arg("--").arg(OsStr::from_bytes(name));
        let _ = std::fs::remove_file(folder.join("out"));
        harvest.args(["until", "out", "8"]).arg(OsStr::from_bytes(b"\xf9")).current_dir(&folder);
        let output = harvest.output().unwrap();
        assert_eq!(output.stdout, b"until\nout\n8\n\xf9\n", "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(7));
        // Nothing that stands in names makes a line of it two. A program that has spoken may yet
        // end with the primary.
        let whole = |line: &str| {
            line.starts_with("gleaner: scavenger ./p")
                && line.ends_with(": exit code 7; its output is in out")
        };
        assert!(without_summary(&text(&output.stderr)).lines().all(whole), "{}", text(&output.stderr));
        assert_eq!(std::fs::read(folder.join("out")).unwrap(), b"a\xfb\n\na\xfb\n\n");
        let show = place
            .command(env!("CARGO_BIN_EXE_gleaner"))
            .arg("show")
            .arg(folder.join("run.json"))
            .arg(".primary.file")
            .output()
            .unwrap();
        let byte = name.last().unwrap();
        assert_eq!(text(&show.stdout), format!("./p\\x{byte:02x}\n"));
    }
    // A plan is for the same file again, and for no other.
    let harvest = |plan: &str, program: &[u8]| {
        let mut harvest = place.harvest(&[plan, "plan.json", "--scavenger", "../p spin"]);
        if plan == "--record" {
            harvest.arg("--dry-run");
        }
        harvest.arg(OsStr::from_bytes(program)).current_dir(&folder).output().unwrap()
    };
    assert_eq!(harvest("--record", b"./p\xff").status.code(), Some(0));
    assert_eq!(harvest("--plan", b"./p\xff").status.code(), Some(7));
    assert_eq!(harvest("--plan", b"./p\xfe").status.code(), Some(2));
}

#[test]
fn files_that_may_not_be_long_are_told_of_in_a_line() {
    let place = place();
    let harvest = "exec \"$GLEANER\" harvest --scavenger './p spin' -- ./p files";
    // The runtime is longer than the first, and what is rewritten than none.
    let little = shell(&place, &format!("ulimit -f 8; {harvest}")).output().unwrap();
    let (code, output, errors) = said(&little);
    assert_eq!((code, output.as_str()), (Some(3), ""), "{errors}");
    assert!(errors.starts_with("gleaner: ") && errors.lines().count() == 1, "{errors}");
    assert!(errors.ends_with("; the file size limit is too small (ulimit -f)\n"), "{errors}");
    // A limit that is large enough stays as it was for the primary, and so does what happens if it
    // writes more.
    let enough = "ulimit -Sf 100000";
    let bytes = text(&shell(&place, &format!("{enough}; ./p files")).output().unwrap().stdout);
    for (before, told) in [("", bytes.clone()), ("trap '' XFSZ; ", bytes.replace("ends", "ignored"))] {
        let output = shell(&place, &format!("{before}{enough}; {harvest}")).output().unwrap();
        assert_eq!(said(&output), (Some(6), told, String::new()));
    }
}

#[test]
fn a_record_that_no_program_reads_is_waited_for_no_longer_than_asked() {
    let place = place();
    assert!(place.command("mkfifo").arg("pipe").status().unwrap().success());
    let mut harvest = place.harvest(&["-q", "--record", "pipe", "--", "./p"]);
    let mut child =
        harvest.env("TMPDIR", place.folder()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    assert_eq!(line, "gleaner: no program reads the pipe pipe; waiting for one\n");
    assert!(testkit::kill("TERM", &child.id().to_string()));
    line.clear();
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    assert!(
        line.starts_with("gleaner: cannot write pipe: no program reads this pipe; the record is kept in "),
        "{line}"
    );
    // How the primary ended counts.
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn scavengers_write_into_pipes() {
    let place = place();
    assert!(place.command("mkfifo").arg("pipe").status().unwrap().success());
    let mut reader = place.command("sh").args(["-c", "exec cat pipe >read"]).spawn().unwrap();
    let scavengers = ["--scavenger-out", "pipe", "--scavengers", "2 x ./p a"];
    let primary = ["--", "./p", "until", "read", "4"];
    assert_eq!(place.harvest(&[&scavengers[..], &primary].concat()).output().unwrap().status.code(), Some(7));
    assert!(reader.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(place.at("read")).unwrap(), "a\na\n");
}

#[test]
fn processors_that_are_not_there_are_named() {
    let place = place();
    let output =
        place.harvest(&["--home-cpus", "0,63,70", "--scavenger", "./p spin", "--", "./p"]).output().unwrap();
    let (code, _, errors) = said(&output);
    assert_eq!(code, Some(2));
    let line =
        "gleaner: --home-cpus: 63, 70: not among the CPUs that scavengers may use here (of the first 64)\n";
    assert_eq!(
        errors,
        if std::path::Path::new("/sys/devices/system/cpu/cpu63").exists() {
            line.replace("63, ", "")
        } else {
            line.to_owned()
        }
    );
}

#[test]
fn addresses_that_are_no_loads_are_not_left_out() {
    let place = place();
    let plan = |excluded: &[&str]| {
        let mut harvest = place.harvest(&["--dry-run", "--json", "--choose", "chases", "--scavenger", "./p"]);
        for address in excluded {
            harvest.args(["--exclude", address]);
        }
        harvest.args(["--", "./p"]).output().unwrap()
    };
    let sites = |output: &std::process::Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let sites = plan["modules"][0]["sites"].as_array().unwrap().clone();
        sites.iter().map(|site| site["address"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let all = sites(&plan(&[]));
    let first = format!("{:#x}", all[0]);
    assert_eq!(sites(&plan(&[&first])), all[1..]);
    let refused = plan(&[&first, "0x1", "0x2"]);
    let told = text(&refused.stderr);
    assert_eq!((refused.status.code(), told.lines().count()), (Some(2), 1), "{told}");
    assert!(told.starts_with("gleaner: --exclude: 0x1, 0x2: no load of a loop"), "{told}");
}

/// Where it begins on its stack is drawn by the kernel each time; where nothing is left for the
/// loader, that ends by a fault.
#[test]
fn a_stack_of_sixteen_kib_is_told_of() {
    let place = place();
    let line = "gleaner: memory: the stack is limited to 16 KiB (ulimit -s); 128 KiB is enough\n";
    let mut told = 0;
    for _ in 0..60 {
        let mut harvest = place.command("prlimit");
        harvest.args(["--stack=16384", env!("CARGO_BIN_EXE_gleaner"), "harvest", "--", "/bin/true"]);
        harvest.env("RUST_BACKTRACE", "1").env("PADDING", "x".repeat(1000));
        let output = harvest.output().unwrap();
        if output.status.signal() != Some(11) {
            assert_eq!(said(&output), (Some(3), String::new(), line.to_owned()));
            told += 1;
        }
    }
    assert!(told > 0);
}

/// On a terminal of so few columns, what is drawn while it runs stays in its line.
#[test]
fn the_live_line_is_no_wider_than_the_terminal() {
    let place = place();
    for columns in [1, 30, 80] {
        let words = format!(
            "stty cols {columns} rows 5; \"$GLEANER\" harvest --live --scavengers '2 x ./p spin' -- ./p long >out 2>errors"
        );
        let mut script = place.command("script");
        script.args(["-qec", &words, "/dev/null"]).env("GLEANER", env!("CARGO_BIN_EXE_gleaner"));
        let output = script.output().expect("script, of util-linux");
        assert_eq!(output.status.code(), Some(7));
        let drawn = text(&output.stdout);
        let lines: Vec<&str> = drawn.split("\r\u{1b}[K").skip(1).collect();
        assert!(
            lines.len() > 1 && lines.iter().all(|line| line.chars().count() < columns),
            "{columns}: {lines:?}"
        );
        let whole = "gleaner: the primary runs alone gleaner: 0 guests aboard of 2 scavengers";
        assert!(
            columns == 1 || lines.iter().any(|line| whole.contains(line) || line.starts_with("gleaner: ")),
            "{lines:?}"
        );
    }
}
