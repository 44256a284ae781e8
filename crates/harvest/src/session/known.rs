//! What is known of the programs of a harvest before they start: what the user gave, and what was
//! kept of earlier runs.

use super::participants::Participants;
use crate::decide::Known;
use crate::find::program::Program;
use records::plan::Role;
use records::profile::Profile;
use store::kept_records;

/// Of a shorter run a load that is seldom seen may be one that stalls.
const SITES_FROM_SECONDS: f64 = 1.0;

/// What is known, beside the profiles that the user gave. To these, kept ones of the other programs
/// are added, for sites go by them, too.
pub(super) fn of(participants: &Participants, profiles: &mut Vec<Profile>) -> Known {
    let mut profile = profiles.iter().find(|profile| is_of(profile, &participants.primary)).cloned();
    // Copies of one program have one key, for which its file is read once.
    let mut seen: Vec<&Program> = Vec::new();
    for (program, role) in participants.programs() {
        let is_it = |of: &&Program| (&of.file, &of.arguments) == (&program.file, &program.arguments);
        if seen.iter().any(is_it) {
            continue;
        }
        seen.push(program);
        if profiles.iter().any(|profile| is_of(profile, program)) {
            continue;
        }
        let kept = program.key().and_then(|key| Some(kept_records::find::<Profile>(&key)?.body));
        if role == Role::Primary {
            profile.clone_from(&kept);
        }
        let ran = |profile: &Profile| profile.summary.cpu_time.value();
        profiles.extend(kept.filter(|it| ran(it).is_some_and(|seconds| seconds >= SITES_FROM_SECONDS)));
    }
    Known { profile }
}

/// Whether it was taken of this program with these arguments.
fn is_of(profile: &Profile, program: &Program) -> bool {
    let command = program.command.iter().map(|word| word.to_string_lossy());
    profile.program.command.iter().map(String::as_str).eq(command)
}
