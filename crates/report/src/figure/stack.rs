//! One bar made of parts, with its legend.

use super::{SERIES, label, svg};
use crate::text::{cut, escape};

const WIDTH: f64 = 600.0;
const LEFT: f64 = 4.0;
const ALL: f64 = 592.0;

/// A part of the whole: its name, its share from 0 to 1, and that share as it is written.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) share: f64,
    pub(crate) shown: String,
}

pub(crate) fn stack(title: &str, parts: &[Part]) -> String {
    let parts: Vec<&Part> = parts.iter().filter(|part| part.share.is_finite()).collect();
    let total: f64 = parts.iter().map(|p| p.share.max(0.0)).sum::<f64>().max(1.0);
    let (mut x, mut inside) = (LEFT, String::new());
    for (n, part) in parts.iter().enumerate() {
        let wide = part.share.max(0.0) / total * ALL;
        let class = n % SERIES;
        inside.push_str(&format!(
            "<g class=\"s{class}\"><title>{}</title><rect class=\"part\" x=\"{x:.1}\" y=\"6\" width=\"{:.1}\" \
             height=\"40\"/></g>",
            escape(&format!("{}: {}", part.name, part.shown)),
            (wide - 1.0).max(0.3),
        ));
        let letter = char::from(b'A' + (n % 26) as u8);
        if wide > 16.0 {
            let text = label(x + wide / 2.0, 31.0, "middle", &letter.to_string());
            inside.push_str(&text.replacen("<text", &format!("<text class=\"on on{class}\""), 1));
        }
        x += wide;
        let y = 66.0 + 20.0 * n as f64;
        inside.push_str(&format!(
            "<g class=\"s{class}\"><rect class=\"part\" x=\"{LEFT}\" y=\"{:.0}\" width=\"14\" height=\"14\"/></g>",
            y - 11.0
        ));
        let text = format!("{letter}  {}: {}", part.name, part.shown);
        inside.push_str(&label(LEFT + 22.0, y, "start", &cut(&text, 84)));
    }
    svg("stack", WIDTH, 66.0 + 20.0 * parts.len() as f64, title, &inside)
}
