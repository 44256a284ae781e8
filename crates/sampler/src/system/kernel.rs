//! Where the kernel itself spent its time: its functions, by the symbols that it tells root.

use insight::measured_share;
use records::profile::KernelFunction;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};

/// No more functions are listed than this.
const MOST_LISTED: usize = 100;

/// Samples in the kernel, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct InKernel {
    by_address: HashMap<u64, u64>,
}

impl InKernel {
    pub(super) fn count(&mut self, address: u64) {
        *self.by_address.entry(address).or_default() += 1;
    }

    /// By function, most samples first; `all` are all samples of the run.
    pub(super) fn functions(&self, all: u64) -> Vec<KernelFunction> {
        let symbols = std::fs::File::open("/proc/kallsyms").map(|file| symbols(BufReader::new(file)));
        self.by(&symbols.unwrap_or_default(), all)
    }

    fn by(&self, symbols: &[(u64, String)], all: u64) -> Vec<KernelFunction> {
        let mut functions: BTreeMap<Option<&str>, u64> = BTreeMap::new();
        for (&address, count) in &self.by_address {
            let behind = symbols.partition_point(|(start, _)| *start <= address);
            let name = behind.checked_sub(1).map(|at| symbols[at].1.as_str());
            *functions.entry(name).or_default() += count;
        }
        let mut listed: Vec<KernelFunction> = functions
            .into_iter()
            .map(|(name, samples)| KernelFunction {
                function: name.map(str::to_owned),
                time: measured_share(samples, all),
                samples,
            })
            .collect();
        listed.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.function.cmp(&b.function)));
        listed.truncate(MOST_LISTED);
        listed
    }
}

/// Lines of `address kind name [module]`; without rights all addresses are zero.
fn symbols(lines: impl BufRead) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for line in lines.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        if address != 0 && matches!(kind, "t" | "T" | "w" | "W") {
            found.push((address, name.to_owned()));
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_the_function_that_begins_before() {
        let text = "ffff0010 T one\nffff0100 t two\t[ext4]\nffff0100 d data\n0 T hidden\nbad line\n";
        let symbols = symbols(text.as_bytes());
        let mut kernel = InKernel::default();
        for address in [0xffff_0010, 0xffff_00ff, 0xffff_0100, 0x10] {
            kernel.count(address);
        }
        let functions = kernel.by(&symbols, 8);
        let told: Vec<_> = functions.iter().map(|it| (it.function.as_deref(), it.samples)).collect();
        assert_eq!(told, [(Some("one"), 2), (None, 1), (Some("two"), 1)]);
        assert_eq!(kernel.by(&[], 8)[0].samples, 4, "without rights there are no names");
    }
}
