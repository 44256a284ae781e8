//! `gleaner profile` names data by the call that made it, where many calls go through one wrapper:
//! programs of several languages and shapes, each with data that is read often and its like that is
//! read once.

use crate::allocations::profiled;
use records::profile::{MemoryObject, Profile};
use testkit::{Place, text};

/// The object that the core waited for most, of those that were allocated.
fn hottest(profile: &Profile) -> Option<&MemoryObject> {
    profile.objects.iter().find(|object| object.site.is_some())
}

/// The source line that holds `marker`.
fn line(source: &str, marker: &str) -> u32 {
    let at = source.lines().position(|line| line.contains(marker)).expect("the marker is there");
    at as u32 + 1
}

/// Compiles and profiles; none where there is no such compiler, or no sampling.
fn profile_of(compiler: &str, source: &str, options: &[&str]) -> Option<(Profile, String)> {
    let place = Place::uncompiled(source, env!("CARGO_BIN_EXE_gleaner"));
    if !place.compile(compiler, "p", &[&["-g"], options].concat()) {
        eprintln!("not tried: {compiler} {options:?}");
        return None;
    }
    let (output, profile) = profiled(&place, &["--", "./p"])?;
    Some((profile, text(&output.stderr)))
}

/// Whether the data that is read often is named by the line that is marked `// hot`.
fn is_named_by_its_line(compiler: &str, source: &str, options: &[&str]) {
    let Some((profile, told)) = profile_of(compiler, source, options) else { return };
    let found = hottest(&profile).unwrap_or_else(|| panic!("{told}"));
    let site = found.site.as_ref().unwrap();
    assert_eq!(site.line, Some(line(source, "// hot")), "{options:?}: {found:?}\n{told}");
}

/// Random visits to objects of one of two sizes; the others are visited once.
const TWO_NEWS: &str = r"
#include <cstdlib>
#include <vector>
struct Cold { long words[15]; };
struct Hot { Hot *next; long words[16]; };
static volatile long sum;
int main() {
    const long n = 100000;
    std::vector<Cold *> cold(n);
    std::vector<Hot *> hot(n);
    for (long i = 0; i < n; i++) {
        cold[i] = new Cold;
        hot[i] = new Hot; // hot
    }
    for (long i = 0; i < n; i++) hot[i]->next = hot[(i * 0x5deece66d + 11) % n];
    for (long i = 0; i < n; i++) sum += (long)cold[i];
    Hot *at = hot[0];
    for (long i = 0; i < 12000000; i++) at = at->next;
    sum += (long)at;
}
";

#[test]
fn two_news_of_one_function_are_told_apart() {
    for optimized in ["-O0", "-O2"] {
        is_named_by_its_line("c++", TWO_NEWS, &[optimized]);
    }
}

/// The same wrapper, from two functions whose frames are alike.
const ONE_WRAPPER: &str = r"
#include <stdlib.h>
struct node { struct node *next; long words[15]; };
__attribute__((noinline)) static void *get_memory(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
__attribute__((noinline)) static void *xmalloc(size_t n) { char *p = get_memory(n + 8); *p = 1; return p + 8; }
__attribute__((noinline)) static struct node *cold(void) { struct node *p = xmalloc(sizeof *p); p->next = p; return p; }
__attribute__((noinline)) static struct node *warm(void) {
    struct node *p = xmalloc(sizeof *p); // hot
    p->next = 0;
    return p;
}
static struct node *volatile kept;
static struct node *all[2][100000];
int main(void) {
    const long n = 100000;
    for (long i = 0; i < n; i++) { all[0][i] = cold(); all[1][i] = warm(); }
    for (long i = 0; i < n; i++) all[1][i]->next = all[1][(i * 0x5deece66d + 11) % n];
    struct node *at = all[1][0];
    for (long i = 0; i < 12000000; i++) at = at->next;
    kept = at;
}
";

#[test]
fn a_wrapper_of_two_functions_is_passed_over() {
    let source = ONE_WRAPPER.replace("get_memory", "get_alloc");
    for optimized in ["-O0", "-O2", "-O2 -fomit-frame-pointer -fno-plt"] {
        let options: Vec<&str> = optimized.split(' ').collect();
        is_named_by_its_line("cc", &source, &options);
    }
}

/// Two containers that are filled in turns.
const CONTAINERS: &str = r"
#include <list>
#include <unordered_map>
static volatile long sum;
int main() {
    std::list<long> list;
    std::unordered_map<long, long> map;
    for (long i = 0; i < 300000; i++) {
        list.push_back(i);
        map[i * 7919] = i; // hot
    }
    for (long value : list) sum += value;
    unsigned long at = 1;
    for (long i = 0; i < 4000000; i++) {
        at = at * 6364136223846793005 + 1442695040888963407;
        sum += map.find((long)((at >> 33) % 300000) * 7919)->second;
    }
}
";

#[test]
fn containers_of_one_function_are_told_apart() {
    for optimized in ["-O0", "-O2"] {
        is_named_by_its_line("c++", CONTAINERS, &[optimized]);
    }
}

/// One template, inlined at two places.
const TEMPLATE: &str = r"
#include <cstdlib>
#include <memory>
struct Node { Node *next; long words[15]; };
template <class T> static inline T *made() { auto own = std::make_unique<T>(); return own.release(); }
static Node *cold[100000], *hot[100000];
static Node *volatile kept;
int main() {
    const long n = 100000;
    for (long i = 0; i < n; i++) {
        cold[i] = made<Node>();
        hot[i] = made<Node>();
    }
    for (long i = 0; i < n; i++) hot[i]->next = hot[(i * 0x5deece66d + 11) % n];
    Node *at = hot[0];
    for (long i = 0; i < 12000000; i++) at = at->next;
    kept = at;
}
";

#[test]
fn a_template_at_two_places_is_told_apart() {
    let Some((profile, told)) = profile_of("c++", TEMPLATE, &[]) else { return };
    let site = hottest(&profile).and_then(|object| object.site.as_ref()).unwrap_or_else(|| panic!("{told}"));
    let right = format!("main (p.c:{})", line(TEMPLATE, "hot[i] = made"));
    let wrong = format!("main (p.c:{})", line(TEMPLATE, "cold[i] = made"));
    assert!(site.stack.contains(&right) && !site.stack.contains(&wrong), "{site:?}\n{told}");
}

#[test]
fn the_table_of_a_python_dict_is_named() {
    let place = Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"));
    let program = "
d = {}
for i in range(400000):
    d[i * 7919 % 1000003] = i
at, s = 1, 0
for i in range(1500000):
    at = (at * 25214903917 + 11) % 1000003
    s += d.get(at, 0)
print(s)
";
    std::fs::write(place.at("p.py"), program).unwrap();
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        return;
    }
    let Some((output, profile)) = profiled(&place, &["--", python, "p.py"]) else { return };
    let told = text(&output.stderr);
    // Distributions strip its symbols, so that its functions may have no names: by size, then.
    let is_table = |object: &&MemoryObject| object.bytes.estimate().is_some_and(|bytes| bytes.hi >= 10e6);
    let allocated: Vec<_> = profile.objects.iter().filter(|object| object.site.is_some()).take(2).collect();
    let table = allocated.iter().find(|object| is_table(object)).unwrap_or_else(|| panic!("{told}"));
    let stack = &table.site.as_ref().unwrap().stack;
    assert!(stack.iter().all(|call| !call.starts_with('?')), "{table:?}");
    // Resizes of one table, and of no other data.
    assert!(table.count < 1000, "{table:?}\n{told}");
    let has_names = stack.iter().any(|call| call.starts_with("dictresize"));
    assert!(!has_names || table.name.contains("in new_keys_object"), "{table:?}");
}
