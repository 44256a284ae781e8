//! From text to a pattern; what cannot be understood is told with its place.

use super::{Access, KINDS, Kind, Options, Pattern, takes};
use records::machine::StreamKind;
use std::fmt;
use std::ops::Range;
use units::Bytes;

/// Parentheses and repetitions inside each other, at most.
const DEEPEST: usize = 32;

const OPERATIONS: [StreamKind; 6] = [
    StreamKind::Read,
    StreamKind::Write,
    StreamKind::Copy,
    StreamKind::Triad,
    StreamKind::NtWrite,
    StreamKind::NtCopy,
];

const OPTIONS: [&str; 9] = ["n", "mlp", "lines", "zipf", "pages", "remote", "op", "work", "instructions"];

const PAGES: [&str; 4] = ["4K", "thp", "2M", "1G"];

/// What cannot be understood, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternError {
    /// Bytes of the text.
    pub at: Range<usize>,
    pub what: String,
    text: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text[..self.at.start].chars().count() + 1;
        let there = &self.text[self.at.clone()];
        match there {
            "" => write!(f, "at the end (column {column}): {}", self.what),
            _ => write!(f, "at '{there}' (column {column}): {}", self.what),
        }
    }
}

impl std::error::Error for PatternError {}

/// Reads a pattern.
pub fn parse(text: &str) -> Result<Pattern, PatternError> {
    let mut parser = Parser { text, place: 0 };
    let pattern = parser.in_turn(0)?;
    match parser.token() {
        at if at.is_empty() => Ok(pattern),
        at => Err(parser.error(at, "expected ';', '||' or '&' between patterns, or the end")),
    }
}

/// Reads one option, as in `pages=2M`, into these.
pub fn parse_setting(text: &str, options: &mut Options) -> Result<(), PatternError> {
    let mut parser = Parser { text, place: 0 };
    let name = parser.token();
    if takes::OWN.contains(&parser.at(&name)) {
        let what = "each kind of access has its own: write it behind the sizes of an access";
        return Err(parser.error(name, what));
    }
    parser.option(options)?;
    match parser.token() {
        at if at.is_empty() => Ok(()),
        at => Err(parser.error(at, "expected the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    place: usize,
}

impl Parser<'_> {
    fn error(&self, at: Range<usize>, what: impl Into<String>) -> PatternError {
        PatternError { at, what: what.into(), text: self.text.to_owned() }
    }

    /// The next word, number or sign, which is not taken yet; empty at the end.
    fn token(&self) -> Range<usize> {
        let rest = &self.text[self.place..];
        let begin = self.text.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let in_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '-' | '+');
        let word = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let length = match rest.chars().next() {
            _ if word > 0 => word,
            _ if rest.starts_with("||") => 2,
            Some(sign) => sign.len_utf8(),
            None => 0,
        };
        begin..begin + length
    }

    fn next(&mut self) -> Range<usize> {
        let at = self.token();
        self.place = at.end;
        at
    }

    fn at(&self, at: &Range<usize>) -> &str {
        &self.text[at.clone()]
    }

    fn take(&mut self, sign: &str) -> bool {
        let at = self.token();
        let there = self.at(&at) == sign;
        if there {
            self.place = at.end;
        }
        there
    }

    fn expect(&mut self, sign: &str, what: &str) -> Result<(), PatternError> {
        if self.take(sign) { Ok(()) } else { Err(self.error(self.token(), what)) }
    }

    fn in_turn(&mut self, depth: usize) -> Result<Pattern, PatternError> {
        let mut all = vec![self.beside(depth)?];
        while self.take(";") {
            all.push(self.beside(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Pattern::InTurn(all) })
    }

    fn beside(&mut self, depth: usize) -> Result<Pattern, PatternError> {
        let mut all = vec![self.repeated(depth)?];
        while self.take("||") {
            all.push(self.repeated(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Pattern::Beside(all) })
    }

    fn repeated(&mut self, depth: usize) -> Result<Pattern, PatternError> {
        let at = self.token();
        if depth > DEEPEST {
            return Err(self.error(at, "too many parentheses or repetitions inside each other"));
        }
        if self.at(&at).starts_with(|c: char| c.is_ascii_digit()) {
            self.place = at.end;
            let times = count(self.at(&at)).filter(|n| n.fract() == 0.0 && *n >= 1.0);
            let times = times.ok_or_else(|| self.error(at, "expected a count, as in '10 * seq(1M)'"))?;
            self.expect("*", "expected '*' behind a count")?;
            return Ok(Pattern::Times(times as u64, Box::new(self.repeated(depth + 1)?)));
        }
        if self.take("(") {
            let inner = self.in_turn(depth + 1)?;
            self.expect(")", "expected ')'")?;
            if self.at(&self.token()) == "&" {
                return Err(self.error(self.token(), "'&' stands between single accesses"));
            }
            return Ok(inner);
        }
        self.mixed()
    }

    fn mixed(&mut self) -> Result<Pattern, PatternError> {
        let mut all = vec![self.access()?];
        while self.take("&") {
            all.push(self.access()?);
        }
        Ok(if all.len() == 1 { Pattern::Access(all.remove(0)) } else { Pattern::Mixed(all) })
    }

    fn access(&mut self) -> Result<Access, PatternError> {
        let name = self.next();
        let Some((word, sizes)) = KINDS.iter().find(|(word, _)| *word == self.at(&name)) else {
            let what = if name.is_empty() { "expected an access: " } else { "no access of this name; " };
            let all: Vec<String> =
                KINDS.iter().map(|(word, sizes)| format!("{word}({})", sizes.join(", "))).collect();
            return Err(self.error(name, format!("{what}{}", all.join(", "))));
        };
        let usage = format!("expected {word}({})", sizes.join(", "));
        self.expect("(", &usage)?;
        let mut found = Vec::new();
        for (i, size) in sizes.iter().enumerate() {
            if i > 0 {
                self.expect(",", &usage)?;
            }
            found.push(if *size == "FANOUT" { self.fanout()? } else { self.size(&usage)? });
        }
        let mut options = Options::default();
        while self.take(",") {
            self.option(&mut options)?;
        }
        self.expect(")", "expected ',' and an option, or ')'")?;
        let (kind, area) = match (*word, &found[..]) {
            ("chase", &[area]) => (Kind::Chase, area),
            ("rand", &[area]) => (Kind::Rand, area),
            ("rmw", &[area]) => (Kind::Rmw, area),
            ("seq", &[area]) => (Kind::Seq, area),
            ("search", &[area]) => (Kind::Search, area),
            ("stride", &[step, area]) => (Kind::Stride { step }, area),
            ("tree", &[area, fanout, node]) => (Kind::Tree { fanout: fanout.0, node }, area),
            (_, &[size, area]) => (Kind::Window { size }, area),
            _ => return Err(self.error(name, usage)),
        };
        let access = Access { kind, area, options, text: self.text[name.start..self.place].to_owned() };
        if access.unit(1) > area.0 as f64 {
            return Err(self.error(name, format!("the area is smaller than the {}", takes::part(kind))));
        }
        if let Some(why) = access.takes_not() {
            return Err(self.error(name, why));
        }
        Ok(access)
    }

    fn size(&mut self, usage: &str) -> Result<Bytes, PatternError> {
        let at = self.next();
        match self.at(&at).parse::<Bytes>() {
            Ok(size) if size.0 > 0 => Ok(size),
            Ok(_) => Err(self.error(at, "a size of nothing")),
            Err(_) => Err(self.error(at, format!("{usage}, with sizes such as 32K, 1M or 1.5G"))),
        }
    }

    fn fanout(&mut self) -> Result<Bytes, PatternError> {
        let at = self.next();
        let fanout = count(self.at(&at)).filter(|n| n.fract() == 0.0 && *n >= 2.0);
        let fanout = fanout.ok_or_else(|| self.error(at, "expected a fan-out, a count of 2 or more"))?;
        Ok(Bytes(fanout as u64))
    }

    fn option(&mut self, options: &mut Options) -> Result<(), PatternError> {
        let name = self.next();
        let word = self.at(&name).to_owned();
        if !OPTIONS.contains(&word.as_str()) {
            return Err(self.error(
                name,
                "expected an option: n=COUNT, mlp=COUNT, lines=COUNT, zipf=SKEW, pages=KIND, remote=SHARE, \
                 op=NAME, work=TIME or instructions=COUNT",
            ));
        }
        self.expect("=", &format!("expected '=' behind '{word}'"))?;
        let at = self.next();
        let value = self.at(&at).to_owned();
        match word.as_str() {
            "n" => {
                let n = count(&value).filter(|n| *n >= 1.0);
                options.accesses = Some(n.ok_or_else(|| {
                    self.error(at, "expected a count: 1000, 10K (10 000), 1M (1 000 000), 1e9")
                })?);
            }
            "mlp" => {
                let n = count(&value).filter(|n| *n >= 1.0);
                options.mlp = Some(n.ok_or_else(|| self.error(at, "expected a count of 1 or more"))?);
            }
            "instructions" => {
                let n = count(&value).filter(|n| *n >= 1.0);
                options.instructions =
                    Some(n.ok_or_else(|| self.error(at, "expected a count of 1 or more"))?);
            }
            "lines" => {
                let n = count(&value).filter(|n| n.fract() == 0.0 && *n >= 1.0);
                options.lines = Some(n.ok_or_else(|| self.error(at, "expected a count of 1 or more"))?);
            }
            "zipf" => {
                let skew = count(&value);
                options.zipf = Some(skew.ok_or_else(|| self.error(at, "expected a skew: 0, 0.99, 1.2"))?);
            }
            "work" => {
                let time = nanos(&value);
                options.work =
                    Some(time.ok_or_else(|| self.error(at, "expected a time: 2.5ns, 800ps or 1us"))?);
            }
            "pages" => {
                let known = PAGES.iter().find(|kind| kind.eq_ignore_ascii_case(&value));
                let known = known.ok_or_else(|| self.error(at, "expected 4K, thp, 2M or 1G"))?;
                options.pages = Some((*known).to_owned());
            }
            "op" => {
                let known = OPERATIONS.into_iter().find(|operation| operation.word() == value);
                let all = OPERATIONS.map(StreamKind::word).join(", ");
                options.operation =
                    Some(known.ok_or_else(|| self.error(at, format!("expected one of {all}")))?);
            }
            _ => {
                let share = share(&value);
                options.remote = Some(share.ok_or_else(|| self.error(at, "expected a share: 0.5 or 50%"))?);
            }
        }
        Ok(())
    }
}

/// Counts are decimal: `1M` is a million.
fn count(text: &str) -> Option<f64> {
    let (number, factor) = match text.chars().last()?.to_ascii_lowercase() {
        'k' => (&text[..text.len() - 1], 1e3),
        'm' => (&text[..text.len() - 1], 1e6),
        'g' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let plain = number.starts_with(|c: char| c.is_ascii_digit());
    let value = number.parse::<f64>().ok().filter(|_| plain)? * factor;
    (value.is_finite() && value <= 1e18).then_some(value)
}

/// Times have their unit: `2.5ns`.
fn nanos(text: &str) -> Option<f64> {
    let units = [("ps", 1e-3), ("ns", 1.0), ("us", 1e3)];
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let plain = number.starts_with(|c: char| c.is_ascii_digit());
    let value = number.parse::<f64>().ok().filter(|_| plain)? * factor;
    (value.is_finite() && value <= 1e18).then_some(value)
}

fn share(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Access {
        match parse(text) {
            Ok(Pattern::Access(access)) => access,
            other => panic!("{other:?}"),
        }
    }

    fn refused(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn accesses_and_their_options() {
        let access = one("rand(1G, mlp=4, n=1M, pages=2m, remote=25%, work=1.5us, instructions=12, \
                          lines=3, zipf=0.99)");
        assert_eq!((access.kind, access.area), (Kind::Rand, Bytes::gib(1)));
        let options = Options {
            accesses: Some(1e6),
            mlp: Some(4.0),
            pages: Some("2M".to_owned()),
            remote: Some(0.25),
            operation: None,
            work: Some(1500.0),
            instructions: Some(12.0),
            lines: Some(3.0),
            zipf: Some(0.99),
        };
        assert_eq!(access.options, options);
        assert_eq!(one(" stride(256,1G) ").kind, Kind::Stride { step: Bytes(256) });
        assert_eq!(one("window(4K, 1G)").kind, Kind::Window { size: Bytes::kib(4) });
        for (text, ns) in [("2.5ns", 2.5), ("800ps", 0.8), ("0ns", 0.0), ("1e1us", 10_000.0)] {
            assert_eq!(one(&format!("seq(64M, work={text})")).options.work, Some(ns), "{text}");
        }
        assert_eq!(one("chase(64M)").accesses(64), f64::from(1 << 20));
        assert_eq!(one("chase(192M, lines=3)").accesses(64), f64::from(1 << 20));
        let tree = one("tree(64M, 16, 256)");
        assert_eq!(tree.kind, Kind::Tree { fanout: 16, node: Bytes(256) });
        assert_eq!((tree.accesses(64), tree.lines(64)), (f64::from(1 << 18), 4.0));
        assert_eq!(one("tree(64M, 128, 4K, lines=6)").lines(64), 6.0);
        assert_eq!((one("search(1M)").kind, one("rmw(1M)").kind), (Kind::Search, Kind::Rmw));
    }

    #[test]
    fn beside_binds_tighter_than_in_turn() {
        let Ok(Pattern::InTurn(parts)) = parse("seq(1M); 3 * (chase(1K) || rand(2K)); seq(1M)") else {
            panic!("in turn");
        };
        assert_eq!(parts.len(), 3);
        let Pattern::Times(3, inner) = &parts[1] else { panic!("{parts:?}") };
        assert!(matches!(&**inner, Pattern::Beside(two) if two.len() == 2));
    }

    #[test]
    fn interleaved_binds_tightest() {
        let Ok(Pattern::Beside(parts)) = parse("2 * rand(1M) & seq(1G) || chase(1K)") else {
            panic!("beside");
        };
        let Pattern::Times(2, inner) = &parts[0] else { panic!("{parts:?}") };
        assert!(matches!(&**inner, Pattern::Mixed(two) if two.len() == 2 && two[1].kind == Kind::Seq));
        assert!(refused("(seq(1M); rand(1M)) & seq(1M)").contains("'&' stands between single accesses"));
    }

    #[test]
    fn errors_show_the_place() {
        for (text, told) in [
            ("", "at the end (column 1): expected an access: chase(AREA)"),
            ("seq(1M); walk(1M)", "at 'walk' (column 10): no access of this name; chase(AREA)"),
            ("chase(64X)", "at '64X' (column 7): expected chase(AREA), with sizes"),
            ("chase(64M", "at the end (column 10): expected ','"),
            ("chase(64M) seq(1M)", "at 'seq' (column 12): expected ';'"),
            ("stride(2M, 1M)", "at 'stride' (column 1): the area is smaller than the step"),
            ("chase(1M, mlp=4)", "at 'chase' (column 1): the loads of a chase"),
            ("rand(1M, op=read)", "at 'rand' (column 1): op belongs to seq"),
            ("seq(1M, op=add)", "at 'add' (column 12): expected one of read, write, copy"),
            ("rand(1M, mlp=0)", "at '0' (column 14): expected a count"),
            ("rand(1M, remote=2)", "at '2' (column 17): expected a share"),
            ("seq(1M, work=2)", "at '2' (column 14): expected a time: 2.5ns"),
            ("seq(1M, work=-2ns)", "at '-2ns' (column 14): expected a time"),
            ("seq(1M, work=2ms)", "at '2ms' (column 14): expected a time"),
            ("seq(1M, work=ns)", "at 'ns' (column 14): expected a time"),
            ("rand(1M, instructions=0)", "at '0' (column 23): expected a count of 1"),
            ("chase(1M, instructions=4)", "at 'chase' (column 1): the loads of a chase"),
            ("seq(1M, instructions=4)", "at 'seq' (column 1): how many of these"),
            ("seq(1M, cost=2ns)", "at 'cost' (column 9): expected an option: n=COUNT"),
            ("2.5 * seq(1M)", "at '2.5' (column 1): expected a count"),
            ("seq(0)", "at '0' (column 5): a size of nothing"),
            ("tree(1M, 1, 64)", "at '1' (column 10): expected a fan-out"),
            ("tree(1M, 16, 2M)", "at 'tree' (column 1): the area is smaller than the node"),
            ("chase(1M, zipf=1)", "at 'chase' (column 1): zipf belongs to rand and rmw"),
            ("seq(1M, lines=2)", "at 'seq' (column 1): lines belongs to"),
            ("rand(1M, lines=1.5)", "at '1.5' (column 16): expected a count of 1"),
            ("rand(1M, zipf=-1)", "at '-1' (column 15): expected a skew"),
            ("seq(1M) & 2 * seq(1M)", "at '2' (column 11): no access of this name"),
            ("säq(1M)", "at 'säq' (column 1)"),
        ] {
            assert!(refused(text).starts_with(told), "{text}: {}", refused(text));
        }
        for deep in [format!("{}seq(1M){}", "(".repeat(40), ")".repeat(40)), "1 * ".repeat(100_000)] {
            assert!(refused(&deep).contains("too many parentheses"));
        }
        assert!(parse_setting("pages=3M", &mut Options::default()).is_err());
        for text in ["work=2ns", "instructions=4", "lines=2", "zipf=1"] {
            let error = parse_setting(text, &mut Options::default()).expect_err(text).to_string();
            assert!(error.contains("each kind of access has its own"), "{error}");
        }
    }

    #[test]
    fn whatever_is_written_is_read_or_refused() {
        let words: Vec<&str> =
            "seq rand chase window stride tree search rmw ( ) ; || | & * , = 1M 64 2.5 n mlp pages remote \
                                lines zipf op work instructions 3ns copy 2M 50% ä -1 1e300"
                .split_whitespace()
                .chain([" ", ""])
                .collect();
        let mut random = units::Rng::new(5);
        for _ in 0..20_000 {
            let length = random.below(14);
            let text: String =
                (0..length).map(|_| words[random.below(words.len() as u64) as usize]).collect();
            if let Err(error) = parse(&text) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
