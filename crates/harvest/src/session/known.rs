//! What is known of the programs of a harvest before they start: what the user gave, and what was
//! kept of earlier runs.

use super::participants::Participants;
use crate::decide::Known;
use crate::find::program::Program;
use records::Document;
use records::plan::Role;
use records::profile::Profile;
use records::run::Run;
use store::cache::checksum;
use store::kept_records;

/// Of a shorter run a load that is seldom seen may be one that stalls.
const SITES_FROM_SECONDS: f64 = 1.0;

/// What is known, beside the profiles that the user gave, and by which key the record of this
/// harvest is kept. To the profiles, kept ones of the other programs are added, for sites go by
/// them, too.
pub(super) fn of(participants: &Participants, profiles: &mut Vec<Profile>) -> (Known, Option<String>) {
    let mut profile = profiles.iter().find(|profile| is_of(profile, &participants.primary)).cloned();
    // Copies of one program have one key, for which its file is read once.
    let mut keys: Vec<(&Program, Option<String>)> = Vec::new();
    let mut all = Vec::new();
    for (program, role) in participants.programs() {
        let is_it =
            |(of, _): &&(&Program, _)| (&of.file, &of.arguments) == (&program.file, &program.arguments);
        if let Some((_, key)) = keys.iter().find(is_it) {
            all.push(key.clone());
            continue;
        }
        let key = program.key();
        all.push(key.clone());
        keys.push((program, key.clone()));
        if profiles.iter().any(|profile| is_of(profile, program)) {
            continue;
        }
        let kept = key.and_then(|key| Some(kept_records::find::<Profile>(&key)?.body));
        if role == Role::Primary {
            profile.clone_from(&kept);
        }
        let ran = |profile: &Profile| profile.summary.cpu_time.value();
        profiles.extend(kept.filter(|it| ran(it).is_some_and(|seconds| seconds >= SITES_FROM_SECONDS)));
    }
    let key = all.into_iter().collect::<Option<Vec<_>>>().map(|all| checksum(all.join(" ").as_bytes()));
    let earlier = key.as_ref().and_then(|key| Some(kept_records::find::<Run>(key)?.body));
    (Known { profile, earlier }, key)
}

/// Whether it was taken of this program with these arguments.
fn is_of(profile: &Profile, program: &Program) -> bool {
    let command = program.command.iter().map(|word| word.to_string_lossy());
    profile.program.command.iter().map(String::as_str).eq(command)
}

/// Keeps the record of a harvest for those who start it again; without what they do not ask for.
pub(super) fn keep(key: &str, document: &Document<Run>) {
    let mut document = document.clone();
    document.body.sites.clear();
    kept_records::keep(key, &document);
}
