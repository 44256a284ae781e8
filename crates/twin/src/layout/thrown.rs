//! What becomes of an exception that is thrown at an instruction, by its unit's exception table.

use image::unwind::lsda::Lsda;
use units::Svma;

/// What becomes of an exception that is thrown at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThrownTo {
    /// It goes on to the caller.
    Caller,
    /// The exception table does not list the place: most languages end the program.
    Unlisted,
    /// It lands in the unit.
    Unit,
}

/// What becomes of those that are thrown at `at` of a unit with this table, by
/// [`Module::exceptions`].
pub(crate) fn thrown(table: Option<&Option<Lsda<'_>>>, at: Svma) -> ThrownTo {
    let Some(table) = table else { return ThrownTo::Caller };
    let Some(table) = table else { return ThrownTo::Unit }; // nobody knows
    // Personalities rely on their order, too.
    let begun = &table.call_sites[..table.call_sites.partition_point(|site| site.start <= at)];
    let last = begun.iter().rev().find(|site| site.length > 0);
    match last.filter(|site| at.0 - site.start.0 < site.length) {
        None => ThrownTo::Unlisted,
        Some(site) if site.landing_pad.is_none() => ThrownTo::Caller,
        Some(_) => ThrownTo::Unit,
    }
}
