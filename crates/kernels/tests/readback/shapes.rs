//! What each family is made of: as many loads, stores, fillers as its specification says.

use crate::fillers;
use crate::grid::{GAPS, STREAM_OPS, UNROLLS, WIDTHS, WINDOWS, fillers as all_fillers};
use crate::listing::{Line, Listing};
use gleaner_kernels::{
    Access, Fence, Kernel, Role, STREAM_LINES_PER_LOOP, SWITCH_CONTEXTS, Spec, StreamOp, assemble,
};
use std::collections::BTreeSet;
use yaxpeax_x86::long_mode::{Opcode, Operand, RegSpec};

fn read(spec: &Spec) -> (Kernel, Listing) {
    let kernel = assemble(spec).unwrap_or_else(|e| panic!("{spec:?}: {e}"));
    let listing = Listing::of(&kernel);
    (kernel, listing)
}

/// `mov register, [the same register]`: a step along a chain.
fn is_step(line: &Line) -> bool {
    match (line.opcode(), line.instruction.operand(0), line.instruction.operand(1)) {
        (Opcode::MOV, Operand::Register { reg }, Operand::MemDeref { base }) => reg == base,
        _ => false,
    }
}

fn loads(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.touches_memory() && !line.stores() && !line.is_branch()).count()
}

fn stores(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.stores()).count()
}

#[test]
fn the_clock_touches_no_memory() {
    let mut specs = vec![Spec::Nothing];
    for unroll in [1, 256] {
        let spec = Spec::Spin { unroll };
        let (kernel, listing) = read(&spec);
        let adds: Vec<usize> =
            ["rax", "r8", "r9", "r10"].map(|chain| listing.count(&format!("add {chain}, rcx"))).into();
        assert_eq!(adds, [unroll as usize; 4]);
        assert_eq!(kernel.ops_per_loop, 4 * u64::from(unroll));
        specs.push(spec);
    }
    for unroll in UNROLLS {
        for (spec, one) in [(Spec::Adds { unroll }, "add rax, rcx"), (Spec::Muls { unroll }, "imul rax, rcx")]
        {
            let (kernel, listing) = read(&spec);
            assert_eq!(listing.count(one), unroll as usize, "{spec:?}");
            assert_eq!(kernel.ops_per_loop, u64::from(unroll));
            specs.push(spec);
        }
    }
    for spec in specs {
        assert_eq!(read(&spec).1.count_if(Line::touches_memory), 0, "{spec:?}");
    }
}

#[test]
fn a_chase_loads_and_stores_once_a_step() {
    for unroll in UNROLLS {
        let steps = unroll as usize;
        let (kernel, listing) = read(&Spec::Chase { unroll, access: Access::Read });
        assert_eq!(kernel.ops_per_loop, u64::from(unroll));
        assert_eq!(listing.count_if(is_step), steps);
        assert_eq!((loads(&listing.lines), stores(&listing.lines)), (steps, 0));

        let (_, listing) = read(&Spec::Chase { unroll, access: Access::ReadModifyWrite });
        assert_eq!((loads(&listing.lines), stores(&listing.lines)), (steps, steps));
        let touching: Vec<&Line> = listing.lines.iter().filter(|line| line.touches_memory()).collect();
        for pair in touching.chunks(2) {
            let [load, store] = pair else { panic!("a load without its store") };
            assert_eq!(
                load.instruction.operand(0),
                store.instruction.operand(1),
                "{} {}",
                load.text,
                store.text
            );
            assert_eq!(
                load.instruction.operand(1),
                store.instruction.operand(0),
                "{} {}",
                load.text,
                store.text
            );
        }
        for (store, load) in touching[1..].iter().step_by(2).zip(touching[2..].iter().step_by(2)) {
            let Operand::Register { reg } = store.instruction.operand(1) else { panic!("{}", store.text) };
            assert_eq!(load.instruction.operand(1), Operand::MemDeref { base: reg }, "the chain is broken");
        }
    }
}

#[test]
fn each_parallel_chain_steps_once_a_loop() {
    for chains in 1..=64 {
        let (kernel, listing) = read(&Spec::ParallelChains { chains });
        let chains = chains as usize;
        assert_eq!(kernel.ops_per_loop, chains as u64);
        assert_eq!(listing.count_if(is_step), chains);
        assert_eq!(loads(&listing.lines), 2 * chains, "a load of the pointer, and one through it");
        assert_eq!(stores(&listing.lines), chains);
        let written: BTreeSet<String> = listing
            .lines
            .iter()
            .filter(|l| l.stores())
            .map(|l| l.instruction.operand(0).to_string())
            .collect();
        assert_eq!(written.len(), chains, "every chain has a word of its own");
    }
}

#[test]
fn a_burst_is_accesses_then_fillers_then_one_access() {
    for fence in [Fence::Lfence, Fence::Cpuid] {
        for accesses in [1, 2, 3, 8, 9, 24, 64] {
            for filler in all_fillers() {
                for gap in GAPS {
                    burst(accesses, gap, filler, fence);
                }
            }
        }
    }
}

fn burst(accesses: u32, gap: u32, filler: gleaner_kernels::Filler, fence: Fence) {
    let spec = Spec::Burst { accesses, gap, filler, fence };
    let (kernel, listing) = read(&spec);
    let (accesses, gap) = (accesses as usize, gap as usize);
    assert_eq!(kernel.ops_per_loop, 1);

    let timed = listing.between("rdtsc", "rdtscp");
    let setting_clock = if fence == Fence::Lfence { 4 } else { 3 };
    let shot = &timed[setting_clock..];
    assert_eq!(timed[setting_clock - 1].opcode() == Opcode::LFENCE, fence == Fence::Lfence, "{spec:?}");
    assert_eq!(shot.len(), 2 * accesses + gap, "{spec:?}");
    let before = 2 * (accesses - 1);
    fillers::check(filler, &shot[before..before + gap]);
    let mut accessed = shot[..before].iter().chain(&shot[before + gap..]);
    for access in 0..accesses {
        let (address, load) = (accessed.next().unwrap(), accessed.next().unwrap());
        assert_eq!(
            displacement(address, RegSpec::rdi()),
            Some(8 * access as i64),
            "{spec:?}: {}",
            address.text
        );
        assert_eq!(load.text, "mov rbx, qword [rax]", "{spec:?}");
    }

    // Wherever in a line the row begins, no line of it is left out.
    let first_fence = if fence == Fence::Lfence { Opcode::MFENCE } else { Opcode::CPUID };
    let warmed: Vec<i64> = listing
        .lines
        .iter()
        .take_while(|line| line.opcode() != first_fence)
        .filter(|line| line.touches_memory())
        .map(|line| displacement(line, RegSpec::rdi()).expect("only the row"))
        .collect();
    assert_eq!((warmed.first(), warmed.last()), (Some(&0), Some(&(8 * accesses as i64 - 8))), "{spec:?}");
    assert!(warmed.windows(2).all(|pair| pair[1] - pair[0] <= 64), "{spec:?}");
}

/// The displacement of an operand in memory relative to `base`, of whichever operand is one.
fn displacement(line: &Line, base: RegSpec) -> Option<i64> {
    line.operands().find_map(|operand| match operand {
        Operand::MemDeref { base: b } | Operand::MemDerefMasked { base: b, .. } if b == base => Some(0),
        Operand::Disp { base: b, disp } | Operand::DispMasked { base: b, disp, .. } if b == base => {
            Some(disp.into())
        }
        _ => None,
    })
}

#[test]
fn a_sequence_is_nothing_but_steps() {
    for fence in [Fence::Lfence, Fence::Cpuid] {
        for accesses in 0..=64 {
            let (_, listing) = read(&Spec::Sequence { accesses, fence });
            let timed = listing.between("rdtsc", "rdtscp");
            assert_eq!(timed.iter().filter(|line| is_step(line)).count(), accesses as usize);
            assert_eq!(loads(timed), accesses as usize);
            assert_eq!((stores(&listing.lines), loads(&listing.lines)), (1, accesses as usize));
        }
    }
}

#[test]
fn both_steps_of_a_rob_kernel_are_followed_by_all_fillers() {
    for filler in all_fillers() {
        for gap in GAPS {
            let (_, listing) = read(&Spec::Rob { filler, gap });
            let (a, b) = ("mov rdi, qword [rdi]", "mov rcx, qword [rcx]");
            for between in [listing.between(a, b), listing.between(b, "dec rsi")] {
                assert_eq!(between.len(), gap as usize);
                fillers::check(filler, between);
            }
            assert_eq!(listing.count_if(is_step), 2);
        }
    }
}

#[test]
fn a_stream_goes_over_every_byte_once() {
    for op in STREAM_OPS {
        for width in WIDTHS {
            for delay in [0, 1, 100, 4096] {
                let spec = Spec::Stream { op, width, delay };
                let (kernel, listing) = read(&spec);
                assert_eq!(kernel.ops_per_loop, STREAM_LINES_PER_LOOP);
                assert_eq!(listing.count("add rax, r8"), delay as usize);
                let vectors = 64 * STREAM_LINES_PER_LOOP as i64 / i64::from(width.bytes());
                let all: Vec<i64> = (0..vectors).map(|i| i * i64::from(width.bytes())).collect();
                let [read_a, write_a, read_b, read_c, past_caches] = match op {
                    StreamOp::Read => [true, false, false, false, false],
                    StreamOp::Write => [false, true, false, false, false],
                    StreamOp::Copy => [false, true, true, false, false],
                    StreamOp::Triad => [false, true, true, true, false],
                    StreamOp::NtWrite => [false, true, false, false, true],
                    StreamOp::NtCopy => [false, true, true, false, true],
                    StreamOp::Update => [true, true, false, false, false],
                };
                let touched = |base: RegSpec, stores: bool| -> Vec<i64> {
                    let lines =
                        listing.lines.iter().filter(|line| line.touches_memory() && line.stores() == stores);
                    lines
                        .filter(|line| line.text.contains("mm"))
                        .filter_map(|l| displacement(l, base))
                        .collect()
                };
                let expect = |yes: bool| if yes { all.clone() } else { Vec::new() };
                assert_eq!(touched(RegSpec::rdi(), false), expect(read_a), "{spec:?}");
                assert_eq!(touched(RegSpec::rdi(), true), expect(write_a), "{spec:?}");
                assert_eq!(touched(RegSpec::rdx(), false), expect(read_b), "{spec:?}");
                assert_eq!(touched(RegSpec::rcx(), false), expect(read_c), "{spec:?}");
                assert!(touched(RegSpec::rdx(), true).is_empty() && touched(RegSpec::rcx(), true).is_empty());
                let nt = listing.count_if(|line| line.text.contains("movnt"));
                assert_eq!(nt, if past_caches { all.len() } else { 0 }, "{spec:?}");
                assert_eq!(listing.count("sfence"), usize::from(past_caches), "{spec:?}");
                for (array, used) in [("rdi", true), ("rdx", read_b), ("rcx", read_c)] {
                    assert_eq!(listing.count(&format!("add {array}, 0x100")), usize::from(used), "{spec:?}");
                }
            }
        }
    }
}

#[test]
fn a_window_is_gone_over_once() {
    for bytes in WINDOWS {
        for vectorised in [false, true] {
            let spec = Spec::Windows { bytes, vectorised };
            let (_, listing) = read(&spec);
            let at = |stores: bool| -> Vec<i64> {
                let lines =
                    listing.lines.iter().filter(|line| line.stores() == stores && line.text.contains("mm"));
                lines.filter_map(|line| displacement(line, RegSpec::r8())).collect()
            };
            let (read, written) = (at(false), at(true));
            let step = if vectorised { 32 } else { 8 };
            let chunk = step * read.len() as i64;
            assert_eq!(read, (0..chunk).step_by(step as usize).collect::<Vec<_>>(), "{spec:?}");
            assert_eq!(read, written, "{spec:?}");
            assert_eq!(listing.count(&format!("add r8, 0x{chunk:x}")), 1, "{spec:?}");
            let times = i64::from(bytes) / chunk;
            assert_eq!(times * chunk, i64::from(bytes), "{spec:?}");
            assert_eq!(listing.count("dec r9"), usize::from(times > 1), "{spec:?}");
            let set = listing.lines.iter().find(|line| line.text.starts_with("mov r9"));
            let counted = set.map_or(1, |line| match line.instruction.operand(1) {
                Operand::ImmediateI32 { imm } => i64::from(imm),
                Operand::ImmediateU32 { imm } => i64::from(imm),
                Operand::ImmediateI64 { imm } => imm,
                Operand::ImmediateU64 { imm } => imm as i64,
                other => panic!("{other:?}"),
            });
            assert_eq!(counted, times, "{spec:?}");
        }
    }
}

#[test]
fn the_sides_of_ping_pong_differ_in_what_they_wait_for_only() {
    let [even, odd] = [Role::Even, Role::Odd].map(|role| read(&Spec::PingPong { role }).1);
    assert_eq!(even.lines.len(), odd.lines.len());
    let differing: Vec<(&str, &str)> = (even.lines.iter().zip(&odd.lines))
        .map(|(a, b)| (a.text.as_str(), b.text.as_str()))
        .filter(|(a, b)| a != b)
        .collect();
    assert_eq!(differing.len(), 1);
    assert!(differing[0].0.starts_with("jz") && differing[0].1.starts_with("jnz"), "{differing:?}");
    for side in [even, odd] {
        assert_eq!(side.count("cmp qword [rdx], 0x0"), 1, "the wait can be ended");
        assert_eq!((side.count("mov qword [rdi], r8"), stores(&side.lines)), (1, 1));
    }
}

#[test]
fn bumps_are_locked_if_asked() {
    for (locked, one) in [(false, "add qword [rdi], 0x1"), (true, "lock add qword [rdi], 0x1")] {
        let (kernel, listing) = read(&Spec::Bump { locked });
        assert_eq!(listing.count(one) as u64, kernel.ops_per_loop);
        assert_eq!(stores(&listing.lines) as u64, kernel.ops_per_loop);
    }
}

#[test]
fn a_switch_saves_and_restores_what_is_live_and_no_more() {
    for live in 0..=14 {
        for vectors in 0..=16 {
            for flags in [false, true] {
                for sites in 1..=4 {
                    switch(live, flags, vectors, sites);
                }
            }
        }
    }
}

fn switch(live: u32, flags: bool, vectors: u32, sites: u32) {
    let spec = Spec::Switch { live, flags, vectors, sites };
    let (kernel, listing) = read(&spec);
    assert_eq!(kernel.ops_per_loop, SWITCH_CONTEXTS * u64::from(sites));
    let sites = sites as usize;
    let set_up = listing.lines.iter().position(|l| l.text == "cmp qword [r15 - 0x28], 0x0").unwrap();
    let ring = &listing.lines[set_up + 1..];
    assert_eq!(ring.iter().filter(|line| line.text == "jmp qword [r15 - 0x30]").count(), sites, "{spec:?}");
    let state = (live + vectors + u32::from(flags)) as usize;
    // Beside what is live: stack pointer and resume point out, next context and its stack pointer
    // in; and the count of loops.
    assert_eq!(stores(ring), sites * (state + 2) + 1, "{spec:?}");
    assert_eq!(loads(ring), sites * (state + 2), "{spec:?}");
    let flag_moves = ring.iter().filter(|l| matches!(l.opcode(), Opcode::LAHF | Opcode::SAHF)).count();
    assert_eq!(flag_moves, if flags { 2 * sites } else { 0 }, "{spec:?}");
}
