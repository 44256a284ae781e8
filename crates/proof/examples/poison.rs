use std::time::Instant;
fn main() {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path).unwrap();
        let t = Instant::now();
        let identity = std::env::var_os("IDENTITY").is_some();
        let mode =
            if identity { twin::Mode::Identity } else { twin::Mode::Poison(twin::VectorWidth::Avx512) };
        let r = match twin::rewrite(&data, None, mode) {
            Ok(r) => r,
            Err(e) => {
                println!("{path}: refused {e}");
                continue;
            }
        };
        let a = t.elapsed().as_secs_f64();
        let t = Instant::now();
        let found = gleaner_proof::check(&data, &r.bytes);
        let b = t.elapsed().as_secs_f64();
        match found {
            Ok(c) => {
                println!("{path}: proven, {} instructions, rewrite {a:.2} s, proof {b:.2} s", c.instructions)
            }
            Err(gleaner_proof::Refusal::Wrong { violations, total }) => {
                println!("{path}: {total} violations, rewrite {a:.2} s, proof {b:.2} s");
                for v in violations
                    .iter()
                    .take(std::env::var("SHOW").ok().and_then(|s| s.parse().ok()).unwrap_or(5))
                {
                    println!("   {v}");
                }
            }
            Err(e) => println!("{path}: {e}"),
        }
        if let Some(out) = std::env::var_os("OUT") {
            std::fs::write(out, &r.bytes).unwrap();
        }
    }
}
