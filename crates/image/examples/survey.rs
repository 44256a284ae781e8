//! What is known about each given module, on a line: units, instructions, jump tables, time.

use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let Ok(data) = std::fs::read(&path) else { continue };
        let begin = Instant::now();
        match gleaner_image::Module::analyse(&data, None) {
            Ok(module) => {
                let insns: usize = module.decoded.iter().map(|d| d.insns.len()).sum();
                let (jumps, tables) = module.indirect_jumps();
                let pointers: usize = module
                    .decoded
                    .iter()
                    .map(|d| d.open_jumps.iter().filter(|jump| jump.is_pointer).count())
                    .sum();
                let overlaps = module.decoded.iter().filter(|d| d.overlaps).count();
                let undecoded: usize = module.decoded.iter().map(|d| d.undecoded.len()).sum();
                println!(
                    "{path}: {} units, {insns} instructions, {jumps} indirect jumps: {tables} tables, {pointers} pointers; \
                     {overlaps} overlap, {undecoded} undecoded, {:.3} s",
                    module.units.len(),
                    begin.elapsed().as_secs_f64()
                );
                if std::env::var_os("OPEN").is_some() {
                    for (unit, decoded) in module.units.iter().zip(&module.decoded) {
                        for jump in decoded.open_jumps.iter().filter(|jump| !jump.is_pointer) {
                            println!(
                                "  open {:#x} in {:#x}",
                                unit.start.0 + u64::from(jump.at),
                                unit.start.0
                            );
                        }
                        for table in decoded
                            .tables
                            .iter()
                            .filter(|_| decoded.overlaps || std::env::var_os("TABLES").is_some())
                        {
                            println!(
                                "  table {:#x} of {} base {:x?} for {:#x} {:x?}",
                                table.table.0,
                                table.targets.len(),
                                table.base,
                                unit.start.0 + u64::from(table.jump_at),
                                table.targets
                            );
                        }
                        for pair in decoded.insns.windows(2).filter(|pair| pair[0].end() > pair[1].at) {
                            println!(
                                "  overlap {:#x} in {:#x}",
                                unit.start.0 + u64::from(pair[1].at),
                                unit.start.0
                            );
                        }
                    }
                }
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
}
