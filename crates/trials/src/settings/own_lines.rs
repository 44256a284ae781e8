//! What a site allocates, on cache lines of its own: aligned, and with space up to the next line.
//!
//! That parts what threads use only where the parts are allocations, or lie in one allocation at
//! multiples of a line. Elsewhere the program itself must pad, and nothing is tried.

use crate::settings::form::Form;
use heap::changes::layout::{Call, SITES, Site};
use image::Image;
use records::profile::{CodeAddress, FindingKind, LinePart, Profile, SharedLine, Sharing};
use records::recipe::Setting;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use units::Svma;

/// A site, as a profile names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    pub object: String,
    pub paths: Vec<Vec<CodeAddress>>,
    /// Why alignment cannot help, if it cannot.
    pub in_vain: Option<String>,
}

const LINE: u64 = 64;
/// A line, and the two that some processors fetch together.
const ALIGNMENTS: [u64; 2] = [64, 128];
/// Less than this part of the waiting that would end is not worth a trial.
const LEAST_PARTED: f64 = 0.5;

/// The sites whose allocations share lines falsely.
pub(crate) fn proposed(profile: &Profile) -> Vec<Aligned> {
    let is_false = |finding: &&records::profile::Finding| finding.kind == FindingKind::FalseSharing;
    let named = profile.findings.iter().filter(is_false).filter_map(|finding| finding.object.as_ref());
    let named: BTreeSet<&String> = named.collect();
    let of_object = |object: &&String| {
        let known = profile.objects.iter().find(|known| known.name == **object)?;
        let site = known.site.as_ref().filter(|site| !site.paths.is_empty())?;
        Some(Aligned {
            object: (*object).clone(),
            paths: site.paths.clone(),
            in_vain: in_vain(&profile.lines, object),
        })
    };
    named.iter().filter_map(of_object).collect()
}

/// Why lines of their own for allocations would not part the threads' data, if they would not.
fn in_vain(lines: &[SharedLine], object: &str) -> Option<String> {
    let is_it =
        |part: &&LinePart| part.sharing == Some(Sharing::False) && part.object.as_deref() == Some(object);
    // By process, allocation, and line in it if that begins with a line: who uses it, and how much.
    let mut after: BTreeMap<(u32, u64, u64), (BTreeSet<u32>, f64)> = BTreeMap::new();
    let (mut whole, mut allocations) = (0.0, BTreeSet::new());
    for line in lines {
        for part in line.parts.iter().filter(is_it) {
            let begin = part.allocation?;
            let at = line.address + u64::from(part.offset);
            let (threads, weight) =
                after.entry((line.process, begin, at.saturating_sub(begin) / LINE)).or_default();
            threads.insert(part.thread);
            *weight += part.stall.value().unwrap_or(0.0);
            whole += part.stall.value().unwrap_or(0.0);
            allocations.insert((line.process, begin));
        }
    }
    let parted: f64 = after.values().filter(|(threads, _)| threads.len() < 2).map(|(_, weight)| weight).sum();
    (parted < LEAST_PARTED * whole || whole == 0.0).then(|| match allocations.len() {
        0 | 1 => "what the threads use lies in one allocation, nearer than a line: only the program itself can pad it \
                  (alignas(64) for the elements)"
            .to_owned(),
        several => format!(
            "in each of {several} allocations several threads use one line: only the program itself can pad it"
        ),
    })
}

/// The forms of it.
pub(crate) fn forms(aligned: &Aligned) -> Result<Vec<Form>, String> {
    if let Some(why) = &aligned.in_vain {
        return Err(why.clone());
    }
    if sites(&aligned.paths).is_empty() {
        return Err("the code that allocates it is in no file that can be read".to_owned());
    }
    let form = |alignment: u64| {
        let (object, paths) = (aligned.object.clone(), aligned.paths.clone());
        Form::new(&format!("{alignment} bytes"), vec![Setting::OwnLines { object, alignment, paths }])
    };
    Ok(ALIGNMENTS.into_iter().map(form).collect())
}

/// The paths that can be found again.
pub(crate) fn sites(paths: &[Vec<CodeAddress>]) -> Vec<Site> {
    paths.iter().filter_map(|path| site(path)).take(SITES).collect()
}

/// A path of calls as the library finds it again.
fn site(path: &[CodeAddress]) -> Option<Site> {
    Some(Site { inner: call(path.first()?)?, outer: call(path.last()?)? })
}

fn call(at: &CodeAddress) -> Option<Call> {
    let data = std::fs::read(&at.module).ok()?;
    let offset = Image::parse(&data).ok()?.file_offset(Svma(at.address))?.0;
    let name = Path::new(&at.module).file_name()?;
    // The instruction behind the call is where it returns to.
    Some(Call::new(name.as_encoded_bytes(), offset + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Quantity, Unit};

    fn line(address: u64, parts: &[(u32, u32, Option<u64>)]) -> SharedLine {
        let stall = || Quantity::measured(Estimate::exact(0.2), Unit::Ratio);
        let part = |&(offset, thread, allocation): &(u32, u32, Option<u64>)| LinePart {
            offset,
            bytes: 8,
            process: None,
            thread,
            sharing: Some(Sharing::False),
            reads: 0,
            writes: 10,
            stall: stall(),
            latency_share: Quantity::unresolved("not sampled by hardware"),
            object: Some("pool".to_owned()),
            allocation,
            function: None,
            file: None,
            line: None,
        };
        SharedLine {
            sharing: Sharing::False,
            process: 1,
            processes: Vec::new(),
            address,
            object: Some("pool".to_owned()),
            stall: stall(),
            latency_share: Quantity::unresolved("not sampled by hardware"),
            parts: parts.iter().map(part).collect(),
        }
    }

    #[test]
    fn allocations_side_by_side_are_parted() {
        let two = line(0x4000, &[(0, 1, Some(0x4000)), (32, 2, Some(0x4020))]);
        assert_eq!(in_vain(&[two], "pool"), None);
    }

    #[test]
    fn elements_of_an_array_are_parted_if_they_are_as_large_as_a_line() {
        // 64 bytes each, from 16 bytes behind a line's start.
        let array = line(0x4040, &[(8, 1, Some(0x4010)), (24, 2, Some(0x4010))]);
        assert_eq!(in_vain(&[array], "pool"), None);
        let near = line(0x4040, &[(8, 1, Some(0x4000)), (24, 2, Some(0x4000))]);
        assert!(in_vain(&[near], "pool").unwrap().contains("one allocation"));
        let unknown = line(0x4040, &[(8, 1, None), (24, 2, Some(0x4000))]);
        assert_eq!(in_vain(&[unknown], "pool"), None, "the trial tells");
    }

    #[test]
    fn several_allocations_may_be_shared_within() {
        let lines = [0x4000_u64, 0x5000].map(|at| line(at, &[(0, 1, Some(at)), (8, 2, Some(at))]));
        assert!(in_vain(&lines, "pool").unwrap().contains("each of 2 allocations"));
    }
}
