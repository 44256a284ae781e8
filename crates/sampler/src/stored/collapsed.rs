//! Folded stacks, a line each: `outermost;…;innermost COUNT`, as py-spy, async-profiler, rbspy,
//! stackcollapse-perf.pl and inferno write them. They name functions; only where a frame is a path
//! with an address, as `/usr/lib/libz.so.1+0x9a10`, it tells the instruction.

use super::StoredError;
use super::decoded::{Decoded, Interned, Location, Module, Name};
use super::sample_types::Chosen;
use super::tree::{Budget, Tree};
use super::wire::{Stream, damaged};
use std::collections::HashMap;
use std::io::BufRead;

/// Longer lines are no stack.
const LONGEST_LINE: u64 = 4 << 20;
/// What async-profiler and stackcollapse-perf.pl put behind frames: kernel, compiled, interpreted…
const MARKS: [&str; 6] = ["_[k]", "_[j]", "_[i]", "_[p]", "_[0]", "_[1]"];

pub(super) fn decode<R: BufRead>(
    stream: &mut Stream<R>,
    budget: &mut Budget,
) -> Result<Decoded, StoredError> {
    let (mut line, mut stack) = (Vec::new(), Vec::new());
    let mut reading = Reading::default();
    // The number of the empty text, which stands for a file that is not named.
    reading.frames.number(b"", budget)?;
    reading.locations.push(Location::default());
    reading.names.push(Name::default());
    let (mut understood, mut not_understood) = (0_u64, 0_u64);
    while stream.line(&mut line, LONGEST_LINE)? {
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let Some((frames, count)) = split(text) else {
            not_understood += 1;
            continue;
        };
        understood += 1;
        stack.clear();
        for frame in frames.split(|&byte| byte == b';').rev().filter(|frame| !frame.is_empty()) {
            stack.push(reading.frame(frame, budget)?);
        }
        reading.tree.add(None, &stack, &[count], budget)?;
    }
    if not_understood > understood {
        return Err(damaged("it is no list of folded stacks: most of its lines do not end in a count"));
    }
    Ok(Decoded {
        modules: reading.modules,
        locations: reading.locations,
        names: reading.names,
        texts: reading.frames.texts,
        tree: reading.tree,
        chosen: Chosen { count: Some(0), words: vec!["folded stacks".to_owned()], ..Chosen::default() },
        not_understood,
        is_of_unknown_kind: true,
        ..Decoded::default()
    })
}

/// The frames, and how often they were sampled.
fn split(line: &[u8]) -> Option<(&[u8], u64)> {
    let at = line.iter().rposition(u8::is_ascii_whitespace)?;
    let count = std::str::from_utf8(&line[at + 1..]).ok()?.parse().ok()?;
    let frames = line[..at].trim_ascii_end();
    (!frames.is_empty() && i64::try_from(count).is_ok()).then_some((frames, count))
}

/// Locations have the numbers of their texts.
#[derive(Default)]
struct Reading {
    frames: Interned,
    modules: Vec<Module>,
    module_numbers: HashMap<String, u32>,
    locations: Vec<Location>,
    names: Vec<Name>,
    tree: Tree,
}

impl Reading {
    fn frame(&mut self, frame: &[u8], budget: &mut Budget) -> Result<u32, StoredError> {
        let frame = frame.trim_ascii();
        let in_kernel = frame.ends_with(b"_[k]");
        let marked = MARKS.iter().find_map(|mark| frame.strip_suffix(mark.as_bytes()));
        // Functions of the kernel and others may have one name: the mark keeps them apart.
        let text = if in_kernel { frame } else { marked.unwrap_or(frame) };
        let number = self.frames.number(text, budget)?;
        if (number as usize) < self.locations.len() {
            return Ok(number);
        }
        budget.take(size_of::<Location>() + size_of::<Name>())?;
        self.names.push(Name { function: number, file: 0 });
        let mut location = Location { names: (number, number + 1), in_kernel, ..Location::default() };
        if let Some((path, address)) = placed(text) {
            let module = Some(self.module(path, budget)?);
            // A path is no name of a function.
            location = Location { module, address, names: (0, 0), in_kernel };
        }
        self.locations.push(location);
        Ok(number)
    }

    fn module(&mut self, path: &str, budget: &mut Budget) -> Result<u32, StoredError> {
        if let Some(&known) = self.module_numbers.get(path) {
            return Ok(known);
        }
        budget.take(size_of::<Module>() + 2 * path.len() + 32)?;
        let number = self.modules.len() as u32;
        self.modules.push(Module { path: path.to_owned(), ..Module::default() });
        self.module_numbers.insert(path.to_owned(), number);
        Ok(number)
    }
}

/// The file and the stated address of a frame that is no name.
fn placed(frame: &[u8]) -> Option<(&str, u64)> {
    let frame = std::str::from_utf8(frame).ok()?;
    let frame = frame.strip_prefix('[').and_then(|frame| frame.strip_suffix(']')).unwrap_or(frame);
    let (path, address) = frame.rsplit_once("+0x")?;
    path.starts_with('/').then_some(())?;
    Some((path, u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Result<Decoded, StoredError> {
        decode(&mut Stream::of(text.as_bytes(), 1 << 20), &mut Budget::of(1 << 20))
    }

    #[test]
    fn lines_are_stacks_with_counts() {
        let text = "# a comment\nmain (a.py:3);work (a.py:9) 12\nmain (a.py:3);work (a.py:9);read_[k] 3\nbroken\n\n\
                    main (a.py:3) 5\nC.run_[j];/usr/lib/libz.so.1+0x9a10 7\n";
        let decoded = decoded(text).unwrap();
        let name = |location: u32| decoded.texts.get(location.into()).into_owned();
        let mut shown: Vec<(String, Vec<String>, u64)> = Vec::new();
        for (leaf, values) in decoded.tree.leaves() {
            shown.push((
                name(leaf.location),
                decoded.tree.outwards(leaf.caller).map(name).collect(),
                values[0],
            ));
        }
        shown.sort();
        let main = || "main (a.py:3)".to_owned();
        let work = || "work (a.py:9)".to_owned();
        assert_eq!(
            shown,
            [
                ("/usr/lib/libz.so.1+0x9a10".to_owned(), vec!["C.run".to_owned()], 7),
                (main(), vec![], 5),
                ("read_[k]".to_owned(), vec![work(), main()], 3),
                (work(), vec![main()], 12),
            ]
        );
        assert_eq!(decoded.not_understood, 1);
        let in_file = decoded.locations.iter().find(|location| location.module.is_some()).unwrap();
        assert_eq!((in_file.address, decoded.modules[0].path.as_str()), (0x9a10, "/usr/lib/libz.so.1"));
        assert_eq!(decoded.locations.iter().filter(|location| location.in_kernel).count(), 1);
    }

    #[test]
    fn other_texts_are_refused() {
        assert!(decoded("hello world\nthis is no profile\n").is_err());
        assert!(decoded("main;work 99999999999999999999\n").is_err());
        assert_eq!(decoded("").unwrap().tree.leaves().len(), 0);
    }
}
