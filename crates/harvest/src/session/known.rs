//! What is known of the programs of a harvest before they start: what the user gave, and what was
//! kept of earlier runs.

use super::participants::Participants;
use crate::decide::Known;
use crate::find::program::Program;
use records::Document;
use records::plan::Role;
use records::profile::Profile;
use records::run::Run;
use store::kept_records;

/// Of a shorter run a load that is seldom seen may be one that stalls.
const SITES_FROM_SECONDS: f64 = 1.0;

/// What is known, beside the profiles that the user gave. To these, kept ones of the other programs
/// are added, for sites go by them, too.
pub(super) fn of(participants: &Participants, profiles: &mut Vec<Profile>) -> Known {
    let mut known = Known {
        profile: profiles.iter().find(|profile| is_of(profile, &participants.primary)).cloned(),
        earlier: participants.key().and_then(|key| Some(kept_records::find::<Run>(&key)?.body)),
    };
    for (program, role) in participants.programs() {
        if profiles.iter().any(|profile| is_of(profile, program)) {
            continue;
        }
        let kept = program.key().and_then(|key| Some(kept_records::find::<Profile>(&key)?.body));
        if role == Role::Primary {
            known.profile.clone_from(&kept);
        }
        let ran = |profile: &Profile| profile.summary.cpu_time.value();
        profiles.extend(kept.filter(|it| ran(it).is_some_and(|seconds| seconds >= SITES_FROM_SECONDS)));
    }
    known
}

/// Whether it was taken of this program with these arguments.
fn is_of(profile: &Profile, program: &Program) -> bool {
    let command = program.command.iter().map(|word| word.to_string_lossy());
    profile.program.command.iter().map(String::as_str).eq(command)
}

/// Keeps the record of a harvest for those who start it again; without what they do not ask for.
pub(super) fn keep(participants: &Participants, document: &Document<Run>) {
    if let Some(key) = participants.key() {
        let mut document = document.clone();
        document.body.sites.clear();
        kept_records::keep(&key, &document);
    }
}
