//! `gleaner top`: live on a terminal (that of tmux), and without one.

use crate::system::{Running, may_sample, mixed, place, started};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::{Place, kill, said, text, wait_until};

const LIMIT: Duration = Duration::from_secs(120);

/// A terminal of its own, in a server of its own; both go with the test.
struct Terminal<'p> {
    place: &'p Place,
    socket: String,
}

impl<'p> Terminal<'p> {
    /// Nothing where there is no tmux.
    fn new(place: &'p Place, program: &str) -> Option<Self> {
        if !Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_ok_and(|it| it.success()) {
            eprintln!("skipped: there is no tmux");
            return None;
        }
        let socket = place.at("tmux").to_str().unwrap().to_owned();
        let terminal = Self { place, socket };
        let begun =
            terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "30", program]);
        assert!(begun.status.success(), "{}", text(&begun.stderr));
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = self.place.command("tmux");
        command.env("LC_ALL", "C.UTF-8").env_remove("TMUX").args(["-S", &self.socket]).args(arguments);
        command.output().unwrap()
    }

    fn shown(&self) -> String {
        text(&self.tmux(&["capture-pane", "-p"]).stdout)
    }

    fn press(&self, key: &str) {
        assert!(self.tmux(&["send-keys", key]).status.success());
    }

    #[track_caller]
    fn wait_for(&self, what: &str) -> String {
        let mut last = String::new();
        let mut found = || {
            last = self.shown();
            last.contains(what)
        };
        for _ in 0..LIMIT.as_millis() / 50 {
            if found() {
                return last;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited for {what:?}: {last}")
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

/// A shell that says how the terminal was before and how it is behind the program, and stays.
fn between(options: &str) -> String {
    let gleaner = env!("CARGO_BIN_EXE_gleaner");
    format!(
        "sh -c 'stty -a > before; echo BEFORE; {gleaner} top {options}; echo CODE $?; stty -a > behind; \
         echo BEHIND; sleep 1000'"
    )
}

/// The terminal is what it was before, in mode and on the screen.
#[track_caller]
fn is_restored(terminal: &Terminal<'_>, code: &str) {
    let shown = terminal.wait_for("BEHIND");
    assert!(shown.contains("BEFORE") && shown.contains(code), "{shown}");
    assert!(!shown.contains("gleaner top:"), "the screen before is back: {shown}");
    let read = |name: &str| std::fs::read_to_string(terminal.place.at(name)).unwrap();
    // Its size may have been changed meanwhile.
    let modes =
        |text: String| text.split_once(';').map(|(_, rest)| rest.split_once("line").unwrap().1.to_owned());
    assert_eq!(modes(read("before")), modes(read("behind")));
    assert_eq!(text(&terminal.tmux(&["display-message", "-p", "#{cursor_flag}"]).stdout).trim(), "1");
}

/// The process that runs in the folder under this name.
fn top_in(place: &Place) -> String {
    let mut found = None;
    wait_until("gleaner top runs", LIMIT, || {
        let is_it = |pid: &String| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it.trim() == "gleaner")
        };
        found = testkit::pids_in(place.folder()).into_iter().find(is_it);
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn one_goes_from_a_program_to_the_code_that_waits() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let _programs: Vec<Running> = (0..4).map(|_| mixed(&place, 100, "waits-here")).collect();
    let Some(terminal) = Terminal::new(&place, &between("--interval 500ms --frequency 499 --budget 20"))
    else {
        return;
    };
    terminal.wait_for("waits-here");
    terminal.wait_for("all programs");
    terminal.press("h");
    terminal.wait_for("go into it");
    terminal.press("h");
    // Without names yet, no program waits; with them, this one waits most; others of the machine
    // may wait as much for a while.
    wait_until("one goes into the program that waits", LIMIT, || {
        if terminal.shown().contains(" > ") {
            terminal.press("Escape");
            std::thread::sleep(Duration::from_millis(200));
        }
        let is_first = || terminal.shown().lines().nth(3).is_some_and(|first| first.contains("waits-here"));
        if is_first() {
            terminal.press("Home");
            terminal.press("Enter");
            std::thread::sleep(Duration::from_millis(200));
        }
        terminal.shown().contains("all programs > waits-here")
    });
    terminal.wait_for("chase_the_ring");
    terminal.press("Home");
    terminal.press("Enter");
    terminal.wait_for("> chase_the_ring");
    terminal.wait_for("p.c:");
    terminal.press("Enter");
    let code = terminal.wait_for("> code");
    assert!(code.contains("mov rax,[rax]") || terminal.wait_for("waits").contains("mov"), "{code}");
    assert!(terminal.tmux(&["resize-window", "-x", "60", "-y", "10"]).status.success());
    wait_until("it fits the smaller screen", LIMIT, || {
        terminal.shown().lines().all(|line| line.chars().count() <= 60)
    });
    terminal.wait_for("> code");
    for _ in 0..3 {
        terminal.press("Escape");
    }
    wait_until("back", LIMIT, || !terminal.shown().contains(" > "));
    terminal.press("s");
    terminal.wait_for("sorted by CPU time");
    terminal.press("p");
    terminal.wait_for("PAUSED");
    terminal.press("q");
    is_restored(&terminal, "CODE 0");
}

#[test]
fn the_terminal_is_given_back_whatever_ends_it() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    for end in ["C-c", "TERM", "HUP", "INT"] {
        let Some(terminal) = Terminal::new(&place, &between("")) else { return };
        terminal.wait_for("gleaner top:");
        if end == "C-c" {
            terminal.press(end);
        } else {
            assert!(kill(end, &top_in(&place)));
        }
        is_restored(&terminal, "CODE 0");
    }
}

#[test]
fn text_without_a_terminal() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let _programs: Vec<Running> = (0..4).map(|_| mixed(&place, 100, "waits-here")).collect();
    let gleaner = |options: &[&str]| {
        let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
        command.arg("top").args(options).output().unwrap()
    };
    for options in [&["-n", "2", "--interval", "2s"][..], &["--batch", "-n", "1", "--interval", "2s"]] {
        let (code, out, told) = said(&gleaner(options));
        assert_eq!(code, Some(0), "{told}");
        assert!(!out.contains('\x1b'), "{out}");
        for word in ["waits-here", "chase_the_ring", "p.c:", "gleaner itself"] {
            assert!(out.contains(word), "{word}: {out}");
        }
    }
    let output = gleaner(&["--json", "-n", "2", "--interval", "1s", "--frequency", "499"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    let screens: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(screens.len(), 2, "{out}");
    let program = screens[1]["programs"].as_array().unwrap().iter().find(|it| it["name"] == "waits-here");
    let program = program.expect("the program");
    let waits = |of: &Value| of["now"]["waits"]["value"].as_f64().unwrap();
    assert!(waits(program) > 0.0 && program["processes"] == 4, "{program}");
    let function = &program["functions"][0];
    assert_eq!(function["name"], "chase_the_ring", "{program}");
    assert!(function["lines"][0]["line"].is_u64() && waits(&function["lines"][0]) > 0.0, "{function}");
    assert!(screens[1]["own"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn without_a_number_it_goes_on_until_it_is_stopped() {
    let place = place();
    if !may_sample(&place) {
        return;
    }
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    command.args(["top", "--interval", "300ms"]);
    let mut top = started(command);
    std::thread::sleep(Duration::from_secs(2));
    assert!(top.0.try_wait().unwrap().is_none());
    assert!(kill("TERM", &top.0.id().to_string()));
    assert_eq!(top.0.wait().unwrap().code(), Some(0));
}
