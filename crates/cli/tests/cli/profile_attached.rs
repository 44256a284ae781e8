//! `gleaner profile --pid` of servers that run: what they answer, their threads, files, signals and
//! memory are the same when the profiler has left.

use records::profile::{Profile, ProgramEnd};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use testkit::{Place, text, wait_for};

/// A server that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is left behind in a process, if anything is.
#[derive(Debug, PartialEq, Eq)]
struct State {
    threads: BTreeSet<String>,
    /// Of each: what it is.
    files: BTreeSet<(String, String)>,
    timers: String,
    /// Masks of signals, who traces it, and what is forbidden to it.
    status: Vec<String>,
    /// Files whose code it has mapped.
    modules: BTreeSet<String>,
}

fn state(pid: u32) -> State {
    let at = |file: &str| format!("/proc/{pid}/{file}");
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(at(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let text = |file: &str| std::fs::read_to_string(at(file)).unwrap_or_default();
    let target = |file: &String| {
        let target = std::fs::read_link(at(&format!("fd/{file}"))).unwrap_or_default();
        (file.clone(), target.to_string_lossy().into_owned())
    };
    let fields = ["TracerPid:", "SigBlk:", "SigIgn:", "SigCgt:", "Seccomp:", "Threads:"];
    let maps = text("maps");
    let is_code = |line: &&str| line.split(' ').nth(1).is_some_and(|rights| rights.contains('x'));
    State {
        threads: names("task"),
        files: names("fd").iter().map(target).collect(),
        timers: text("timers"),
        status: text("status")
            .lines()
            .filter(|line| fields.iter().any(|field| line.starts_with(field)))
            .map(str::to_owned)
            .collect(),
        modules: maps
            .lines()
            .filter(is_code)
            .filter_map(|line| line.split_once('/').map(|(_, path)| path.to_owned()))
            .collect(),
    }
}

/// Profiles a process; `None` where that is not allowed.
fn attached(place: &Place, pid: u32) -> Option<(Profile, String)> {
    let mut command = place.command(env!("CARGO_BIN_EXE_gleaner"));
    let pid = pid.to_string();
    command.args(["profile", "--frequency", "2000", "--to", "1500ms", "-o", "profile.json", "--pid", &pid]);
    let output = command.output().unwrap();
    let told = text(&output.stderr);
    if output.status.code() == Some(3) {
        eprintln!("skipped: {told}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
    let profile =
        records::read::<Profile>(&place.at("profile.json")).unwrap_or_else(|e| panic!("{e}: {told}"));
    assert_eq!(profile.body.program.ended, ProgramEnd::StillRunning, "{told}");
    assert!(profile.body.sampling.samples > 0, "{told}");
    Some((profile.body, told))
}

/// One request to redis, and its answer of one line or two.
fn asked(stream: &mut BufReader<UnixStream>, words: &[&str]) -> String {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.get_mut().write_all(request.as_bytes()).expect("a server that reads");
    let mut answer = String::new();
    stream.read_line(&mut answer).expect("a server that answers");
    if let Some(length) = answer.strip_prefix('$').and_then(|length| length.trim().parse::<usize>().ok()) {
        let mut body = vec![0; length + 2];
        stream.read_exact(&mut body).expect("the whole answer");
        return text(&body[..length]);
    }
    answer.trim().to_owned()
}

#[test]
fn redis_is_the_same_when_it_is_left() {
    let place = Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"));
    let mut command = place.command("redis-server");
    command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(place.at("socket"));
    let Ok(server) = command.stdout(Stdio::null()).spawn() else {
        eprintln!("skipped: no redis-server here (Debian: apt install redis-server)");
        return;
    };
    let server = Server(server);
    let pid = server.0.id();
    let connected = || {
        let stream =
            wait_for("redis", Duration::from_secs(60), || UnixStream::connect(place.at("socket")).ok());
        BufReader::new(stream)
    };
    let mut watcher = connected();
    let mut client = connected();
    let value = |key: u64| format!("{:x}", key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(8);
    let name = |key: u64| format!("key:{}", key % 5000);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let found = std::thread::scope(|scope| {
        // Each value is read back just after it was written, so one wrong answer is seen.
        let load = scope.spawn(|| {
            let mut wrong = Vec::new();
            while !stop.load(SeqCst) {
                let key = done.fetch_add(1, SeqCst);
                let set = asked(&mut client, &["SET", &name(key), &value(key)]);
                let got = asked(&mut client, &["GET", &name(key)]);
                if set != "+OK" || got != value(key) {
                    wrong.push((key, set, got));
                }
            }
            wrong
        });
        wait_for("some load", Duration::from_secs(60), || (done.load(SeqCst) > 1000).then_some(()));
        let before = state(pid);
        let found = attached(&place, pid);
        let at_end = done.load(SeqCst);
        wait_for("more load", Duration::from_secs(60), || (done.load(SeqCst) > at_end + 1000).then_some(()));
        let after = state(pid);
        stop.store(true, SeqCst);
        let wrong = load.join().expect("a client that ends");
        assert!(wrong.is_empty(), "{:?}", wrong.first());
        assert_eq!(before, after);
        found
    });
    assert_eq!(asked(&mut watcher, &["PING"]), "+PONG");
    let all = done.load(SeqCst);
    for key in all - 5000..all {
        assert_eq!(asked(&mut watcher, &["GET", &name(key)]), value(key));
    }
    let Some((profile, told)) = found else { return };
    assert!(profile.functions.iter().any(|function| function.module.contains("redis")), "{told}");
    assert!(profile.program.threads >= 1 && told.contains("still running"), "{told}");
}

/// Answers each line with a sum over an array that is gone through in random order.
const JAVA: &str = r"
import java.io.*;
public class Sums {
    static int[] next = new int[1 << 22];
    static long sum(int from, int steps) {
        long sum = 0;
        for (int i = 0; i < steps; i++) { from = next[from]; sum = sum * 31 + from; }
        return sum;
    }
    public static void main(String[] words) throws IOException {
        for (int i = 0; i < next.length; i++) next[i] = (int) ((i * 0x5deece66dL + 11) & (next.length - 1));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            System.out.println(sum(Integer.parseInt(line), 50000));
            System.out.flush();
        }
    }
}
";

#[test]
fn java_is_the_same_when_it_is_left() {
    let place = Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"));
    std::fs::write(place.at("Sums.java"), JAVA).unwrap();
    let is_compiled = place.command("javac").arg("Sums.java").stderr(Stdio::null()).status();
    if !is_compiled.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no javac here (Debian: apt install default-jdk-headless)");
        return;
    }
    // Threads that come and go by themselves would hide those that are left over.
    let mut command = place.command("java");
    command.args([
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:-UseDynamicNumberOfCompilerThreads",
        "-cp",
        ".",
        "Sums",
    ]);
    let mut server = Server(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let pid = server.0.id();
    let mut to = server.0.stdin.take().unwrap();
    let mut from = BufReader::new(server.0.stdout.take().unwrap());
    let mut next = vec![0_i64; 1 << 22];
    let last = next.len() as i64 - 1;
    for (i, next) in next.iter_mut().enumerate() {
        *next = (i as i64).wrapping_mul(0x5_deec_e66d).wrapping_add(11) & last;
    }
    let right = |from: i64| {
        let step =
            |(at, sum): (i64, i64)| (next[at as usize], sum.wrapping_mul(31).wrapping_add(next[at as usize]));
        (0..50_000).fold((from, 0), |state, _| step(state)).1
    };
    let mut ask = |number: i64| {
        writeln!(to, "{number}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line.trim().parse::<i64>().ok(), Some(right(number)), "of {number}");
    };
    let stop = AtomicBool::new(false);
    let asked = AtomicU64::new(0);
    let found = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            while !stop.load(SeqCst) {
                ask(asked.fetch_add(1, SeqCst) as i64);
            }
        });
        wait_for("some load", Duration::from_secs(60), || (asked.load(SeqCst) > 200).then_some(()));
        let before = state(pid);
        let found = attached(&place, pid);
        let at_end = asked.load(SeqCst);
        wait_for("more load", Duration::from_secs(60), || (asked.load(SeqCst) > at_end + 20).then_some(()));
        let after = state(pid);
        // What the first one says would help.
        let map = std::process::Command::new("jcmd").args([&pid.to_string(), "Compiler.perfmap"]).output();
        let named = map.is_ok_and(|map| map.status.success()).then(|| attached(&place, pid)).flatten();
        let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
        stop.store(true, SeqCst);
        load.join().expect("right answers");
        assert_eq!(before, after);
        found.map(|found| (found, named))
    });
    let Some(((profile, told), named)) = found else { return };
    assert!(profile.refusals.iter().any(|r| r.what == "names of code made at run time"), "{told}");
    assert!(told.contains("-XX:+DumpPerfMapAtExit") && !told.contains("perf-basic-prof"), "{told}");
    assert!(told.contains(&format!("run jcmd {pid} Compiler.perfmap")), "{told}");
    let Some((profile, told)) = named else { return };
    let load = profile.loads.first().unwrap_or_else(|| panic!("it waits: {told}"));
    assert!(load.function.as_deref().is_some_and(|name| name.contains("Sums")), "{told}");
    assert_eq!(load.object.as_deref(), Some("Java heap"), "{told}");
}
