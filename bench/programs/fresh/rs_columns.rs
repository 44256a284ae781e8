// expect: load=column data=site level=DRAM|L3 memory=yes
// A matrix as a vector of vectors, summed up by columns.
use std::time::{Duration, Instant};

#[inline(never)]
fn column(rows: &[Vec<f64>], at: usize) -> f64 {
    let mut sum = 0.0;
    for row in rows {
        sum += row[at]; // HOT
    }
    sum
}

fn main() {
    let columns = 56;
    let rows: Vec<Vec<f64>> = (0..600_000)
        .map(|row| vec![row as f64; columns]) // DATA
        .collect();
    let (mut sum, mut at) = (0.0, 0);
    let ends = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < ends {
        sum += column(&rows, at);
        at = (at + 13) % columns;
    }
    println!("{}", sum > 0.0);
}
