//! Text for the page: escaped, and figures with as many digits as their intervals warrant.

use units::{Basis, Bytes, Estimate, Quantity};

/// Any text of a record, for HTML and SVG, in elements and in quoted attributes. Controls and marks
/// that turn the direction of writing are spelt out, as they could make a name look like another.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if turns_direction(c) => out.push_str(&format!("‹U+{:04X}›", c as u32)),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Marks that change the direction in which text is shown.
pub(crate) fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name within a sentence: its direction of writing does not reach beyond it.
pub(crate) fn name(text: &str) -> String {
    format!("<bdi class=\"name\">{}</bdi>", escape(text))
}

/// The beginning of a text that is too long for its place.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// What a reader sees of a path first: its last part.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(path)
}

/// A figure in words, escaped: with its interval, and whether it is modelled or claimed.
pub(crate) fn quantity(q: &Quantity) -> String {
    let mut text = q.brief();
    let mut note = String::new();
    if let Quantity::Resolved { basis, disturbed, .. } = q {
        text.push_str(match basis {
            Basis::Measured => "",
            Basis::Modelled => " (modelled)",
            Basis::Claimed => " (claimed)",
        });
        if let Some(what) = disturbed {
            // It is a sentence, and fills lines even where figures do not.
            note = format!(" <span class=\"note\">(disturbed: {})</span>", escape(what));
        }
    }
    escape(&text) + &note
}

/// A share as a percentage with its interval, escaped.
pub(crate) fn share(q: &Quantity) -> String {
    let Some(e) = q.estimate() else { return quantity(q) };
    let modelled = matches!(q, Quantity::Resolved { basis: Basis::Modelled, .. });
    let text = percent(e);
    if modelled { text + " (modelled)" } else { text }
}

/// A share with its interval, as `12.3% [11.0, 13.6]`.
pub(crate) fn percent(e: Estimate) -> String {
    let e = e.scaled(100.0);
    if e.lo == e.hi { format!("{}%", number(e.value)) } else { units::figures(e, "%") }
}

/// `4.00 [3.98, 4.02]`, for tables whose heads name the unit; scripts read it back.
pub(crate) fn figures(e: Estimate) -> String {
    if e.lo == e.hi {
        return number(e.value);
    }
    units::figures(e, "")
}

/// The same for a label in a figure: four digits at most, and no interval that they do not show.
pub(crate) fn label_figures(e: Estimate) -> String {
    let largest = e.value.abs().max(e.hi.abs());
    let most = (3 - largest.max(1e-12).log10().floor() as i32).clamp(0, 12) as usize;
    let full = figures(e);
    let decimals = full.split([' ', '%']).next().and_then(|value| Some(value.split_once('.')?.1.len()));
    if e.lo == e.hi || decimals.unwrap_or(0) <= most {
        return full;
    }
    let [value, lo, hi] = [e.value, e.lo, e.hi].map(|x| format!("{x:.most$}"));
    if lo == hi { value } else { format!("{value} [{lo}, {hi}]") }
}

/// A number to four digits, without zeros that say nothing.
pub(crate) fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return "0".to_owned();
    }
    let decimals = (3 - x.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{x:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// A size in short: `32K`, `1.5M`.
pub(crate) fn size(bytes: f64) -> String {
    Bytes(bytes.max(0.0).round() as u64).to_string().replace("iB", "").replace(' ', "")
}

/// Base64 as data addresses and hashes want it.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let there = digit <= group.len();
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if there { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape("</script><b a=\"'&"), "&lt;/script&gt;&lt;b a=&quot;&#39;&amp;");
        assert_eq!(escape("a\u{202e}b\0"), "a‹U+202E›b\u{fffd}");
    }

    #[test]
    fn base64_is_the_common_one() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(figures(Estimate::new(4.0012, 3.98, 4.02)), "4.00 [3.98, 4.02]");
        assert_eq!(percent(Estimate::new(0.123, 0.11, 0.14)), "12.3% [11.0, 14.0]");
        assert_eq!(figures(Estimate::exact(2.5)), "2.5");
        assert_eq!(label_figures(Estimate::new(3.6941, 3.69410, 3.69412)), "3.694");
        assert_eq!(label_figures(Estimate::new(123.456, 123.40, 123.52)), "123.5 [123.4, 123.5]");
        assert_eq!(label_figures(Estimate::new(9.7, 8.6, 10.8)), "9.7 [8.6, 10.8]");
        assert_eq!(size(32768.0), "32K");
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
