//! A writer that is killed at any moment leaves the old record or the new one, whole.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Not a test of its own: the other one starts it as the process to be killed.
#[test]
fn writer() {
    let Some(path) = std::env::var_os("GLEANER_KILL_TEST_PATH") else { return };
    let texts = [text('a'), text('b')];
    for text in texts.iter().cycle() {
        gleaner_records::write_bytes_atomically(Path::new(&path), text.as_bytes()).unwrap();
    }
}

fn text(letter: char) -> String {
    letter.to_string().repeat(300_000)
}

#[test]
fn killed_at_any_moment_the_file_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("record.json");
    let (mut seen_a, mut seen_b) = (0, 0);
    for round in 0..40_u64 {
        std::fs::write(&path, text('a')).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture"])
            .env("GLEANER_KILL_TEST_PATH", &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Killed at a moment that differs from round to round, once the writing has begun.
        let begun = Instant::now();
        while std::fs::read_to_string(&path).unwrap() == text('a') && begun.elapsed() < Duration::from_secs(5)
        {
        }
        std::thread::sleep(Duration::from_micros(617 * round % 9000));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = std::fs::read_to_string(&path).unwrap();
        if now == text('a') {
            seen_a += 1;
        } else {
            assert!(now == text('b'), "a file of {} bytes that is neither text", now.len());
            seen_b += 1;
        }
    }
    assert!(seen_a > 0 && seen_b > 0, "the writer was always stopped at the same text: {seen_a}, {seen_b}");
}
