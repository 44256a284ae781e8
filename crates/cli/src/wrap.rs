//! Text for people, in lines that fit the terminal.

/// Breaks lines between words where they are longer than `width`; what follows stands two blanks
/// further in. Spaces inside a line stay as they are, for columns' sake. A word longer than a line
/// stands alone.
pub(crate) fn lines(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| wrapped(line, width)).collect()
}

fn wrapped(line: &str, width: usize) -> String {
    if seen(line.trim_end()) <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let further = " ".repeat((indent + 2).min(width / 2));
    let (mut text, mut taken) = (line[..indent].to_owned(), indent);
    for word in line[indent..].split_inclusive(' ') {
        let shown = seen(word.trim_end());
        if shown > 0 && taken > further.len() && taken + shown > width {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.push_str(&further);
            taken = further.len();
        }
        text.push_str(word);
        taken += seen(word);
    }
    text
}

/// Characters that a terminal shows: not those that set colours.
fn seen(text: &str) -> usize {
    let mut escape = false;
    let shown = text.chars().filter(|&c| {
        let hidden = escape || c == '\x1b' || c == '\n';
        escape = c == '\x1b' || escape && c != 'm';
        !hidden
    });
    shown.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words() {
        let text = "short\n  - a reason that is longer\n  \u{1b}[32mword\u{1b}[0m end\n";
        let narrow = "short\n  - a reason\n    that is\n    longer\n  \u{1b}[32mword\u{1b}[0m end\n";
        assert_eq!(lines(text, 12), narrow);
        assert_eq!(lines(text, usize::MAX), text);
        assert_eq!(lines("unbreakable", 4), "unbreakable");
        assert_eq!(lines("a  b  c", 4), "a  b\n  c");
    }
}
