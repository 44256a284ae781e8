//! **smt**: what the other hyperthread of the core takes.
//!
//! A chain of loads on the measuring CPU, in areas from a quarter of the first cache to several
//! times the last private one: alone, and while the core's other hyperthread walks a chain of its
//! own of the same size. Caches that both share look as if they were split: the curve beside a busy
//! sibling bends sooner.

use crate::context::{Context, Refused};
use crate::crews;
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::load_chase;
use crate::threads::{ThreadChains, block, chaser};
use lab::crew::CrewRig;
use lab::rigs::Rig;
use records::host::Host;
use records::machine::{BusySibling, Machine, SiblingPoint};
use units::Bytes;

pub(crate) const ENTRY: Entry = Entry {
    name: "smt",
    about: "loads while the core's other hyperthread is busy: what it takes of the caches",
    needs: Some("two hyperthreads on the measured core"),
    seconds: ByEffort { quick: 2.0, normal: 10.0, thorough: 40.0 },
    run: |ctx, machine| machine.experiments.smt = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.smt.as_ref()?.ending(name)),
};

/// Sizes to an octave.
const STEPS: ByEffort<u32> = ByEffort { quick: 1, normal: 2, thorough: 4 };

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<BusySibling, Refused> {
    let home = ctx.cpu() as u32;
    let cpus = [home, sibling(ctx.host, home)?];
    let crew = crews::crew(ctx, &cpus)?;
    let kernel = load_chase(kernels::Access::Read)?;
    let caches: Vec<Bytes> = crews::caches(ctx.host, home).into_iter().map(|cache| cache.size).collect();
    let sizes = sizes(&caches, STEPS.at(ctx.effort), ctx.max_memory.0 / 4);
    let mine = ThreadChains::build(ctx, cpus[0], &sizes)?;
    let theirs = ThreadChains::build(ctx, cpus[1], &sizes)?;
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for &size in &sizes {
        let alone = vec![chaser(ctx, cpus[0], &kernel, mine.of(size))];
        let both = vec![
            chaser(ctx, cpus[0], &kernel, mine.of(size)),
            chaser(ctx, cpus[1], &kernel, theirs.of(size)),
        ];
        rigs.push(Box::new(CrewRig::new(&crew, alone)));
        rigs.push(Box::new(CrewRig::new(&crew, both)));
    }
    let gathered = ctx.measure(rigs, block(ctx), ctx.pick(9, 25, 75), 0.9);
    let mut points = Vec::new();
    for (size, pair) in sizes.into_iter().zip(gathered.series.chunks(2)) {
        let alone = crews::latency_of(ctx, &pair[0], 0);
        let beside = crews::latency_of(ctx, &pair[1], 0);
        let slowdown = crews::ratio(&beside.ns, &alone.ns);
        points.push(SiblingPoint { size, alone, beside, slowdown });
    }
    Ok(BusySibling { cpus, points })
}

/// The other hyperthread of this CPU's core.
fn sibling(host: &Host, home: u32) -> Result<u32, Refused> {
    let help = "a core with two hyperthreads on bare metal, or a guest that is shown its host's; SMT switched on \
                (/sys/devices/system/cpu/smt/control); both allowed to this process";
    let refused = |why: String| Refused::not_possible(why, help);
    let Some(siblings) = host.cpu(home).and_then(|cpu| cpu.siblings.get()) else {
        return Err(refused(format!(
            "the kernel does not say which hyperthreads share a core with CPU {home}"
        )));
    };
    let Some(other) = siblings.iter().find(|&cpu| cpu != home) else {
        return Err(refused(format!("CPU {home} is the only hyperthread of its core, as the kernel says")));
    };
    let usable = host.usable_cpus();
    match siblings.iter().find(|cpu| *cpu != home && usable.contains(cpu)) {
        Some(sibling) => Ok(sibling),
        None => Err(refused(format!("this process may not use CPU {other}, the sibling of CPU {home}"))),
    }
}

/// From a quarter of the first cache to four times the last private one, or as far as `most`
/// allows: even steps of the logarithm.
fn sizes(caches: &[Bytes], steps: u32, most: u64) -> Vec<Bytes> {
    let first = caches.first().map_or(32 << 10, |size| size.0);
    let private = match caches {
        [.., private, _] => private.0,
        _ => 1 << 20,
    };
    let (from, to) = (first as f64 / 4.0, (private as f64 * 4.0).min(most as f64));
    (0..200)
        .map(|i| from * 2_f64.powf(f64::from(i) / f64::from(steps)))
        .take_while(|&size| size <= to * 1.001)
        .map(|size| Bytes((size / 64.0).round() as u64 * 64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;
    use crate::session::Request;
    use records::host::{Cpu, CpuList, Fact};
    use records::machine::Effort;
    use units::Quantity;

    #[test]
    fn the_sibling_is_the_other_hyperthread_of_the_core() {
        let mut host = big_host();
        assert_eq!(sibling(&host, 3).unwrap(), 11);
        assert_eq!(sibling(&host, 11).unwrap(), 3);
        host.cpus[3].siblings = Fact::Known("3".parse().unwrap());
        let refused = sibling(&host, 3).unwrap_err();
        assert!(refused.not_possible && refused.why.contains("only hyperthread"), "{refused:?}");
        host.cpus[3].siblings = Fact::unknown("no /sys");
        assert!(sibling(&host, 3).unwrap_err().why.contains("does not say"));
    }

    /// On two CPUs that may be none: what is run is the same.
    #[test]
    fn a_host_with_siblings_gets_points_of_both() {
        let allowed = lab::pin::allowed().unwrap();
        if lab::tsc::usable().is_err() || allowed.len() < 2 {
            return;
        }
        let mut host = big_host();
        let pair: CpuList = allowed[..2].iter().map(|&cpu| cpu as u32).collect();
        host.topology.online = Fact::Known(pair.clone());
        let one = host.cpus[0].clone();
        host.cpus =
            pair.iter().map(|id| Cpu { id, siblings: Fact::Known(pair.clone()), ..one.clone() }).collect();
        let request = Request {
            experiments: vec![&ENTRY],
            effort: Effort::Quick,
            seconds: Some(0.5),
            cpu: allowed[0],
            seed: 1,
            max_memory: Bytes::mib(64),
            strides: crate::stride_choice::StrideChoice::default(),
            stop: lab::stop::Stop::never(),
        };
        let machine = crate::measure(&request, &host, &mut units::Silent).unwrap();
        let outcome = machine.experiments.smt.unwrap();
        // Counters that disagree, or a limit of this host.
        let Some(result) = outcome.result else { return assert!(outcome.why.is_some()) };
        assert_eq!(result.cpus.map(|cpu| cpu as usize), allowed[..2]);
        assert!(result.points.len() >= 5 && result.points.windows(2).all(|p| p[0].size < p[1].size));
        let resolved = result.points.iter().filter(|p| p.slowdown.value().is_some()).count();
        let told = |p: &SiblingPoint| matches!(&p.slowdown, Quantity::Unresolved { unresolved } if !unresolved.is_empty());
        assert_eq!(resolved + result.points.iter().filter(|p| told(p)).count(), result.points.len());
    }

    #[test]
    fn sizes_reach_beyond_the_private_caches() {
        let caches = [Bytes::kib(32), Bytes::kib(512), Bytes::mib(32)];
        let all = sizes(&caches, 2, 1 << 30);
        assert_eq!((all[0], all.last()), (Bytes::kib(8), Some(&Bytes::mib(2))));
        assert_eq!(all.len(), 17);
        assert!(all.contains(&Bytes::kib(32)) && all.contains(&Bytes::kib(512)));
        assert_eq!(sizes(&caches, 1, 64 << 10).last(), Some(&Bytes::kib(64)), "little memory");
        assert!(sizes(&[], 1, 1 << 30).len() > 5, "nothing is claimed");
    }
}
