//! What a terminal may be shown: nothing that steers it, and only characters that it has.

/// Text from files and from other programs, every control character escaped: `\u{1b}`, `\n`.
pub(crate) fn escaped(text: &str) -> String {
    escaped_but(text, &[])
}

/// The same for text of several lines, which stay lines.
pub(crate) fn escaped_lines(text: &str) -> String {
    escaped_but(text, &['\n', '\t'])
}

fn escaped_but(text: &str, kept: &[char]) -> String {
    let escape = |c: char| (c.is_control() || turns_direction(c)) && !kept.contains(&c);
    let mut plain = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, c) in text.char_indices().filter(|&(_, c)| escape(c)) {
        plain.push_str(&text[rest..at]);
        plain.extend(c.escape_default());
        rest = at + c.len_utf8();
    }
    plain.push_str(&text[rest..]);
    plain
}

/// JSON escapes most control characters itself, but not DEL and those above U+0080, which terminals
/// obey as well.
pub(crate) fn escaped_json(json: &str) -> String {
    let escape = |c: char| (c.is_control() && c != '\n') || turns_direction(c);
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if escape(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

/// Characters that show what follows them in another order than it stands.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether text for people is ASCII alone: in a locale that is not UTF-8, and on a terminal that
/// can do nothing.
pub(crate) fn only_ascii() -> bool {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    ascii_by(is_dumb(), ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value).as_deref())
}

/// A terminal without escape sequences.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn ascii_by(dumb: bool, locale: Option<&str>) -> bool {
    let utf8 = locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    dumb || !utf8
}

/// The text in ASCII: signs by what comes close, a curve of Braille dots by asterisks, and `?` for
/// the rest.
pub(crate) fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if c.is_ascii() => plain.push(c),
            '✓' => plain.push('+'),
            '✗' | '–' | '—' | '−' => plain.push('-'),
            '·' | '•' => plain.push('.'),
            '×' => plain.push('x'),
            'µ' | 'μ' => plain.push('u'),
            '‘' | '’' => plain.push('\''),
            '“' | '”' => plain.push('"'),
            '…' => plain.push_str("..."),
            '→' => plain.push_str("->"),
            '≤' => plain.push_str("<="),
            '≥' => plain.push_str(">="),
            '±' => plain.push_str("+-"),
            '\u{2800}' => plain.push(' '),
            '\u{2801}'..='\u{28ff}' => plain.push('*'),
            _ => plain.push('?'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(escaped("a\u{1b}[31m\u{7}\n\u{9b}é\u{202e}"), "a\\u{1b}[31m\\u{7}\\n\\u{9b}é\\u{202e}");
        assert_eq!(escaped_lines("a\n\tb\r"), "a\n\tb\\r");
        let json = serde_json::to_string_pretty(&["\u{1b}\u{9b}\u{7f}"]).unwrap();
        let shown = escaped_json(&json);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), ["\u{1b}\u{9b}\u{7f}"]);
    }

    #[test]
    fn the_locale_decides_on_characters() {
        for (locale, ascii) in [
            (Some("C"), true),
            (Some("POSIX"), true),
            (Some("de_DE.ISO-8859-1"), true),
            (None, true),
            (Some("C.UTF-8"), false),
            (Some("en_GB.utf8"), false),
        ] {
            assert_eq!(ascii_by(false, locale), ascii, "{locale:?}");
        }
        assert!(ascii_by(true, Some("C.UTF-8")));
    }

    #[test]
    fn ascii_says_the_same() {
        assert_eq!(ascii("✓ 3 × 4 µs … ⠀⡇é"), "+ 3 x 4 us ...  *?");
    }
}
