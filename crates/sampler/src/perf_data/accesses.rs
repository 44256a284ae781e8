//! From the samples of each kind of hardware to accesses.

use super::data_source::DataSource;
use super::ibs::IbsOp;
use super::role::Role;
use super::sample::RawSample;
use super::spe::SpeRecord;
use insight::samples::Access;
use units::Avma;

/// The access that a sample is; `None` if it was none, or nothing is told of it.
pub(crate) fn of_sample(sample: &RawSample<'_>, role: Role, in_kernel: bool, period: u64) -> Option<Access> {
    let source = DataSource(sample.data_source.unwrap_or(0));
    let raw = IbsOp::parse(sample.raw).filter(|_| role == Role::Ibs);
    let kind = source.kind().or(raw.map(|raw| raw.kind))?;
    let told = source.kind().is_some();
    let weight = u32::try_from(sample.weight).ok().filter(|weight| *weight > 0);
    let address = Some(sample.address).filter(|address| *address != 0).or(raw.and_then(|raw| raw.address));
    Some(Access {
        process: sample.process,
        thread: sample.thread,
        time_ns: sample.time_ns,
        ip: Avma(sample.ip),
        in_kernel,
        address: address.map(Avma),
        kind,
        latency: weight.or(raw.and_then(|raw| raw.latency)),
        level: if told { source.level() } else { raw?.level },
        translation: if told { source.translation() } else { raw?.translation },
        is_locked: if told { source.is_locked() } else { raw?.is_locked },
        period,
    })
}

/// The access of a record of SPE, which tells neither process nor the time of other records.
pub(super) fn of_spe(
    record: &SpeRecord,
    is_neoverse: bool,
    process: u32,
    thread: u32,
    time_ns: u64,
) -> Access {
    Access {
        process,
        thread,
        time_ns,
        ip: Avma(record.ip),
        in_kernel: record.in_kernel,
        address: record.address.map(Avma),
        kind: record.kind,
        latency: record.latency.filter(|latency| *latency > 0),
        level: record.level(is_neoverse),
        translation: record.translation(),
        is_locked: record.is_locked,
        period: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insight::samples::AccessKind;
    use records::profile::Level;
    use testkit::perf_data::ibs_raw;

    #[test]
    fn what_the_kernel_tells_comes_before_the_registers() {
        // A load that missed L1 and L2.
        let missed = 1 | 1 << 7 | 1 << 17 | 1 << 20 | 400 << 32;
        let raw = ibs_raw(1 << 11, 3, missed, 0x8000);
        let sample = RawSample { ip: 0x40_1000, raw: &raw, ..RawSample::default() };
        let by_raw = of_sample(&sample, Role::Ibs, false, 1).unwrap();
        assert_eq!(
            (by_raw.level, by_raw.latency, by_raw.address),
            (Level::Dram, Some(400), Some(Avma(0x8000)))
        );
        let told =
            RawSample { data_source: Some(2 | 3 << 33), weight: 90, address: 0x9000, ..sample.clone() };
        let told = of_sample(&told, Role::Ibs, false, 1).unwrap();
        assert_eq!((told.level, told.latency, told.address), (Level::L3, Some(90), Some(Avma(0x9000))));
        assert_eq!(told.kind, AccessKind::Load);
        assert_eq!(of_sample(&sample, Role::Pebs, false, 1), None, "the raw part is not IBS's");
    }
}
