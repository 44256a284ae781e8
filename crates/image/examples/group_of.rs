fn main() {
    let args: Vec<String> = std::env::args().collect();
    let data = std::fs::read(&args[1]).unwrap();
    let module = gleaner_image::Module::analyse(&data, None).unwrap();
    let groups = gleaner_image::groups::Groups::of(&module);
    for a in &args[2..] {
        let at = u64::from_str_radix(a.trim_start_matches("0x"), 16).unwrap();
        let unit = module.unit_at(units::Svma(at)).unwrap();
        for &u in &groups.members[groups.of_unit[unit] as usize] {
            println!(
                "{:#x} {:?} roots {:x?} tables {} open {} out {:x?}",
                module.units[u as usize].start.0,
                module.units[u as usize],
                module.roots(u as usize),
                module.decoded[u as usize].tables.len(),
                module.decoded[u as usize].open_jumps.len(),
                module.decoded[u as usize].jumps_out
            );
        }
        for i in &module.decoded[unit].insns {
            if i.never_returns {
                println!("  never {:#x}", module.units[unit].start.0 + u64::from(i.at));
            }
        }
    }
}
