//! A primary's yields are switched on while a guest may come aboard, and off where they do not pay.

use records::run::{Run, SiteRun};
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use testkit::{Place, wait_for, wait_until};

/// A ring that is in no cache, and at each of its nodes a table that always is: for a number of
/// steps, or until it is killed. `fork FILE`: as soon as there is the file, it goes on with a
/// child. `locked`: nothing of it becomes both writable and executable (`PR_SET_MDWE`), until it is
/// killed.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
struct node { struct node *next; char more[56]; };
static uint64_t table[64];
static volatile uint64_t seen;
static __attribute__((noinline)) uint64_t look(struct node *at, uint64_t steps) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i != steps; i++) {
        at = at->next;
        uint64_t k = (uintptr_t)at >> 6;
        for (int j = 0; j < 6; j++) { k = table[k & 63] + sum; sum += k; }
    }
    return sum;
}
// For the sake of their number.
static __attribute__((noinline)) struct node *tens(struct node *at, int times) {
    while (times--) at = at->next->next->next->next->next->next->next->next->next->next;
    return at;
}
int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "locked")) {
        (void)prctl(65, 1, 0, 0, 0); // since Linux 6.3
        argc = 1;
    }
    size_t count = 1 << 20;
    struct node *all = aligned_alloc(1 << 21, count * sizeof *all);
    madvise(all, count * sizeof *all, MADV_HUGEPAGE);
    uint32_t *order = malloc(count * sizeof *order);
    uint64_t seed = 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t other = (seed >> 33) % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (size_t i = 0; i < count; i++) all[order[i]].next = &all[order[(i + 1) % count]];
    for (int i = 0; i < 64; i++) table[i] = 7 * i;
    if (argc > 3) seen = (uintptr_t)tens(all, argc);
    if (argc > 2) {
        while (access(argv[2], F_OK)) seen = look(all, 100000);
        fork();
        seen = look(all, -1);
    }
    printf("%llu\n", (unsigned long long)look(all, argc > 1 ? atoll(argv[1]) : -1));
}
"#;
const JUMP: u8 = 0xe9;
const PATIENCE: Duration = Duration::from_secs(100);

fn place() -> Place {
    Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"))
}

fn number(text: &str) -> i32 {
    text.trim().parse().expect("a number")
}

/// Children of a process.
fn children(pid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(number).collect()
}

/// Where the bytes are by which a primary's yields are switched, in its memory, and what its file
/// has there.
fn switches(pid: i32) -> Option<Vec<(u64, u8)>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let of_twin = |line: &&str| line.contains("/twins/") && line.contains(" 00000000 ");
    let line = maps.lines().find(of_twin)?;
    let base = u64::from_str_radix(line.split('-').next()?, 16).ok()?;
    let file = fs::read(line.split_whitespace().last()?).ok()?;
    let image = image::Image::parse(&file).ok()?;
    let bias = base - image.span().0;
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes"));
    let map = file.windows(8).position(|window| window == b"GLNRTWIN")?;
    let (count, first) = (word(map + 48) as usize, map + word(map + 56) as usize);
    // Behind the yield's jump and where it goes on; 0: it is always on.
    let places = (0..count).map(|row| word(first + 32 * row + 16)).filter(|&place| place != 0);
    let with_byte = |place: u64| {
        let byte = file[image.file_offset(units::Svma(place)).expect("code").0 as usize];
        (bias + place, byte)
    };
    Some(places.map(with_byte).collect())
}

/// Waits until a primary's switches are on, or off.
fn wait_for_switches(pid: i32, on: bool) {
    let what = if on { "all switches are on" } else { "all switches are off" };
    wait_until(what, PATIENCE, || {
        let Some(switches) = switches(pid).filter(|switches| !switches.is_empty()) else { return false };
        let memory = fs::File::open(format!("/proc/{pid}/mem")).expect("the memory of a child");
        let are = |at: u64, byte: u8| {
            let mut found = [0];
            memory.read_exact_at(&mut found, at).is_ok() && found[0] == byte
        };
        let all_are = switches.iter().all(|&(at, off)| are(at, if on { JUMP } else { off }));
        assert!(!all_are || switches.iter().all(|&(_, off)| off != JUMP));
        all_are
    });
}

/// The primary of a launcher, once it is there.
fn primary(launcher: &Child) -> i32 {
    let named =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "p");
    wait_for("a primary", PATIENCE, || children(launcher.id() as i32).into_iter().find(named))
}

/// Beside a scavenger that ends. How many there are.
fn on_and_off(place: &Place, primary_is: &[&str]) -> usize {
    let scavenger = ["--scavenger", "./p 50000000"];
    let mut command = place.harvest(&[&scavenger[..], primary_is].concat());
    let mut launcher = command.stdout(Stdio::null()).spawn().expect("a launcher");
    let pid = primary(&launcher);
    wait_for_switches(pid, true);
    wait_for_switches(pid, false); // it has ended
    let count = switches(pid).map_or(0, |switches| switches.len());
    // They may be switched at this very moment, which takes a small part of a millisecond.
    let left_writable = |_| {
        std::thread::sleep(Duration::from_millis(3));
        fs::read_to_string(format!("/proc/{pid}/maps")).expect("the memory of a child").contains(" rwx")
    };
    assert!(!(0..20).all(left_writable), "code is left writable");
    assert!(testkit::kill("KILL", &pid.to_string()));
    launcher.wait().expect("it ends with its primary");
    count
}

#[test]
fn they_are_on_while_a_guest_may_come_aboard() {
    on_and_off(&place(), &["--", "./p"]);
}

/// Many are written at once, or one by one.
#[test]
fn so_are_many() {
    let place = place();
    for mode in [&[][..], &["locked"]] {
        let count = on_and_off(&place, &[&["--choose", "every-load", "--", "./p"], mode].concat());
        assert!(count >= 10, "only {count} switches");
    }
}

/// Nobody ever comes aboard there, though its parent has guests all the time.
#[test]
fn a_forked_childs_are_off() {
    let place = place();
    let mut command =
        place.harvest(&["--scavengers", "2 x ./p", "--max-slowdown", "5000%", "--", "./p", "fork", "go"]);
    let mut launcher = command.stdout(Stdio::null()).spawn().expect("a launcher");
    let parent = primary(&launcher);
    wait_for_switches(parent, true);
    fs::write(place.at("go"), "").expect("a file");
    let child = wait_for("the primary's child", PATIENCE, || children(parent).pop());
    wait_for_switches(child, false);
    wait_for_switches(parent, true);
    for pid in [child, parent] {
        assert!(testkit::kill("KILL", &pid.to_string()));
    }
    launcher.wait().expect("it ends with its primary");
}

#[test]
fn a_site_that_does_not_pay_is_switched_off() {
    let place = place();
    let scavengers =
        ["--stay-aboard", "--scavengers", "2 x ./p", "--max-slowdown", "5000%", "--record", "run.json"];
    // Busy machines take their time. Where none pays all stay on, and steps take much longer.
    let mut last = Duration::ZERO;
    for steps in ["10000000", "30000000", "100000000", "400000000"] {
        if last > Duration::from_secs(60) {
            break;
        }
        let primary = ["--choose", "every-load", "--", "./p", steps];
        let alone = place.command(place.at("p")).arg(steps).output().expect("it runs");
        let began = Instant::now();
        let output = place.harvest(&[&scavengers[..], &primary].concat()).output().expect("a launcher");
        last = began.elapsed();
        assert_eq!((output.status, &output.stdout), (alone.status, &alone.stdout));
        let record = records::read::<Run>(&place.at("run.json")).expect("a record").body;
        // Where all of the ring is in some cache, or nobody could watch, none pays and all stay.
        let pays = |site: &&SiteRun| site.watched > 1000 && site.hits.value().is_some_and(|hits| hits < 0.8);
        let loses = |site: &&SiteRun| site.watched > 300 && site.why_not.is_some();
        let one_should = record.sites.iter().any(|s| pays(&s)) && record.sites.iter().any(|s| loses(&s));
        if record.switched_off.is_empty() {
            assert!(!one_should, "none was switched off: {:?}", record.sites);
            continue;
        }
        for site in &record.switched_off {
            // `main` prepares the ring, by an array that is in a cache.
            let instruction = site.place.instruction.as_str();
            let prepares = site.place.function.as_deref() == Some("main");
            assert!(prepares || instruction.contains("*8]"), "the table's, not the ring's: {instruction}");
            assert!(site.why.contains("too soon for a miss"), "{}", site.why);
        }
        return;
    }
    eprintln!("no site pays on this machine, or nobody could watch: not tried");
}
