//! `seq(AREA)`: line after line.

use super::figure::{Figure, Source};
use super::known::{Known, lacks};
use super::split;
use crate::pattern::Access;
use records::machine::{Pattern, StreamKind};
use records::run::Refused;

pub(crate) fn figure(known: &Known<'_>, access: &Access) -> Result<Figure, Refused> {
    let area = access.area.0 as f64;
    let line = known.line() as f64;
    let level = known.level_of(area).map(|place| &known.levels[place]);
    let from_memory = if known.is_in_memory(area) { line } else { 0.0 };
    let operation = access.options.operation.unwrap_or(StreamKind::Read);
    if let Some(time) = known.line_time_of(operation, area) {
        return Ok(Figure {
            time,
            levels: split::whole(level, time),
            source: Source::Curve,
            why: format!("the measured rates of passes in order ({})", operation.word()),
            pages: "thp".to_owned(),
            from_memory,
            waits: 0.0,
            remarks: Vec::new(),
        });
    }
    if operation != StreamKind::Read {
        return Err(lacks(access, &format!("rates of '{}'", operation.word()), "bandwidth"));
    }
    let (curve, points, remark) = known.curve(access, Pattern::Forward)?;
    let time = points.at(area);
    let mut remarks: Vec<String> = remark.into_iter().collect();
    remarks
        .push("the record has no bandwidths: loads that do not wait for each other may be faster".to_owned());
    Ok(Figure {
        time,
        levels: split::whole(level, time),
        source: Source::Curve,
        why: "the measured curve of dependent loads in order".to_owned(),
        pages: curve.pages.asked.clone(),
        from_memory,
        waits: 0.0,
        remarks,
    })
}
