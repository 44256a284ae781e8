// expect: load=oldest data=site level=DRAM|L3 memory=yes
// A vector of boxes that was sorted by something else than where they lie.
use std::time::{Duration, Instant};

struct Person {
    age: u64,
    name: [u8; 72],
}

#[inline(never)]
fn oldest(people: &[Box<Person>]) -> u64 {
    let mut most = 0;
    for person in people {
        most = most.max(person.age); // HOT
    }
    most
}

fn main() {
    let mut draw: u64 = 1;
    let mut people = Vec::new();
    for _ in 0..3_000_000 {
        draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        people.push(Box::new(Person { age: draw >> 33, name: [7; 72] })); // DATA
    }
    for i in (1..people.len()).rev() {
        draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        people.swap(i, (draw >> 33) as usize % i);
    }
    let mut sum = 0u64;
    let ends = Instant::now() + Duration::from_millis(3000);
    while Instant::now() < ends {
        sum = sum.wrapping_add(oldest(&people));
    }
    println!("{} {}", sum > 0, people[0].name[0]);
}
