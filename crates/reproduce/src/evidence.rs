//! What a run has to show, and how figures are taken from it.

use crate::missing::Missing;
use records::host::{Ability, Counters, Host};
use records::machine::{Machine, Numa, Outcome, Status};
use records::profile::Profile;
use records::run::Run;
use units::{Estimate, Quantity, Unit};

/// The records of one run, and figures of programs that it ran, by the names that
/// [`crate::programs`] lists.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    pub machine: Option<&'a Machine>,
    pub profiles: Vec<(&'static str, Profile)>,
    pub runs: Vec<(&'static str, Run)>,
    pub figures: Vec<(&'static str, Quantity)>,
    /// Why programs were not run, or not all of them.
    pub without: Option<Missing>,
}

pub(crate) type Found = Result<Quantity, Missing>;

impl<'a> Evidence<'a> {
    pub(crate) fn machine(&self) -> Result<&'a Machine, Missing> {
        self.machine.ok_or_else(|| Missing::NotRun("nothing of the machine was measured".to_owned()))
    }

    fn named<'b, T>(&self, all: &'b [(&'static str, T)], name: &str) -> Result<&'b T, Missing> {
        match all.iter().find(|(other, _)| *other == name) {
            Some((_, found)) => Ok(found),
            None => Err(self.without.clone().unwrap_or_else(|| Missing::NotRun(format!("{name}: not run")))),
        }
    }

    pub(crate) fn profile(&self, name: &str) -> Result<&Profile, Missing> {
        self.named(&self.profiles, name)
    }

    pub(crate) fn run(&self, name: &str) -> Result<&Run, Missing> {
        self.named(&self.runs, name)
    }

    pub(crate) fn figure(&self, name: &str) -> Result<&Quantity, Missing> {
        self.named(&self.figures, name)
    }

    fn host(&self) -> Result<&'a Host, Missing> {
        Ok(&self.machine()?.host)
    }

    /// The NUMA experiment, where there are nodes to compare.
    pub(crate) fn numa(&self) -> Result<&'a Numa, Missing> {
        self.needs_nodes(2, "a second NUMA node")?;
        let numa = result("numa", self.machine()?.experiments.numa.as_ref())?;
        if numa.nodes.len() < 2 {
            let (there, used) = (self.host()?.nodes.len(), numa.nodes.len());
            return not_identifiable(format!("{used} of {there} nodes could be used"));
        }
        Ok(numa)
    }

    /// An error where this host has fewer nodes: the claim is about something that is not here.
    pub(crate) fn needs_nodes(&self, least: usize, what: &str) -> Result<(), Missing> {
        match self.host()?.nodes.len() {
            // What is not listed is not known to be missing.
            0 => not_identifiable("the host does not say how many NUMA nodes it has"),
            nodes if nodes < least => Err(Missing::Hardware(format!("{what}: this host shows {nodes}"))),
            _ => Ok(()),
        }
    }

    /// For claims whose figure another program counts: on a host without such counters, only other
    /// hardware shows it.
    pub(crate) fn counted(&self, ability: fn(&Counters) -> &Ability, by: &str) -> Found {
        match ability(&self.host()?.counters) {
            Ability::Yes { .. } => Err(Missing::NoTest(format!("{by} can count it on this host"))),
            Ability::No { why, .. } => Err(Missing::Hardware(format!("a PMU: {why}"))),
            Ability::Unknown { why } => {
                not_identifiable(format!("whether there is a PMU is not known: {why}"))
            }
        }
    }

    /// For claims about the two hyperthreads of a core that no evidence is for.
    pub(crate) fn hyperthreads(&self, test: &str) -> Found {
        let smt = &self.host()?.topology.smt;
        let pairs = smt.measured.get().map_or(0, Vec::len);
        match smt.threads_per_core.value() {
            _ if pairs > 0 => {
                Err(Missing::NoTest(format!("{pairs} pairs of CPUs slow each other down here; {test}")))
            }
            Some(threads) if threads > 1 => {
                Err(Missing::NoTest(format!("cores show {threads} hyperthreads here; {test}")))
            }
            // A guest's topology is what its hypervisor makes up.
            Some(_) if self.is_guest()? => not_identifiable(
                "this guest shows one hyperthread a core, and cannot see whether its CPUs are two of one",
            ),
            Some(_) => needs("a second hyperthread on each core: this host shows one"),
            None => {
                let why = smt.threads_per_core.why_unknown().unwrap_or("the host does not say");
                not_identifiable(format!("whether cores have hyperthreads is not known: {why}"))
            }
        }
    }

    /// Whether two CPUs of this host may be threads of one core.
    pub(crate) fn may_have_siblings(&self) -> bool {
        let Ok(host) = self.host() else { return false };
        let smt = &host.topology.smt;
        let none = smt.threads_per_core.value() == Some(1) && smt.measured.get().is_none_or(Vec::is_empty);
        !none || self.is_guest().unwrap_or(true)
    }

    /// What the processor is called, for sentences about others.
    pub(crate) fn processor(&self) -> Result<String, Missing> {
        let processor = &self.host()?.processor;
        Ok(processor.name.get().cloned().unwrap_or_else(|| "another processor".to_owned()))
    }

    /// Whether this is a guest of a hypervisor, as far as it shows.
    pub(crate) fn is_guest(&self) -> Result<bool, Missing> {
        let hypervisor = &self.machine()?.host.virtualization.hypervisor;
        Ok(hypervisor.get().is_some_and(|name| name != "none"))
    }
}

/// The result of an experiment; without one, why there is none.
pub(crate) fn result<'a, T>(name: &str, outcome: Option<&'a Outcome<T>>) -> Result<&'a T, Missing> {
    let Some(outcome) = outcome else {
        return Err(Missing::NotRun(format!("the record has no {name} experiment")));
    };
    outcome.result.as_ref().ok_or_else(|| {
        let why = outcome.why.as_deref().unwrap_or("no reason given");
        match outcome.status {
            Status::NotPossible => Missing::NotIdentifiable(format!("{name}: {why}")),
            _ => Missing::NotRun(format!("{name}: {why}")),
        }
    })
}

/// A figure that may be unresolved.
pub(crate) fn resolved(quantity: &Quantity) -> Result<(Estimate, Option<String>), Missing> {
    match quantity {
        Quantity::Resolved { disturbed, .. } => {
            let estimate = quantity.estimate().unwrap_or_else(|| unreachable!("resolved"));
            Ok((estimate, disturbed.clone()))
        }
        Quantity::Unresolved { unresolved } => Err(Missing::NotIdentifiable(unresolved.clone())),
    }
}

/// One figure over another, both positive. What disturbed either disturbs the ratio.
pub(crate) fn ratio(over: &Quantity, under: &Quantity) -> Found {
    if resolved(under)?.0.lo <= 0.0 {
        return not_identifiable("the figure that is divided by may be nothing");
    }
    combined(over, under, quotient)
}

/// Half widths add in quadrature, which reaches too far where they are wide: no further than the
/// ends of both intervals allow.
pub(crate) fn quotient(over: Estimate, under: Estimate) -> Estimate {
    let found = over.over(under);
    let (least, most) = (over.lo / under.hi, over.hi / under.lo);
    if found.lo.is_finite() && found.hi.is_finite() {
        Estimate::new(found.value, found.lo.max(least), found.hi.min(most))
    } else {
        Estimate::new(found.value, least, most)
    }
}

/// A ratio that two figures make together.
pub(crate) fn combined(a: &Quantity, b: &Quantity, make: fn(Estimate, Estimate) -> Estimate) -> Found {
    let ((a, disturbed_a), (b, disturbed_b)) = (resolved(a)?, resolved(b)?);
    Ok(Quantity::modelled(make(a, b), Unit::Ratio).disturbed_by(disturbed_a.or(disturbed_b)))
}

/// A range that a document states: no interval of confidence.
pub(crate) fn claimed(lo: f64, hi: f64, unit: Unit) -> Quantity {
    match Quantity::claimed(f64::midpoint(lo, hi), unit) {
        Quantity::Resolved { value, unit, basis, disturbed, .. } => {
            Quantity::Resolved { value, lo, hi, unit, basis, disturbed, bound: None }
        }
        unresolved @ Quantity::Unresolved { .. } => unresolved,
    }
}

/// The claim is about something that this host does not have.
pub(crate) fn needs(hardware: &str) -> Found {
    Err(Missing::Hardware(hardware.to_owned()))
}

pub(crate) fn not_identifiable<T>(why: impl Into<String>) -> Result<T, Missing> {
    Err(Missing::NotIdentifiable(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::{Fact, Node};

    #[test]
    fn a_ratio_of_wide_intervals_stays_positive() {
        let e = Estimate::new;
        let narrow = quotient(e(20.0, 19.0, 21.0), e(10.0, 9.5, 10.5));
        assert!((1.85..1.95).contains(&narrow.lo) && narrow.hi < 2.2, "{narrow:?}");
        let wide = quotient(e(100.0, 10.0, 500.0), e(10.0, 1.0, 90.0));
        assert!(wide.lo > 0.1 && wide.lo < 0.2 && wide.value == 10.0, "{wide:?}");
        assert!(quotient(e(0.0, 0.0, 1.0), e(2.0, 1.0, 3.0)).hi <= 1.0);
    }

    fn machine() -> Machine {
        let fixture = include_bytes!("../../records/fixtures/machine.v1.interrupted.json");
        let mut machine = records::parse::<Machine>(fixture).expect("a record").body;
        machine.host = Host::default();
        machine
    }

    #[test]
    fn the_host_decides_what_is_missing() {
        let mut machine = machine();
        let missing = |machine: &Machine, of: fn(&Evidence<'_>) -> Found| {
            of(&Evidence { machine: Some(machine), ..Evidence::default() }).expect_err("no figure")
        };
        let smt: fn(&Evidence<'_>) -> Found = |evidence| evidence.hyperthreads("x");
        assert!(matches!(missing(&machine, smt), Missing::NotIdentifiable(_)), "nothing is known");
        machine.host.topology.smt.threads_per_core = Fact::Known(1);
        assert!(matches!(missing(&machine, smt), Missing::Hardware(why) if why.contains("shows one")));
        machine.host.topology.smt.threads_per_core = Fact::Known(2);
        assert!(matches!(missing(&machine, smt), Missing::NoTest(why) if why.contains("2 hyperthreads")));

        let counted: fn(&Evidence<'_>) -> Found =
            |e| e.counted(|counters| &counters.cache_misses, "perf stat");
        machine.host.counters.cache_misses = Ability::no("no such event", "bare metal");
        assert!(
            matches!(missing(&machine, counted), Missing::Hardware(why) if why == "a PMU: no such event")
        );
        machine.host.counters.cache_misses = Ability::yes("");
        assert!(matches!(missing(&machine, counted), Missing::NoTest(_)));

        let nodes: fn(&Evidence<'_>) -> Found = |evidence| evidence.numa().map(|_| unreachable!());
        let node = Node {
            id: 0,
            cpus: "0".parse().expect("a list"),
            total: Fact::unknown("x"),
            free: Fact::unknown("x"),
            distances: Fact::unknown("x"),
            hugetlb: Vec::new(),
        };
        machine.host.nodes = vec![node.clone()];
        assert!(matches!(missing(&machine, nodes), Missing::Hardware(why) if why.contains("shows 1")));
        machine.host.nodes.push(node);
        machine.experiments.numa = None;
        assert!(matches!(missing(&machine, nodes), Missing::NotRun(_)), "there are two, but no experiment");
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let of = |value, lo, hi| Quantity::measured(Estimate::new(value, lo, hi), Unit::Nanos);
        assert!(ratio(&of(1.0, 0.9, 1.1), &of(0.1, -0.1, 0.3)).is_err());
        assert!(ratio(&of(1.0, 0.9, 1.1), &of(0.5, 0.4, 0.6).disturbed_by(Some("x".to_owned()))).is_ok());
    }
}
