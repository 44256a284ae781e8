//! `twin --identity|--poison IN OUT`: rewrites a file and says how it went, on a line (`REPORT=1`: all of it, as JSON).

use gleaner_twin::{Mode, VectorWidth, rewrite};
use std::os::unix::fs::PermissionsExt;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, from, to] = arguments.as_slice() else {
        eprintln!("usage: twin --identity|--poison IN OUT");
        std::process::exit(2);
    };
    let mode = match mode.as_str() {
        "--poison" => match std::env::var("WIDTH").as_deref() {
            Ok("sse") => Mode::Poison(VectorWidth::Sse),
            Ok("avx") => Mode::Poison(VectorWidth::Avx),
            _ => Mode::Poison(VectorWidth::Avx512),
        },
        _ => Mode::Identity,
    };
    let data = std::fs::read(from).expect("the input can be read");
    let begin = std::time::Instant::now();
    match rewrite(&data, None, mode) {
        Ok(rewritten) => {
            let took = begin.elapsed().as_secs_f64();
            std::fs::write(to, &rewritten.bytes).expect("the output can be written");
            let _ = std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755));
            let c = &rewritten.coverage;
            println!(
                "{from}: {}/{} functions, {} entries, {}/{} instructions, {} -> {} bytes, {took:.3} s, refused {:?}, kept {:?}",
                c.functions_twinned,
                c.functions,
                c.entries_patched,
                c.instructions_twinned,
                c.instructions_known,
                c.bytes_before,
                c.bytes_after,
                c.refusals,
                c.entries_kept,
            );
            if std::env::var_os("REPORT").is_some() {
                println!("{}", serde_json::to_string_pretty(c).unwrap_or_default());
            }
        }
        Err(error) => {
            println!("{from}: {error}");
            std::process::exit(1);
        }
    }
}
