// expect: load=ring_sum data=site level=DRAM memory=yes
// A linked list by indices into a vector of nodes.
use std::time::{Duration, Instant};

struct Node {
    next: u32,
    weight: u32,
    more: [u64; 6],
}

#[inline(never)]
fn ring_sum(nodes: &[Node], from: u32, steps: u32) -> (u32, u64) {
    let (mut at, mut sum) = (from, 0);
    for _ in 0..steps {
        let node = &nodes[at as usize];
        sum += u64::from(node.weight); // HOT
        at = node.next; // HOT
    }
    (at, sum)
}

fn main() {
    let l3: u64 = std::env::args().nth(3).and_then(|text| text.parse().ok()).unwrap_or(32 << 20);
    let bytes = (2 * l3).clamp(256 << 20, 1 << 30);
    let count = (bytes / 56).next_power_of_two();
    let step = |i: u64| (i.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407) & (count - 1)) as u32;
    let mut nodes = Vec::with_capacity(count as usize); // DATA
    for i in 0..count {
        nodes.push(Node { next: step(i), weight: i as u32, more: [i; 6] });
    }
    let (mut at, mut sum) = (0, 0u64);
    let ends = Instant::now() + Duration::from_millis(3000);
    while Instant::now() < ends {
        let (to, weight) = ring_sum(&nodes, at, 10_000);
        at = to;
        sum += weight;
    }
    println!("{} {}", sum > 0, nodes[5].more[1]);
}
