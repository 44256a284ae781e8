// expect: load=score data=site level=DRAM|L3 memory=yes
// Look-ups in a HashMap.
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[inline(never)]
fn score(points: &HashMap<u64, [u64; 3]>, draw: &mut u64, players: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..10_000 {
        *draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if let Some(found) = points.get(&((*draw >> 32) % players)) { // HOT
            sum += found[1]; // HOT
        }
    }
    sum
}

fn main() {
    let players = 5_000_000;
    let mut points = HashMap::with_capacity(players as usize); // DATA
    for player in 0..players {
        points.insert(player, [player; 3]);
    }
    let (mut draw, mut sum) = (1, 0u64);
    let ends = Instant::now() + Duration::from_millis(3000);
    while Instant::now() < ends {
        sum = sum.wrapping_add(score(&points, &mut draw, players));
    }
    println!("{}", sum > 0);
}
