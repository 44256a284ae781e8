//! Names as text of one line. Names come from files of all kinds, and formats of lines have no way
//! to quote a line's end.

/// The text with its control characters as `\xHH`, as records write bytes that are no text.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            clean.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            clean.push(c);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    #[test]
    fn control_characters_are_told_by_their_numbers() {
        assert_eq!(super::clean("a\nb\x1b[0m é"), "a\\x0ab\\x1b[0m é");
    }
}
