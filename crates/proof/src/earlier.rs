//! What a [`Checker`](crate::Checker) keeps from one rewritten file to the next of the same
//! original: liveness, which looks at the original alone, and at what a mapping says is an
//! instruction or a jump table there. No twin, inserted byte or yield has a part in it.
//!
//! Nothing is taken on trust: what was kept is used only if all that it was found from is the same
//! in the next file, compared value by value ([`Basis`]). To let liveness look at more of a
//! mapping: put it into the basis.

use crate::container::mapping::{Mapping, Table};
use crate::container::stream;
use crate::unwind::Tables;
use crate::{liveness, yields};

/// All of a mapping that liveness looks at. Of the unwind tables it sees the original's alone, and
/// which of their descriptions are those of units.
#[derive(PartialEq, Eq)]
pub(crate) struct Basis {
    units: Vec<UnitBasis>,
    /// The offsets of the instructions of all units, and their lengths.
    offsets: Vec<u32>,
    lengths: Vec<u8>,
    tables: Vec<[u64; 6]>,
    labels: Vec<u64>,
}

#[derive(PartialEq, Eq)]
struct UnitBasis {
    start: u64,
    size: usize,
    /// How many instructions can be read of it.
    count: usize,
    description: u32,
    tables: (u32, u32),
}

impl Basis {
    pub(crate) fn of(mapping: &Mapping<'_>, unwind: &Tables<'_>) -> Self {
        let mut basis = Self {
            units: Vec::new(),
            offsets: Vec::new(),
            lengths: Vec::new(),
            tables: Vec::new(),
            labels: mapping.labels.clone(),
        };
        let mut items = Vec::new();
        for (index, unit) in mapping.units.iter().enumerate() {
            if stream::read(unit, &mut items).is_err() {
                items.clear();
            }
            basis.offsets.extend(items.iter().map(|item| item.at));
            basis.lengths.extend(items.iter().map(|item| item.len));
            basis.units.push(UnitBasis {
                start: unit.start,
                size: unit.code.len(),
                count: items.len(),
                description: unwind.of_unit(index),
                tables: unit.tables,
            });
        }
        // Where a table's twin lies does not count.
        let table = |&Table { jump, load, original, twin: _, base, count, entry }: &Table| {
            [jump, load, original, base, u64::from(count), u64::from(entry)]
        };
        basis.tables = mapping.tables.iter().map(table).collect();
        basis
    }
}

type Found = (liveness::Found, yields::interprocedural::Found);

#[derive(Default)]
pub(crate) struct Earlier {
    found: Option<(Basis, Found)>,
}

impl Earlier {
    /// What was found from the same.
    pub(crate) fn take(&mut self, basis: &Basis) -> Option<Found> {
        self.found.take().filter(|(earlier, _)| earlier == basis).map(|(_, found)| found)
    }

    pub(crate) fn keep(
        &mut self,
        basis: Basis,
        dead: liveness::Found,
        of_callers: yields::interprocedural::Found,
    ) {
        self.found = Some((basis, (dead, of_callers)));
    }
}
