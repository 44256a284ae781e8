//! Assembles measuring kernels and prints each as a disassembler reads it, one instruction on a
//! line:
//!
//! ```text
//! $ cargo run --package gleaner-kernels --example listing
//! Chase { unroll: 4, access: Read }: 26 bytes, 4 operations a loop
//!    0: 48 85 f6              test rsi, rsi
//! ```

use gleaner_kernels::{Access, Fence, Filler, Kernel, KernelError, Spec, assemble};
use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::InstDecoder;

fn main() -> Result<(), KernelError> {
    let specs = [
        // Each load waits for the one before it.
        Spec::Chase { unroll: 4, access: Access::Read },
        // Four chains: a core overlaps their misses.
        Spec::ParallelChains { chains: 4 },
        // Two loads with three fillers before the second, between two readings of the clock.
        Spec::Burst { accesses: 2, gap: 3, filler: Filler::IntAdd, fence: Fence::Lfence },
    ];
    for spec in specs {
        print(&assemble(&spec)?);
    }
    // Parameters out of range are refused, and the message names them.
    println!("{}", assemble(&Spec::ParallelChains { chains: 100 }).unwrap_err());
    Ok(())
}

fn print(kernel: &Kernel) {
    println!("{:?}: {} bytes, {} operations a loop", kernel.spec, kernel.code.len(), kernel.ops_per_loop);
    let decoder = InstDecoder::default();
    let mut at = 0;
    while at < kernel.code.len() {
        let instruction = decoder.decode_slice(&kernel.code[at..]).expect("kernels hold valid instructions");
        let length = instruction.len().to_const() as usize;
        let bytes: Vec<String> = kernel.code[at..at + length].iter().map(|b| format!("{b:02x}")).collect();
        println!("{at:4x}: {:24} {instruction}", bytes.join(" "));
        at += length;
    }
    println!();
}
