//! Which of the values of a sample are CPU time. Files hold all kinds of samples, of memory, of
//! locks, of waiting: none of these is time that a core spent, and none is taken for it.

use super::StoredError;

/// What a value of a sample is: a kind and a unit, as the file spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueType {
    pub kind: String,
    pub unit: String,
}

impl ValueType {
    /// As `pprof` writes it.
    pub(super) fn word(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("/{}", self.unit) };
        // What a file calls them goes to the terminal.
        let shown = format!("{}{unit}", self.kind);
        shown.chars().take(60).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
    }

    /// Nanoseconds in one of its units, if that is time.
    fn nanoseconds(&self) -> Option<u64> {
        match self.unit.as_str() {
            "nanoseconds" | "nanosecond" | "ns" => Some(1),
            "microseconds" | "microsecond" | "us" => Some(1_000),
            "milliseconds" | "millisecond" | "ms" => Some(1_000_000),
            "seconds" | "second" | "s" => Some(1_000_000_000),
            _ => None,
        }
    }

    fn is_cpu(&self) -> bool {
        let kind = self.kind.to_ascii_lowercase();
        matches!(kind.as_str(), "cpu" | "cpu-clock" | "task-clock" | "on-cpu" | "on_cpu" | "process_cpu")
            || kind.starts_with("cycles")
            || kind.starts_with("cpu-cycles")
            || kind.starts_with("cpu_cycles")
    }

    /// Samples of a timer of CPU time, if what the period counts says no other.
    fn is_count(&self, period: &Self) -> bool {
        let kind = self.kind.to_ascii_lowercase();
        let is_plain =
            matches!(kind.as_str(), "samples" | "sample" | "samples_count") && self.unit != "bytes";
        // As perf_data_converter names them, by their event.
        let of_event = ["cpu-clock_sample", "task-clock_sample", "cycles_sample", "cpu-cycles_sample"];
        is_plain && (period.kind.is_empty() || period.is_cpu()) || of_event.contains(&kind.as_str())
    }

    fn is_time(&self) -> bool {
        self.is_cpu() && self.nanoseconds().is_some()
    }
}

/// The columns that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// How many samples.
    pub count: Option<usize>,
    /// CPU time, and nanoseconds in one of its units.
    pub time: Option<(usize, u64)>,
    /// CPU time that a sample stands for, if that is told.
    pub period_ns: Option<u64>,
    /// As the file spells those that are used.
    pub words: Vec<String>,
}

/// Chooses among the types of a file, of which `period` says what its samples are taken by.
pub(super) fn choose(
    types: &[ValueType],
    period: &ValueType,
    period_value: u64,
) -> Result<Chosen, StoredError> {
    let time = types.iter().position(ValueType::is_time);
    let count = types.iter().position(|it| it.is_count(period) || it.is_cpu() && it.unit == "count");
    let used = types.iter().enumerate().filter(|(at, _)| Some(*at) == time || Some(*at) == count);
    // A count alone may be of anything, unless its period says that it is CPU time.
    let is_known = time.is_some()
        || count.is_some_and(|at| {
            period.is_cpu() || types[at].kind.to_ascii_lowercase().ends_with("_sample") || types[at].is_cpu()
        });
    if !is_known {
        let present: Vec<String> = types.iter().map(ValueType::word).collect();
        return Err(StoredError::OtherSamples {
            present: if present.is_empty() { "not named".to_owned() } else { present.join(", ") },
        });
    }
    let of_cpu = period.is_cpu() && period_value > 0;
    Ok(Chosen {
        count,
        time: time.map(|at| (at, types[at].nanoseconds().unwrap_or(1))),
        period_ns: period.nanoseconds().filter(|_| of_cpu).and_then(|unit| unit.checked_mul(period_value)),
        words: used.map(|(_, it)| it.word()).collect(),
    })
}

impl Chosen {
    /// How many samples and how many nanoseconds these values are, one of which `quantum` of the
    /// chosen time stands for, where samples are not counted.
    pub(super) fn of(&self, values: &[u64], quantum: u64) -> (u64, u64) {
        let value = |at: usize| values.get(at).copied().unwrap_or(0);
        let ns = self.time.map(|(at, unit)| value(at).saturating_mul(unit));
        let count = match (self.count, ns) {
            (Some(at), _) => value(at),
            (None, Some(ns)) => ns.saturating_add(quantum / 2) / quantum.max(1),
            (None, None) => 0,
        };
        (count, ns.unwrap_or_else(|| count.saturating_mul(self.period_ns.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(types: &[(&str, &str)], period: (&str, &str), value: u64) -> Result<Chosen, String> {
        let one = |&(kind, unit): &(&str, &str)| ValueType { kind: kind.to_owned(), unit: unit.to_owned() };
        let types: Vec<ValueType> = types.iter().map(one).collect();
        choose(&types, &one(&period), value).map_err(|e| e.to_string())
    }

    #[test]
    fn cpu_time_is_chosen_among_several() {
        let go = of(&[("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), 10_000_000);
        let go = go.unwrap();
        assert_eq!((go.count, go.time, go.period_ns), (Some(0), Some((1, 1)), Some(10_000_000)));
        assert_eq!(go.of(&[3, 30_000_000], 1), (3, 30_000_000));
        let parca = of(&[("samples", "count")], ("cpu", "nanoseconds"), 52_631_578).unwrap();
        assert_eq!((parca.count, parca.time), (Some(0), None));
        assert_eq!(parca.of(&[2], 1), (2, 105_263_156));
        let pyroscope = of(&[("cpu", "nanoseconds")], ("cpu", "nanoseconds"), 10_000_000).unwrap();
        assert_eq!(pyroscope.of(&[30_000_000], 10_000_000), (3, 30_000_000));
        let both = of(&[("wall", "nanoseconds"), ("cpu", "milliseconds")], ("", ""), 0).unwrap();
        assert_eq!(
            (both.count, both.time, both.words.join(",")),
            (None, Some((1, 1_000_000)), "cpu/milliseconds".to_owned())
        );
        assert!(of(&[("cycles_sample", "count"), ("cycles_event", "count")], ("", ""), 0).is_ok());
    }

    #[test]
    fn what_is_no_cpu_time_is_refused_with_what_is_there() {
        let heap = [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ];
        let says = of(&heap, ("space", "bytes"), 524_288).unwrap_err();
        assert!(says.contains("alloc_objects/count, alloc_space/bytes"), "{says}");
        for (types, period) in [
            (&[("contentions", "count"), ("delay", "nanoseconds")][..], ("contentions", "count")),
            (&[("goroutine", "count")], ("goroutine", "count")),
            (&[("samples", "count"), ("time", "nanoseconds")], ("wallclock", "nanoseconds")),
            (&[("wall", "nanoseconds")], ("wall", "nanoseconds")),
            (&[("samples", "count")], ("", "")),
            (&[], ("cpu", "nanoseconds")),
        ] {
            assert!(of(types, period, 1).is_err(), "{types:?}");
        }
    }
}
