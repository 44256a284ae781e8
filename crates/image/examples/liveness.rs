//! Which registers are live, instruction by instruction, in a function of a file; and how long
//! finding that out took: `cargo run --release -p gleaner-image --example liveness -- /bin/bash
//! [main]`
//!
//! Without a name it prints, for all of the file, digests of what was found, so that two versions
//! can be compared.

use gleaner_image as image;
use image::Module;
use image::code::groups::RelyOn;
use image::liveness::{Knowledge, Liveness};
use std::hash::{DefaultHasher, Hash, Hasher};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("usage: liveness FILE [FUNCTION]");
    let data = std::fs::read(&file).expect("the file can be read");
    let begin = cpu_seconds();
    let module = Module::analyse(&data, None).expect("it is an ELF file");
    let instructions: usize = module.decoded.iter().map(|unit| unit.insns.len()).sum();
    println!("{file}: {} units, {instructions} instructions", module.units.len());
    println!("{:7.2} s CPU to decode", cpu_seconds() - begin);
    if let Some(function) = arguments.next() {
        let liveness = Liveness::of(&module, &RelyOn::EVERYTHING);
        print_function(&module, &liveness, &function);
        return;
    }
    for knowledge in [Knowledge::OfCallers, Knowledge::Cautious] {
        let begin = cpu_seconds();
        let liveness = Liveness::with(&module, knowledge, &RelyOn::EVERYTHING);
        let took = cpu_seconds() - begin;
        let mut digest = DefaultHasher::new();
        liveness.before.hash(&mut digest);
        println!("{took:7.2} s CPU for liveness, {knowledge:?}; digest {:016x}", digest.finish());
    }
}

/// A line for each instruction of a function: its address, its size, and the general registers that
/// are live before it.
fn print_function(module: &Module<'_>, liveness: &Liveness, function: &str) {
    const NAMES: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    for unit in (0..module.units.len()).filter(|&unit| module.name(unit) == Some(function.as_bytes())) {
        let start = module.units[unit].start.0;
        for (insn, live) in module.decoded[unit].insns.iter().zip(&liveness.before[unit]) {
            let is_live = |number: &usize| live.0 >> number & 1 == 1;
            let names: Vec<&str> = (0..16).filter(is_live).map(|number| NAMES[number]).collect();
            println!("{:#x} {:2} bytes: {}", start + u64::from(insn.at), insn.len, names.join(" "));
        }
    }
}

/// What this process took, of all its threads; the kernel counts in hundredths.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc is mounted");
    let behind_name = stat.rsplit(')').next().expect("there is a name");
    let ticks: Vec<f64> = behind_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    ticks.iter().sum::<f64>() / 100.0
}
