//! Windows drawn at random from areas.

use super::plot;
use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Plot, Series};
use crate::parts::Out;
use crate::text::size;
use records::machine::Windows;

pub(super) fn figures(windows: &Windows, out: &mut Out) {
    let line = windows.line.0.max(1) as f64;
    let series = windows.curves.iter().map(|curve| {
        let lines = (curve.window.0 as f64 / line).max(1.0);
        let points = curve
            .points
            .iter()
            .filter_map(|p| Some((p.area.0 as f64, p.cost.ns.estimate()?.scaled(1.0 / lines))));
        let vector = if curve.vectorised { ", vectors" } else { "" };
        let name = format!("{}{vector}, {} pages", size(curve.window.0 as f64), curve.pages.asked);
        Series { name, points: points.collect() }
    });
    let figure = Plot {
        title: "Large windows amortise the first miss: the cost of a line by the size of the window"
            .to_owned(),
        x: ("area that windows are drawn from".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("time per line of the window (ns)".to_owned(), Scale::Log),
        series: series.collect(),
        marks: Vec::new(),
    };
    let differs =
        "prefetchers decide what the lines after the first one cost; small pages add a walk to each window.";
    plot(out, "windows", figure, differs);
}
