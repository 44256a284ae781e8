//! Matrix tiles (AMX), which no yield switches: a primary that has some in use over calls, and
//! scavengers that do, keep theirs.

use testkit::{Place, text, without_summary};

/// Loads tiles, follows a list for a while, checks that they are still there; repeats that.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { NODES = 1 << 19 };
static struct node { struct node *next; char rest[56]; } node[NODES];
__attribute__((noinline)) static struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
static struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } set = {1}, found;
static uint8_t in[1024], out[1024];
int main(int argc, char **argv) {
    if (syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18)) return 3;
    for (long i = 0; i < NODES; i++) node[i].next = &node[(i + 179424673) % NODES];
    for (int i = 0; i < 8; i++) { set.bytes[i] = 64; set.rows[i] = 16; }
    struct node *p = node;
    long rounds = atol(argv[1]), lost = 0;
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 1024; i++) in[i] = i * 7 + round;
        __asm__ volatile("ldtilecfg %0\n tileloadd (%1,%2,1), %%tmm3" :: "m"(set), "r"(in), "r"(64L));
        p = chase(p, 300000);
        __asm__ volatile("sttilecfg %0" : "=m"(found));
        if (memcmp(&set, &found, sizeof set)) { lost++; continue; }
        __asm__ volatile("tilestored %%tmm3, (%0,%1,1)\n tilerelease" :: "r"(out), "r"(64L) : "memory");
        lost += memcmp(in, out, sizeof in) != 0;
    }
    printf("%ld of %ld lost, %ld\n", lost, rounds, p - node);
    return lost != 0;
}
"#;

#[test]
fn tiles_stay_with_the_threads_that_loaded_them() {
    let place = Place::new(PROGRAM, env!("CARGO_BIN_EXE_gleaner"));
    let alone = |rounds: &str| place.command("./p").arg(rounds).output().unwrap();
    let (long, short) = (alone("100"), alone("3"));
    if long.status.code() == Some(3) {
        return eprintln!("skipped: no tiles here");
    }
    let mut harvest =
        place.harvest(&["--max-slowdown", "1000%", "--scavenger-out", "out/", "--record", "run.json"]);
    harvest.args(["--scavenger", "./p 3", "--scavenger", "./p 100000", "--", "./p", "100"]);
    let harvested = harvest.output().unwrap();
    assert_eq!(
        without_summary(&text(&harvested.stderr)),
        text(&long.stderr),
        "nor has a scavenger been killed"
    );
    assert_eq!(text(&harvested.stdout), text(&long.stdout));
    assert_eq!(harvested.status.code(), Some(0));
    let record = records::read::<records::run::Run>(&place.at("run.json")).unwrap().body;
    // It may have been ended with the primary before it came so far.
    if record.scavengers[0].process.ended == (records::run::Ended::Exited { code: 0 }) {
        assert_eq!(std::fs::read_to_string(place.at("out/1-p.out")).unwrap(), text(&short.stdout));
    }
}
