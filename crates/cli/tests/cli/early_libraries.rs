//! Libraries that are called before the runtime's constructor has run: they stay as they are
//! (`--libraries`), since no thread has an area then.

use testkit::Place;

/// With `-DCALLED` a library that is called; with `-DRESOLVER` one whose resolver calls it while
/// files are relocated; with `-DCONSTRUCTOR` one whose constructor does; with `-DFIRST` one that
/// is initialised before all others (`-z initfirst`); with `-DAUDITOR` a library that audits the
/// loader; else a program.
const SOURCE: &str = r#"
#include <link.h>
#include <stdio.h>
long walk(long);
#if defined(CALLED)
struct node { struct node *next; long value; char rest[48]; };
static struct node nodes[1 << 14];
long walk(long steps) {
    enum { N = 1 << 14 };
    if (!nodes[0].next)
        for (long i = 0, at = 0; i < N; i++) {
            long next = (at * 5 + 12345) % N;
            nodes[at].next = &nodes[next];
            nodes[at].value = i;
            at = next;
        }
    struct node *at = nodes;
    long sum = 0;
    for (; steps > 0; steps--) sum += at->value, at = at->next;
    return sum;
}
#elif defined(RESOLVER)
static long one(void) { return 1; }
static long two(void) { return 2; }
static long (*resolve(void))(void) { return walk(2000) > 5 ? two : one; }
long early(void) __attribute__((ifunc("resolve")));
#elif defined(CONSTRUCTOR)
static long sum;
static long (*volatile by_its_address)(long) = walk;
__attribute__((constructor)) static void before(void) { sum = by_its_address(2000); }
long early(void) { return sum; }
#elif defined(FIRST)
__attribute__((constructor)) static void first(void) {}
#elif defined(AUDITOR)
unsigned la_version(unsigned version) { return walk(2000) > 5 ? version : 0; }
#else
long early(void);
int main(void) {
    printf("%ld %ld\n", walk(3000000), early());
    return 7;
}
#endif
"#;

fn place() -> Place {
    let place = Place::uncompiled(SOURCE, env!("CARGO_BIN_EXE_gleaner"));
    let here = place.at(".").display().to_string();
    let (search, path) = (format!("-L{here}"), format!("-Wl,--no-as-needed,-rpath,{here}"));
    let make = |name: &str, arguments: &[&str]| {
        let all = [&["-O2", &search, &path], arguments].concat();
        assert!(place.compile("cc", name, &all), "{name}");
    };
    let library = |name: &str, arguments: &[&str]| make(name, &[&["-shared", "-fPIC"], arguments].concat());
    library("libcalled.so", &["-DCALLED"]);
    library("libresolver.so", &["-DRESOLVER", "-lcalled"]);
    library("libconstructor.so", &["-DCONSTRUCTOR", "-lcalled"]);
    library("libfirst.so", &["-DFIRST", "-Wl,-z,initfirst"]);
    library("auditor.so", &["-DAUDITOR", "-lcalled"]);
    // In this order the loader relocates the one that asks before the one that has to answer.
    make("resolved", &["-lcalled", "-lresolver", "-Wl,-z,now"]);
    make("behind", &["-lfirst", "-lconstructor", "-lcalled"]);
    make("audited", &["-lconstructor", "-lcalled"]);
    place
}

#[test]
fn programs_called_before_the_runtime_starts_are_not_rewritten() {
    let place = place();
    for (program, why) in [
        ("./resolved", "libresolver.so has indirect functions"),
        ("./behind", "libfirst.so is initialised before all others"),
        ("./audited", "an audit library (LD_AUDIT)"),
    ] {
        let auditor = || (program == "./audited").then(|| ("LD_AUDIT", place.at("auditor.so")));
        let alone = place.command(place.at(program)).envs(auditor()).output().unwrap();
        assert_eq!(alone.status.code(), Some(7), "{program}: {alone:?}");
        let harvest = |arguments: &[&str]| place.harvest(arguments).envs(auditor()).output().unwrap();
        for choose in ["paying", "every-load"] {
            let output = harvest(&["-q", "--libraries", "all", "--choose", choose, "--", program]);
            assert_eq!(
                (output.status, output.stdout),
                (alone.status, alone.stdout.clone()),
                "{program} {choose}"
            );
        }
        let plan = harvest(&["--libraries", "all", "--dry-run", "--", program]).stdout;
        let plan = String::from_utf8_lossy(&plan);
        let left = plan.split("\nleft alone ").find(|left| left.contains("/libcalled.so\n"));
        assert!(left.is_some_and(|left| left.contains(why)), "{program}: {plan}");
    }
}
