//! What is known of the programs of a harvest before they start: what the user gave, and what was
//! kept of earlier runs.

use super::participants::Participants;
use crate::decide::Known;
use crate::find::program::Program;
use records::Document;
use records::profile::Profile;
use records::run::Run;
use store::kept_records;

/// By the profiles that the user gave, if one of them is the primary's; else by a kept one.
pub(super) fn of(participants: &Participants, given: Vec<Profile>) -> Known {
    let primary = &participants.primary;
    let profile = given.into_iter().find(|profile| is_of(profile, primary));
    Known {
        profile: profile.or_else(|| Some(kept_records::find::<Profile>(&primary.key()?)?.body)),
        earlier: participants.key().and_then(|key| Some(kept_records::find::<Run>(&key)?.body)),
    }
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
