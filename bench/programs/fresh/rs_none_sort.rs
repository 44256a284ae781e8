// expect: memory=no
// Short vectors, made, sorted and dropped.
use std::time::{Duration, Instant};

fn main() {
    let (mut draw, mut sum): (u64, u64) = (1, 0);
    let ends = Instant::now() + Duration::from_millis(2000);
    while Instant::now() < ends {
        let mut values: Vec<u64> = (0..300)
            .map(|_| {
                draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                draw >> 20
            })
            .collect();
        values.sort_unstable();
        sum = sum.wrapping_add(values[7]);
    }
    println!("{}", sum > 0);
}
