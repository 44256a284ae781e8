// expect: load=total data=site level=DRAM|L3 memory=yes
// Look-ups in a BTreeMap that was filled in no order.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[inline(never)]
fn total(stock: &BTreeMap<u64, u64>, draw: &mut u64, count: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..1000 {
        *draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let key = ((*draw >> 32) % count).wrapping_mul(0x9e3779b97f4a7c15);
        sum += stock.get(&key).copied().unwrap_or(0); // HOT
    }
    sum
}

fn main() {
    let count = 1_500_000u64;
    let mut stock = BTreeMap::new();
    for i in 0..count {
        stock.insert(i.wrapping_mul(0x9e3779b97f4a7c15), i); // DATA
    }
    let (mut draw, mut sum) = (1, 0u64);
    let ends = Instant::now() + Duration::from_millis(4000);
    while Instant::now() < ends {
        sum = sum.wrapping_add(total(&stock, &mut draw, count));
    }
    println!("{}", sum > 0);
}
