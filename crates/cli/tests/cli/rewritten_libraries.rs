//! Libraries that are rewritten with the programs that are linked to them (`--libraries`): there is
//! company aboard while a primary waits in one, and a scavenger that works in one comes aboard; and
//! nobody notices that another file was loaded.

use std::process::Output;
use testkit::{Place, without_summary};

/// With `-DINNER` a library, with `-DOUTER` one that needs it, with `-DLOADS` too, and may load
/// others; else a program that calls that.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
long inner(long);
long walk(long);
#if defined(INNER)
long inner(long n) { return n * 3; }
#elif defined(OUTER)
struct node { struct node *next; long value; char rest[48]; };
static struct node *nodes;
static long early;
static long (*volatile by_its_address)(long) = walk;
/* Before main, and before the program's own. */
__attribute__((constructor)) static void build(void) {
    enum { N = 1 << 17 };
    nodes = malloc(N * sizeof *nodes);
    for (long i = 0, at = 0; i < N; i++) {
        long next = (at * 5 + 12345) % N;
        nodes[at] = (struct node){ &nodes[next], i };
        at = next;
    }
    early = by_its_address(1000);
}
long walk(long steps) {
    struct node *at = nodes;
    long sum = 0;
    for (; steps > 0; steps--) sum += at->value, at = at->next;
    return sum + inner(early);
}
#ifdef LOADS
void *load(const char *name) { return dlopen(name, RTLD_NOW); }
#endif
#else
static int there(const char *path) {
    char text[4096] = "";
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return strstr(text, "end") != 0;
}
int main(int argc, char **argv) {
    long sum = walk(5000000);
    Dl_info info;
    dladdr((void *)walk, &info);
    void *again = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    printf("%ld %s %d\n", sum, info.dli_fname, again && dlsym(again, "walk") == (void *)walk);
    fflush(stdout);
    if (!fork()) return walk(1000000) & 63;
    int status;
    wait(&status);
    printf("%d\n", WEXITSTATUS(status));
    fflush(stdout);
    system("env | sort | grep ^LD_; echo end");
    while (argc > 1 && !there(argv[1])) walk(1000000), usleep(1000); /* for scavengers at home */
    return 7;
}
#endif
"#;

fn place() -> Place {
    let place = Place::uncompiled(SOURCE, env!("CARGO_BIN_EXE_gleaner"));
    std::fs::create_dir(place.at("lib")).unwrap();
    let search = format!("-L{}", place.at("lib").display());
    let library = |name: &str, arguments: &[&str]| {
        let soname = format!("-Wl,-soname,{name}");
        let all = [&["-shared", "-fPIC", &soname], arguments].concat();
        assert!(place.compile("cc", &format!("lib/{name}"), &all), "{name}");
    };
    library("libinner.so.1", &["-DINNER"]);
    // One looks for the other beside itself.
    let outer = [
        "-DOUTER",
        "-Wl,--no-as-needed",
        &search,
        "-l:libinner.so.1",
        "-Wl,-rpath,$ORIGIN,--enable-new-dtags",
    ];
    library("libouter.so.1", &outer);
    library("libloads.so.1", &[&outer[..], &["-DLOADS"]].concat());
    let program = |name: &str, library: &str, tags: &str| {
        let path = format!("-Wl,-rpath,{}", place.at("lib").display());
        let linked = format!("-l:{library}");
        let unresolved = "-Wl,--unresolved-symbols=ignore-in-shared-libs,--no-as-needed";
        let arguments = [unresolved, &search, &linked, &path, tags];
        assert!(place.compile("cc", name, &arguments), "{name}");
    };
    program("walker", "libouter.so.1", "-Wl,--enable-new-dtags");
    program("older", "libouter.so.1", "-Wl,--disable-new-dtags");
    program("loader", "libloads.so.1", "-Wl,--enable-new-dtags");
    place
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), without_summary(&text(&output.stderr)))
}

fn record(place: &Place) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(place.at("run.json")).unwrap()).unwrap()
}

#[test]
fn a_librarys_loads_give_way() {
    let place = place();
    let alone = told(&place.command(place.at("walker")).output().unwrap());
    assert!(alone.0 == Some(7) && alone.1.contains("/lib/libouter.so.1 1\n"), "{alone:?}");
    for libraries in ["all", "libouter", "libouter.so.1,libinner"] {
        let options = ["--libraries", libraries, "--record", "run.json", "--scavenger-out", "out"];
        let _ = std::fs::remove_file(place.at("out"));
        // That the scavenger's exit code is not 0 is no news.
        let both = ["-q", "--scavenger", "./walker", "--", "./walker", "out"];
        let mut command = place.harvest(&[&options[..], &both].concat());
        assert_eq!(told(&command.output().unwrap()), alone, "{libraries}");
        assert_eq!(std::fs::read_to_string(place.at("out")).unwrap(), alone.1, "{libraries}, as a scavenger");
        let run = record(&place);
        let boarded = run["scavengers"][0]["times"]["aboard"]["value"].as_f64();
        assert!(boarded.is_some_and(|seconds| seconds > 0.0), "{run:#}");
        let library = place.at("lib/libouter.so.1").display().to_string();
        let sites = run["sites"].as_array().unwrap();
        assert!(sites.iter().any(|site| site["file"] == library.as_str()), "{run:#}");
        assert_eq!(run["primary"]["ended"]["code"], 7);
    }
}

#[test]
fn what_cannot_be_rewritten_is_named() {
    let place = place();
    let harvest = |arguments: &[&str]| told(&place.harvest(arguments).output().unwrap());
    let library = |name: &str| place.at("lib").join(name).display().to_string();
    let (code, _, line) = harvest(&["--libraries", "libouter,libnone,libx.so.2", "--", "./walker"]);
    let expected = "gleaner: --libraries: libnone, libx.so.2: none of these programs is linked to it\n";
    assert_eq!((code, line.as_str()), (Some(2), expected));

    let (code, _, line) = harvest(&["--libraries", " ,", "--", "./walker"]);
    assert!(code == Some(2) && line.contains("not the name of a library"), "{line}");

    // What is loaded beside it is loaded by a name that nobody knows before.
    let (code, _, line) = harvest(&["--libraries", "libloads", "--", "./loader"]);
    let expected = format!(
        "gleaner: {}: not rewritten: it may load libraries relative to its own directory ($ORIGIN), and its rewritten copy lies elsewhere\n",
        library("libloads.so.1")
    );
    assert_eq!((code, line), (Some(7), expected));

    let (code, _, line) = harvest(&["--libraries", "libouter", "--", "./older"]);
    let expected = format!(
        "gleaner: {}: rewritten, but the program's loader loaded another file of that name, found through DT_RPATH\n",
        library("libouter.so.1")
    );
    assert_eq!((code, line), (Some(7), expected));

    let (code, plan, _) = harvest(&["--libraries", "libc,libouter", "--dry-run", "--", "./walker"]);
    assert_eq!(code, Some(0));
    assert!(
        plan.contains("not rewritten: part of its code runs before the runtime is initialised\n"),
        "{plan}"
    );
    assert!(plan.contains(&format!("primary      {}\n", library("libouter.so.1"))), "{plan}");

    // Its loader is said to be another one, and is not asked.
    let mut foreign = std::fs::read(place.at("walker")).unwrap();
    let at = foreign.windows(9).position(|name| name == b"/ld-linux").unwrap();
    foreign[at + 4..at + 9].copy_from_slice(b"other");
    let (_, names) = foreign[..at].split_at(foreign[..at].iter().rposition(|&byte| byte == 0).unwrap() + 1);
    let named = format!("{}/ld-other", String::from_utf8_lossy(names));
    std::fs::write(place.at("foreign"), &foreign).unwrap();
    let mode = std::fs::metadata(place.at("walker")).unwrap().permissions();
    std::fs::set_permissions(place.at("foreign"), mode).unwrap();
    let (_, plan, _) = harvest(&["--libraries", "all", "--dry-run", "--", "./foreign"]);
    let expected =
        format!("left alone   ./foreign\n  its libraries are not rewritten: its dynamic loader, {named}");
    assert!(plan.contains(&expected), "{plan}");
}

#[test]
fn a_plan_with_libraries_can_be_used_again() {
    let place = place();
    let harvest = |arguments: &[&str]| told(&place.harvest(arguments).output().unwrap());
    let made = harvest(&["--libraries", "all", "--dry-run", "--record", "plan.json", "--", "./walker"]);
    assert_eq!(made.0, Some(0), "{}", made.2);
    let alone = told(&place.command(place.at("walker")).output().unwrap());
    assert_eq!(harvest(&["--libraries", "all", "--plan", "plan.json", "--", "./walker"]), alone);
}
