//! `live FILE…`: how much is live before instructions that load by a computed address, on average.

use gleaner_image::Module;
use gleaner_image::liveness::Liveness;
use gleaner_image::regs::RegSet;
use iced_x86::{Decoder, DecoderOptions, OpKind, Register};

fn main() {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path).expect("the file can be read");
        let module = Module::analyse(&data, None).expect("an ELF file");
        let begin = std::time::Instant::now();
        let liveness = Liveness::precise(&module);
        let took = begin.elapsed().as_secs_f64();
        let (mut sites, mut general, mut flags) = (0u32, 0u32, 0u32);
        let mut parts = [0u32; 4];
        for (unit, live) in liveness.before.iter().enumerate() {
            let code = module.code(unit);
            for (insn, live) in module.decoded[unit].insns.iter().zip(live) {
                let insn = Decoder::new(64, insn.bytes(code), DecoderOptions::NONE).decode();
                let memory = (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory);
                let base = insn.memory_base();
                if !memory || !base.is_gpr64() || base == Register::RSP {
                    continue;
                }
                sites += 1;
                general += (live.0 as u16 & !(1 << 4)).count_ones();
                flags += u32::from(live.meets(RegSet::ARITHMETIC_FLAGS));
                parts[0] += ((live.0 >> 32) as u32).count_ones();
                parts[1] += ((live.0 >> 64) as u32).count_ones();
                parts[2] += ((live.0 >> 96) as u32).count_ones();
                parts[3] += ((live.0 >> 24) as u8).count_ones();
            }
        }
        let mean = |count: u32| f64::from(count) / f64::from(sites.max(1));
        println!(
            "{path}: {sites} sites, general {:.2}, flags {:.2}, xmm {:.2}, ymm {:.2}, zmm {:.2}, k {:.2}, {took:.2} s",
            mean(general),
            mean(flags),
            mean(parts[0]),
            mean(parts[1]),
            mean(parts[2]),
            mean(parts[3])
        );
    }
}
