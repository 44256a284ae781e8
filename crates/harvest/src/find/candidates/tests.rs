//! Classes of loads as compilers write them: small C functions, compiled here.

use super::*;
use records::plan::LoadClass;
use std::process::Command;

/// The candidates of a C text.
fn compiled(text: &str, flags: &[&str]) -> Subject {
    subject(text, &[&["-shared", "-fPIC"], flags].concat(), Role::Primary)
}

fn subject(text: &str, flags: &[&str], role: Role) -> Subject {
    look_through("x.so", role, &object(text, flags), None).unwrap()
}

fn object(text: &str, flags: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (source, object) = (directory.path().join("x.c"), directory.path().join("x.so"));
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-o"]).arg(&object).args(flags).arg(&source);
    let status = compiler.status().expect("a C compiler");
    assert!(status.success());
    std::fs::read(&object).unwrap()
}

fn of<'c>(subject: &'c Subject, function: &str) -> Vec<&'c Candidate> {
    subject.candidates.iter().filter(|c| subject.place(c).function.as_deref() == Some(function)).collect()
}

fn classes(subject: &Subject, function: &str) -> Vec<LoadClass> {
    of(subject, function).into_iter().filter(|c| !c.same_line).map(|c| c.class).collect()
}

const TEXT: &str = r"
#include <stddef.h>
#include <stdint.h>
struct node { struct node *next, *left, *right; long key, value; };
void *chase(void **p, long n) { while (n--) p = *p; return p; }
long list(struct node *p) { long s = 0; for (; p; p = p->next) s += p->value; return s; }
struct node *find(struct node *t, long k) {
    while (t && t->key != k) t = k < t->key ? t->left : t->right;
    return t;
}
long scan(long *a, long n) { long s = 0; for (long i = 0; i < n; i++) s += a[i]; return s; }
long gather(long *a, int *i, long n) { long s = 0; for (; n--; i++) s += a[*i]; return s; }
long hashed(long *a, uint64_t n, uint64_t mask) {
    uint64_t x = 1; long s = 0;
    while (n--) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; s += a[x & mask]; }
    return s;
}
long pointers(struct node **a, long n) { long s = 0; for (long i = 0; i < n; i++) s += a[i]->value; return s; }
struct pair { long key; struct pair *child[2]; };
struct pair *descend(struct pair *t, long k) {
    while (t && t->key != k) t = t->child[k > t->key];
    return t;
}
unsigned least(unsigned *a, int *i, long n) { unsigned s = ~0u; for (; n--; i++) s = a[*i] < s ? a[*i] : s; return s; }
long marks(char *seen, int *i, long n) {
    long s = 0;
    for (; n--; i++) if (!seen[*i]) { seen[*i] = 1; s += 3 * *i; }
    return s;
}
long called(long *a, int *i, long n, long (*f)(long)) { long s = 0; for (; n--; i++) s += f(a[*i]); return s; }
long locked(long *a, int *i, long n) { long s = 0; for (; n--; i++) s += __sync_fetch_and_add(&a[*i], 3); return s; }
long until(long *a, int *i, long n) { long s = 0; while (s < n) s += a[*i++]; return s; }
long lists(struct node **p, long n) { long s = 0; for (; n--; p++) for (struct node *q = *p; q; q = q->next) s += q->key; return s; }
long walk(struct node *n) { return n ? n->value + walk(n->left) + walk(n->right) : 0; }
";

#[test]
fn rounds_that_do_not_wait_for_one_another_are_known() {
    let found = compiled(TEXT, &["-O2", "-fno-tree-vectorize", "-fno-unroll-loops"]);
    // Of the loads that may miss.
    let rounds = |function: &str| {
        let slow = |c: &&Candidate| !matches!(c.class, LoadClass::Strided | LoadClass::Fixed);
        let found: Vec<_> = of(&found, function).into_iter().filter(slow).map(|c| c.round).collect();
        assert!(!found.is_empty(), "{function} has none");
        found
    };
    for function in ["gather", "hashed", "pointers", "least"] {
        let told = rounds(function);
        assert!(told.iter().all(|round| round.is_some_and(|n| (3..20).contains(&n))), "{function}: {told:?}");
    }
    for function in ["chase", "list", "find", "descend", "marks", "called", "locked", "until", "lists"] {
        let told = rounds(function);
        assert!(told.iter().all(Option::is_none), "{function}: {told:?}");
    }
}

#[test]
fn loads_are_classed_by_where_their_addresses_come_from() {
    use LoadClass::{Chased, Gathered, Pointed, Scattered, Strided};
    let found = compiled(TEXT, &["-O2", "-fno-tree-vectorize", "-fno-unroll-loops"]);
    assert_eq!(classes(&found, "chase"), [Chased]);
    assert_eq!(classes(&found, "list"), [Chased]);
    assert_eq!(classes(&found, "find"), [Chased]);
    assert_eq!(
        classes(&found, "descend"),
        [Chased],
        "the child lies beside the key: {:#?}",
        of(&found, "descend")
    );
    assert_eq!(classes(&found, "scan"), [Strided]);
    let mut gather = classes(&found, "gather");
    gather.sort();
    assert_eq!(gather, [Gathered, Strided]);
    assert_eq!(classes(&found, "hashed"), [Scattered]);
    let mut pointers = classes(&found, "pointers");
    pointers.sort();
    assert_eq!(pointers, [Pointed, Strided]);
    assert!(classes(&found, "walk").iter().all(|class| [Pointed, Chased].contains(class)));
}

#[test]
fn values_kept_in_the_frame_are_followed() {
    let found = compiled(TEXT, &["-O0"]);
    assert!(classes(&found, "chase").contains(&LoadClass::Chased), "{:#?}", of(&found, "chase"));
    assert!(classes(&found, "gather").contains(&LoadClass::Gathered), "{:?}", classes(&found, "gather"));
    assert!(!classes(&found, "scan").contains(&LoadClass::Chased));
}

#[test]
fn places_are_named() {
    let data = object(TEXT, &["-shared", "-fPIC", "-O2"]);
    let found = look_through("x.so", Role::Primary, &data, None).unwrap();
    let mut chase = found.place(of(&found, "chase")[0]);
    crate::find::names::complete(&mut chase, &image::names::Names::of(&data, None));
    let source = chase.source.as_ref().expect("a line");
    assert!(source.file.ends_with("x.c"), "{source:?}");
    assert_eq!(TEXT.lines().nth(source.line as usize - 1).map(|l| l.starts_with("void *chase")), Some(true));
    assert!(chase.instruction.starts_with("mov r") && chase.instruction.ends_with(']'), "{chase:?}");
    assert!((1..64).contains(&chase.offset), "{chase:?}");
}

#[test]
fn independent_loads_of_a_block_form_a_group() {
    let text = "long two(long **a, long **b, long n) { long s = 0;\n\
        while (n--) { s += (long)a ^ (long)b; a = (long **)*a; b = (long **)*b; } return s; }";
    let found = compiled(text, &["-O2"]);
    let two = of(&found, "two");
    assert_eq!(two.len(), 2, "{two:?}");
    assert_eq!(two[0].group, two[1].group);
}
