// expect: memory=no
// JSON text, built piece by piece.
use std::fmt::Write;
use std::time::{Duration, Instant};

fn quoted(text: &str, into: &mut String) {
    into.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                into.push('\\');
                into.push(letter);
            }
            '\n' => into.push_str("\\n"),
            _ => into.push(letter),
        }
    }
    into.push('"');
}

fn main() {
    let mut letters = 0;
    let ends = Instant::now() + Duration::from_millis(2000);
    while Instant::now() < ends {
        let mut text = String::from("[");
        for i in 0..200 {
            text.push_str("{\"name\":");
            quoted("a \"name\" with\na line", &mut text);
            write!(text, ",\"at\":{},\"part\":{:.3}}},", i, f64::from(i) / 7.0).unwrap();
        }
        text.push(']');
        letters += text.len();
    }
    println!("{}", letters > 0);
}
