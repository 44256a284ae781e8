//! `gleaner profile` of programs that go over large memory, and work on a small part of it at a
//! time: which level serves a load is not told by all that it ever reads.

use crate::allocations::profiled;
use records::profile::{Level, Profile, StallingLoad};
use testkit::{Place, text};

/// Reads 64 MiB in blocks of as many KiB as it is told, each block by as many reads in no order.
const BLOCKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define WORDS (8 << 20)
static unsigned long all[WORDS];
__attribute__((noinline, noclone)) static unsigned long block(const unsigned long *from, unsigned long mask, long n) {
    unsigned long at = 0, sum = 0;
    while (n--) { at = from[at & mask] + n; sum += at; }
    return sum;
}
int main(int count, char **words) {
    (void)count;
    unsigned long each = strtoul(words[1], 0, 10) * 128, sum = 0;
    long reads = strtol(words[2], 0, 10);
    for (unsigned long i = 0; i < WORDS; i++) all[i] = i * 0x9e3779b97f4a7c15 >> 17;
    for (unsigned long from = 0; from < WORDS; from += each) sum += block(all + from, each - 1, reads);
    printf("%lu\n", sum);
}
"#;

fn of_block<'p>(profile: &'p Profile, told: &str) -> &'p StallingLoad {
    let of_block = |load: &&StallingLoad| load.function.as_deref() == Some("block");
    profile.loads.iter().find(of_block).unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn blocks_that_are_read_again_and_again_do_not_come_from_memory() {
    let place = Place::new(BLOCKS, env!("CARGO_BIN_EXE_gleaner"));
    // 8192 blocks of 8 KiB, for half a millisecond each.
    let Some((output, profile)) = profiled(&place, &["--", "./p", "8", "100000"]) else { return };
    let told = text(&output.stderr);
    let load = of_block(&profile, &told);
    assert!(matches!(load.level, Level::L1 | Level::L2 | Level::Unresolved), "{load:#?}\n{told}");
    assert!(!load.beyond_l2, "{load:#?}\n{told}");
    if load.level != Level::L1 {
        assert!(load.level_because.contains("at most within"), "{load:#?}");
    }
    let dram = profile.summary.by_level.dram.estimate().unwrap();
    assert!(dram.value < 0.2, "{told}");
    // All of it as one block.
    let Some((output, profile)) = profiled(&place, &["--", "./p", "65536", "15000000"]) else { return };
    let told = text(&output.stderr);
    let load = of_block(&profile, &told);
    assert!(!matches!(load.level, Level::L1 | Level::L2), "{load:#?}\n{told}");
}
