//! `machines`: a row for each machine record, wide.

use super::columns::{boolean, float, int, text};
use super::{Cell, Row, Source, Table};
use records::host::{CacheKind, Fact, Host, ThpMode};
use records::machine::{Effort, Machine, Verdict};

pub(super) const TABLE: Table = Table {
    name: "machines",
    about: "A row for each machine record, those of `gleaner probe` among them: what the host says of itself, \
            and how the measurement went.",
    own: &[
        text(
            "hardware",
            "product, processor and sockets: hosts of the same hardware should measure the same",
        ),
        text("gleaner", "the version of Gleaner that measured"),
        text("product", "maker and product, by DMI"),
        text("firmware", "version of the firmware"),
        text("kernel", "release and version of the kernel"),
        text("distribution", "name of the distribution"),
        text("hypervisor", "its name, or `none`"),
        text("cloud", "the cloud, where it is recognised"),
        text("container", "kind of container around the measurement"),
        text("vendor", "the processor's vendor"),
        text("processor", "the processor's name"),
        int("family", "of the processor, by CPUID"),
        int("model", "of the processor, by CPUID"),
        int("stepping", "of the processor, by CPUID"),
        text("microcode", "its revision"),
        text("microarchitecture", "by family and model"),
        int("sockets", "processor packages"),
        int("cores", "cores with a CPU online"),
        int("threads", "CPUs online"),
        int("threads_per_core", "1 where hyperthreading is off"),
        int("usable_cpus", "CPUs that the measurement could use"),
        int("nodes", "NUMA nodes"),
        int("memory_bytes", "memory in all"),
        int("node_bytes_least", "memory of the node that has least of it"),
        int("node_bytes_most", "memory of the node that has most of it"),
        int("l1_bytes", "first-level data cache, as claimed, of the CPU that measured"),
        int("l2_bytes", "second-level cache"),
        int("l3_bytes", "third-level cache"),
        int("page_bytes", "base page"),
        text("thp", "transparent huge pages: `always`, `madvise` or `never`"),
        text("thp_defrag", "how the kernel frees memory for them"),
        text("governor", "governors of the core clock, with commas between them"),
        int("cpu", "the CPU that measured"),
        text("effort", "`quick`, `normal` or `thorough`"),
        float("seconds", "how long it took"),
        boolean("interrupted", "the user stopped it"),
        text("grade", "`quiet`, `fair` or `noisy`"),
        text("grade_reasons", "why the grade is not better"),
        int("blocks", "blocks that count"),
        int("blocks_void", "void blocks, for whatever reason"),
        int("blocks_stolen", "void, since the hypervisor ran something else"),
        int("blocks_switched", "void, since another task ran"),
        int("blocks_clock_moved", "void, since the core clock moved"),
        int("blocks_core_shared", "counted, but another hyperthread of the core was at work"),
    ],
    rows,
};

fn rows(source: &Source) -> Vec<Row> {
    let Some(machine) = source.body::<Machine>() else { return Vec::new() };
    let (host, run) = (&machine.host, &machine.run);
    let (identity, virtualization) = (&host.identity, &host.virtualization);
    let (processor, topology) = (&host.processor, &host.topology);
    let blocks = &run.blocks;
    let on_nodes = || host.nodes.iter().filter_map(|node| node.total.value()).map(|bytes| bytes.0);
    let cache = |level| cache_bytes(host, run.cpu, level);
    vec![vec![
        hardware(host).into(),
        source.record.header.gleaner.as_str().into(),
        known(&identity.product),
        known(&identity.firmware),
        known(&identity.kernel),
        known(&identity.distribution),
        known(&virtualization.hypervisor),
        virtualization.cloud.as_deref().into(),
        virtualization.container.as_deref().into(),
        known(&processor.vendor),
        known(&processor.name),
        processor.family.value().into(),
        processor.model.value().into(),
        processor.stepping.value().into(),
        known(&processor.microcode),
        known(&processor.microarchitecture),
        topology.sockets.value().into(),
        topology.cores.value().into(),
        topology.threads.value().into(),
        topology.smt.threads_per_core.value().into(),
        host.usable_cpus().len().into(),
        (!host.nodes.is_empty()).then_some(host.nodes.len()).into(),
        host.memory.total.value().map(|bytes| bytes.0).into(),
        on_nodes().min().into(),
        on_nodes().max().into(),
        cache(1),
        cache(2),
        cache(3),
        host.pages.base.value().map(|bytes| bytes.0).into(),
        host.pages.thp.effective().value().map(thp).into(),
        known(&host.pages.thp.defrag),
        host.clocks.frequency.governors.get().map(|governors| governors.join(",")).into(),
        run.cpu.into(),
        effort(run.effort).into(),
        run.seconds.into(),
        run.interrupted.into(),
        verdict(run.grade.verdict).into(),
        run.grade.reasons.join("; ").into(),
        blocks.valid.into(),
        blocks.voided.into(),
        blocks.stolen.into(),
        blocks.switched.into(),
        blocks.clock_moved.into(),
        blocks.core_shared.into(),
    ]]
}

/// What hosts that should measure the same have in common. Neither memory nor nodes nor
/// hyperthreads: those are what a fault may change.
fn hardware(host: &Host) -> String {
    let part = |fact: &Fact<String>| fact.get().cloned();
    let product = part(&host.identity.product).or_else(|| part(&host.virtualization.hypervisor));
    let signature = match (host.processor.family.value(), host.processor.model.value()) {
        (Some(family), Some(model)) => format!(" {family:#x}/{model:#x}"),
        _ => String::new(),
    };
    let processor = part(&host.processor.name).unwrap_or_else(|| "unknown processor".to_owned());
    let sockets = host.topology.sockets.value().unwrap_or(1);
    let product = product.unwrap_or_else(|| "unknown product".to_owned());
    format!("{product}; {sockets} x {processor}{signature}")
}

fn known(fact: &Fact<String>) -> Cell {
    fact.get().map(String::as_str).into()
}

fn cache_bytes(host: &Host, cpu: u32, level: u32) -> Cell {
    let caches = host.data_caches_of(cpu);
    let cache = caches.iter().find(|cache| cache.level == level && cache.kind != CacheKind::Instruction);
    cache.and_then(|cache| cache.size.value()).map(|bytes| bytes.0).into()
}

fn thp(mode: ThpMode) -> &'static str {
    match mode {
        ThpMode::Always => "always",
        ThpMode::Madvise => "madvise",
        ThpMode::Never => "never",
        ThpMode::Inherit => "inherit",
    }
}

fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => "quick",
        Effort::Normal => "normal",
        Effort::Thorough => "thorough",
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Quiet => "quiet",
        Verdict::Fair => "fair",
        Verdict::Noisy => "noisy",
    }
}
