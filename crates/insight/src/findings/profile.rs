//! The profile of a run: its files read, their code and data looked up, and the figures of its
//! samples put together as the record.

use crate::code::calls::Calls;
use crate::code::source::{ModuleFile, Source};
use crate::data::objects::{Objects, Variables};
use crate::data::site_names::SiteNames;
use crate::findings::record::record;
use crate::findings::run::Run;
use crate::findings::system::PlaceTold;
use crate::findings::{clock, hardware, system};
use crate::samples::address_space::Place;
use crate::samples::stacks::Frame;
use crate::samples::tally::Tally;
use image::Image;
use records::profile::Profile;
use std::collections::HashMap;
use std::path::Path;
use units::FileOffset;

/// The profile of a run whose samples are accesses, be there any or not.
pub fn accesses_profile(run: Run, tally: &Tally, files: &[ModuleFile]) -> Profile {
    made_of(run, tally, files, true).0
}

/// The profile of a run: of accesses, if there are any.
pub fn profile(run: Run, tally: &Tally, files: &[ModuleFile]) -> Profile {
    made_of(run, tally, files, tally.accesses.any()).0
}

/// The same of all processes of a machine, with what stands at each place that was sampled.
pub fn profile_and_places(
    run: Run,
    tally: &Tally,
    files: &[ModuleFile],
) -> (Profile, HashMap<Place, PlaceTold>) {
    made_of(run, tally, files, false)
}

fn made_of(
    run: Run,
    tally: &Tally,
    files: &[ModuleFile],
    of_accesses: bool,
) -> (Profile, HashMap<Place, PlaceTold>) {
    let images: Vec<Option<Image<'_>>> = files.iter().map(|file| Image::parse(&file.data).ok()).collect();
    let variables = files.iter().zip(&images).filter_map(|(file, image)| {
        let debug = file.debug.as_deref().and_then(|debug| Image::parse(debug).ok());
        let name =
            Path::new(&file.path).file_name().map_or(file.path.clone().into(), |name| name.to_string_lossy());
        Some((file.what, Variables::of(image.as_ref()?, debug.as_ref(), &name)))
    });
    let variables = variables.collect();
    let sources = sources(tally, files, &images);
    let calls = Calls::of(tally, &sources, &run.made_code);
    let objects = Objects::of(tally, variables, SiteNames::of(&tally.heaps.sites, &sources));
    let figures = if of_accesses {
        hardware::figures(&run, tally, &sources, &objects, &calls)
    } else {
        clock::figures(&run, tally, files, &sources, &objects, &calls)
    };
    let calls = calls.into_tree(&figures.computed);
    let computed = figures.computed.clone();
    let mut profile = record(run, figures, calls);
    let Some(population) = &tally.population else { return (profile, HashMap::new()) };
    system::add(&mut profile, population, &sources, &computed);
    (profile, system::places(population, &sources, &computed))
}

/// All files that something was sampled in, or that called it.
fn sources<'d>(
    tally: &Tally,
    files: &'d [ModuleFile],
    images: &[Option<Image<'d>>],
) -> HashMap<u32, Source<'d>> {
    let mut sampled: HashMap<u32, Vec<FileOffset>> = HashMap::new();
    let leaves = tally.stacks.leaves.keys().map(|leaf| leaf.place);
    let accessed = tally.accesses.places.keys().copied();
    for place in tally.places.keys().copied().chain(leaves).chain(accessed) {
        sampled.entry(place.what.0).or_default().push(place.offset);
    }
    // Of callers only the names are wanted: nothing is decoded for them.
    for (_, node) in tally.stacks.nodes() {
        if let Frame::Call(place) = node.frame {
            sampled.entry(place.what.0).or_default();
        }
    }
    for place in tally.heaps.sites.all().flat_map(|(_, site)| &site.calls) {
        sampled.entry(place.what.0).or_default();
    }
    let source = |(file, image): (&'d ModuleFile, &Option<Image<'d>>)| {
        Some((file.what, Source::of(file, image.as_ref()?, sampled.get(&file.what)?, tally.is_exact)?))
    };
    files.iter().zip(images).filter_map(source).collect()
}
