// expect: load=heaviest data=site level=DRAM|L3 memory=yes
// A vector of shared pointers in no order, of which the largest weight is looked for.
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Part {
    weight: u32,
    name: [u8; 60],
}

#[inline(never)]
fn heaviest(parts: &[Arc<Part>]) -> u32 {
    parts.iter().map(|part| part.weight).max().unwrap_or(0) // HOT
}

fn main() {
    let mut draw: u64 = 9;
    let mut parts: Vec<Arc<Part>> = (0..3_000_000)
        .map(|at| Arc::new(Part { weight: at ^ 77, name: [1; 60] })) // DATA
        .collect();
    for i in (1..parts.len()).rev() {
        draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        parts.swap(i, (draw >> 33) as usize % i);
    }
    let mut sum = 0u64;
    let ends = Instant::now() + Duration::from_millis(3000);
    while Instant::now() < ends {
        sum += u64::from(heaviest(&parts));
    }
    println!("{} {}", sum > 0, parts[0].name[0]);
}
