// expect: load=around data=site level=L2 memory=yes
// A linked list by indices, which takes an eighth of L2.
use std::time::{Duration, Instant};

struct Node {
    next: u32,
    rest: [u32; 15],
}

#[inline(never)]
fn around(nodes: &[Node], from: u32, steps: u32) -> u32 {
    let mut at = from;
    for _ in 0..steps {
        at = nodes[at as usize].next; // HOT
    }
    at
}

fn main() {
    let l2: usize = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1 << 20);
    let count = (l2 / 8 / 64).next_power_of_two();
    let mut nodes = Vec::with_capacity(count); // DATA
    for i in 0..count {
        let next = i.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407) & (count - 1);
        nodes.push(Node { next: next as u32, rest: [i as u32; 15] });
    }
    let mut at = 0;
    let ends = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < ends {
        at = around(&nodes, at, 10_000);
    }
    println!("{} {}", at as usize <= count, nodes[0].rest[3]);
}
