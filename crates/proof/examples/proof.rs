//! `proof ORIGINAL REWRITTEN`: checks a rewritten file, says what was found and how long it took.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [original, rewritten] = arguments.as_slice() else {
        eprintln!("usage: proof ORIGINAL REWRITTEN");
        std::process::exit(2);
    };
    let read = |path: &str| std::fs::read(path).expect("the file can be read");
    let (original, rewritten) = (read(original), read(rewritten));
    let begin = std::time::Instant::now();
    let found = gleaner_proof::check(&original, &rewritten);
    println!("{:.3} s", begin.elapsed().as_secs_f64());
    match found {
        Ok(counts) => println!("{counts:?}"),
        Err(gleaner_proof::Refusal::Wrong { violations, total }) => {
            for violation in violations {
                println!("{violation}");
            }
            println!("{total} violations");
            std::process::exit(1);
        }
        Err(refusal) => {
            println!("{refusal}");
            std::process::exit(1);
        }
    }
}
