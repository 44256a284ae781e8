//! The CPU profiles that gperftools writes: words of eight bytes, and the process's mappings as
//! text behind them. <https://gperftools.github.io/gperftools/cpuprofile-fileformat.html>
//!
//! ```text
//! 0 3 0 PERIOD 0            header: the period in microseconds
//! COUNT DEPTH PC…           a stack: the sampled instruction first, then where each caller goes on
//! 0 1 0                     the end of the stacks
//! 400000-401000 r-xp …      /proc/PID/maps
//! ```

use super::StoredError;
use super::decoded::{Decoded, Location, Module, is_of_kernel};
use super::sample_types::{Chosen, ValueType};
use super::tree::{Budget, Map, Tree};
use super::wire::{cut_off, damaged, unreadable};
use std::io::{BufRead, Read};

/// What such a file begins with.
pub(super) const BEGIN: [u8; 24] = {
    let mut begin = [0; 24];
    begin[8] = 3;
    begin
};

/// Frames of a stack: deeper ones are no stack.
const DEEPEST: u64 = 1 << 16;
/// Lines of mappings that are read, and their length.
const MOST_LINES: usize = 1 << 16;
const LONGEST_LINE: u64 = 8 << 10;

pub(super) fn decode(from: &mut (dyn BufRead + '_), budget: &mut Budget) -> Result<Decoded, StoredError> {
    for expected in [0, 3, 0] {
        if word(from)? != expected {
            return Err(damaged("its header is not that of a CPU profile of gperftools"));
        }
    }
    let period_us = word(from)?;
    if word(from)? != 0 {
        return Err(damaged("its header is not that of a CPU profile of gperftools"));
    }
    let (mut tree, mut stack) = (Tree::default(), Vec::new());
    let mut addresses = Addresses::default();
    loop {
        let (count, depth) = (word(from)?, word(from)?);
        if depth > DEEPEST {
            return Err(damaged(&format!("a stack in it says that it has {depth} frames")));
        }
        stack.clear();
        let mut pcs = Vec::new();
        for _ in 0..depth {
            pcs.push(word(from)?);
        }
        if (count, &pcs[..]) == (0, &[0]) {
            break;
        }
        // Some write the sampled instruction twice.
        if pcs.len() > 1 && pcs[0] == pcs[1] {
            pcs.remove(1);
        }
        for (index, &pc) in pcs.iter().enumerate() {
            let inside = if index == 0 { pc } else { pc.saturating_sub(1) };
            stack.push(addresses.number(inside, budget)?);
        }
        tree.add(None, &stack, &[count], budget)?;
    }
    let modules = mappings(from)?;
    let by_address = |&address: &u64| {
        let module = modules.iter().position(|module| (module.start..module.limit).contains(&address));
        Location {
            module: module.map(|at| at as u32),
            address,
            names: (0, 0),
            in_kernel: is_of_kernel(address),
        }
    };
    let period_ns = period_us.saturating_mul(1000);
    let samples = ValueType { kind: "samples".to_owned(), unit: "count".to_owned() };
    Ok(Decoded {
        locations: addresses.all.iter().map(by_address).collect(),
        program: modules.iter().find(|module| module.is_file()).map(|module| module.path.clone()),
        modules,
        tree,
        chosen: Chosen {
            count: Some(0),
            time: None,
            period_ns: Some(period_ns).filter(|ns| *ns > 0),
            words: vec![samples.word()],
        },
        ..Decoded::default()
    })
}

/// Addresses, numbered.
#[derive(Default)]
struct Addresses {
    numbers: Map<u64, u32>,
    all: Vec<u64>,
}

impl Addresses {
    fn number(&mut self, address: u64, budget: &mut Budget) -> Result<u32, StoredError> {
        if let Some(&known) = self.numbers.get(&address) {
            return Ok(known);
        }
        budget.take(64)?;
        let number = self.all.len() as u32;
        self.all.push(address);
        self.numbers.insert(address, number);
        Ok(number)
    }
}

fn word(from: &mut (dyn BufRead + '_)) -> Result<u64, StoredError> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).map_err(|e| unreadable(&e))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The executable mappings.
fn mappings(from: &mut (dyn BufRead + '_)) -> Result<Vec<Module>, StoredError> {
    let mut modules = Vec::new();
    let mut line = Vec::new();
    for _ in 0..MOST_LINES {
        line.clear();
        let read =
            (&mut *from).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(|e| unreadable(&e))?;
        if read == 0 {
            break;
        }
        modules.extend(mapping(&String::from_utf8_lossy(&line)));
    }
    if modules.is_empty() { Err(cut_off()) } else { Ok(modules) }
}

/// `START-END PERMISSIONS OFFSET DEVICE INODE PATH`, if that is executable.
fn mapping(line: &str) -> Option<Module> {
    let mut words = line.split_ascii_whitespace();
    let (start, limit) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let offset = number(words.next()?)?;
    // Paths may have spaces.
    let (_device, inode) = (words.next()?, words.next()?);
    let behind = line.find(inode)? + inode.len();
    let path = words.next().and_then(|word| line[behind..].find(word).map(|at| &line[behind + at..]));
    let path = path.unwrap_or_default().trim_end().trim_end_matches(" (deleted)").to_owned();
    let module = Module { path, build_id: None, start: number(start)?, limit: number(limit)?, offset };
    permissions.contains('x').then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(words: &[u64], maps: &str) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(maps.as_bytes());
        bytes
    }

    const MAPS: &str = "\
400000-401000 r--p 00000000 08:01 7                          /bin/a b
401000-402000 r-xp 00001000 08:01 7                          /bin/a b
7f0000000000-7f0000001000 r-xp 00002000 08:01 9 /lib/libc.so.6 (deleted)
7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]
";

    #[test]
    fn stacks_and_mappings_are_read() {
        let words = [
            0,
            3,
            0,
            10000,
            0,
            5,
            2,
            0x40_1010,
            0x7f00_0000_0010,
            1,
            3,
            0x40_1010,
            0x40_1010,
            0x40_1020,
            0,
            1,
            0,
        ];
        let bytes = file(&words, MAPS);
        let decoded = decode(&mut &bytes[..], &mut Budget::of(1 << 20)).unwrap();
        assert_eq!(
            (decoded.chosen.period_ns, decoded.program.as_deref()),
            (Some(10_000_000), Some("/bin/a b"))
        );
        let paths: Vec<&str> = decoded.modules.iter().map(|module| module.path.as_str()).collect();
        assert_eq!(paths, ["/bin/a b", "/lib/libc.so.6", "[vdso]"]);
        let all: u64 = decoded.tree.leaves().iter().map(|(_, values)| values[0]).sum();
        let addresses: Vec<u64> = decoded.locations.iter().map(|location| location.address).collect();
        assert_eq!((all, addresses), (6, vec![0x40_1010, 0x7f00_0000_000f, 0x40_101f]));
        assert_eq!(decoded.locations[1].module, Some(1));
        for length in 0..bytes.len() - MAPS.len() + 10 {
            assert!(decode(&mut &bytes[..length], &mut Budget::of(1 << 20)).is_err(), "{length}");
        }
    }

    #[test]
    fn sizes_are_not_believed() {
        let bytes = file(&[0, 3, 0, 10000, 0, 5, u64::MAX, 0x40_1010], MAPS);
        let why = decode(&mut &bytes[..], &mut Budget::of(1 << 20)).unwrap_err().to_string();
        assert!(why.contains("18446744073709551615 frames"), "{why}");
        assert!(decode(&mut &file(&[0, 3, 0, 10000, 1], MAPS)[..], &mut Budget::of(1 << 20)).is_err());
    }
}
