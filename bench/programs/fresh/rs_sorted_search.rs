// expect: load=position|search data=site level=DRAM|L3 memory=yes
// Binary searches in a sorted vector of a gigabyte.
use std::time::{Duration, Instant};

#[inline(never)]
fn position(sorted: &[u64], key: u64) -> usize {
    let (mut low, mut high) = (0, sorted.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if sorted[middle] < key { // HOT
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn main() {
    let count = (1u64 << 30) / 8;
    let mut sorted = Vec::with_capacity(count as usize); // DATA
    for i in 0..count {
        sorted.push(i * 5);
    }
    let (mut draw, mut sum) = (1u64, 0);
    let ends = Instant::now() + Duration::from_millis(3000);
    while Instant::now() < ends {
        for _ in 0..1000 {
            draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum += position(&sorted, (draw >> 20) % (count * 5));
        }
    }
    println!("{}", sum > 0);
}
