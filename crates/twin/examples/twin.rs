//! Rewrites a file and says what it did:
//!
//! ```text
//! cargo run -p gleaner-twin --example twin -- --primary /bin/ls /tmp/ls.twin
//! ```
//!
//! `--identity` and `--poison` make a file that runs by itself; `--primary` and `--scavenger` put a
//! yield before every load of memory that is neither on the stack nor at a fixed place. Their
//! results run in a harvest only. `WIDTH=sse|avx` narrows vector registers; `REPORT=1` prints the
//! whole report as JSON.

use gleaner_twin::{
    Bounds, Coverage, Knowledge, LoadReach, Mode, Optimisations, SiteChoice, Sites, VectorWidth, rewrite,
};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

const USAGE: &str = "usage: twin --identity|--poison|--primary|--scavenger IN OUT";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, from, to] = arguments.as_slice() else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let width = match std::env::var("WIDTH").as_deref() {
        Ok("sse") => VectorWidth::Sse,
        Ok("avx") => VectorWidth::Avx,
        _ => VectorWidth::Avx512,
    };
    let sites = Sites {
        which: SiteChoice::EveryLoad(LoadReach::Usual),
        width,
        knowledge: Knowledge::OfCallers,
        save_all_at: BTreeSet::new(),
        optimisations: Optimisations::ALL,
    };
    let mode = match mode.as_str() {
        "--identity" => Mode::Identity,
        "--poison" => Mode::Poison(width),
        "--primary" => Mode::Primary(&sites),
        "--scavenger" => Mode::Scavenger(&sites, Bounds::default()),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    };
    let data = std::fs::read(from).expect("the input can be read");
    let begin = std::time::Instant::now();
    let rewritten = match rewrite(&data, None, mode) {
        Ok(rewritten) => rewritten,
        Err(why) => {
            println!("{from}: {why}");
            std::process::exit(1);
        }
    };
    let took = begin.elapsed().as_secs_f64();
    std::fs::write(to, &rewritten.bytes).expect("the output can be written");
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    println!("{from} → {to}, in {took:.3} s");
    tell(&rewritten.coverage);
    if std::env::var_os("REPORT").is_some() {
        println!("{}", serde_json::to_string_pretty(&rewritten.coverage).unwrap_or_default());
    }
}

fn tell(coverage: &Coverage) {
    let c = coverage;
    println!("  functions      {} of {} have a twin", c.functions_twinned, c.functions);
    for (why, count) in &c.refusals {
        println!("                 {count} have none: {why}");
    }
    println!("  entries        {} lead to their twins", c.entries_patched);
    for (why, count) in &c.entries_kept {
        println!("                 {count} do not: {why}");
    }
    println!(
        "  instructions   {} of {} copied, {} escapes to the original",
        c.instructions_twinned, c.instructions_known, c.escapes
    );
    println!("  jump tables    {}, for {} indirect jumps", c.jump_tables, c.indirect_jumps);
    println!(
        "  size           {} → {} bytes, of them {} of twins",
        c.bytes_before, c.bytes_after, c.twin_code_bytes
    );
    if let Some(inserted) = &c.harvest {
        println!(
            "  inserted       {} site yields, {} bound yields, {} leaves, {} return checks",
            inserted.sites, inserted.bounds, inserted.leaves, inserted.return_checks
        );
        for (why, count) in &inserted.left_out {
            println!("                 {count} loads without a yield: {why}");
        }
    }
}
