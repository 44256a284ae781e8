//! Rules that part of the repository does not keep yet: each has a list in `pending/` of what may
//! still break it. Lists only shrink: what is not listed is a complaint, and what is listed stops
//! being so once `make regenerate` finds that it keeps the rule.
//!
//! After a file or a module was renamed, `GLEANER_REGENERATE=pending cargo test -p gleaner-testkit
//! --test tidy` writes the lists as things stand; its diff shows whether anything but names
//! changed.

use crate::root;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What stands behind an entry that was written by `GLEANER_REGENERATE=pending`.
const FOUND: &str = "as found when the rule was made";

/// The entries of a list, each with its reason (the text behind ` # `, which may be empty).
fn read(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(" # ").unwrap_or((line, "")))
        .map(|(entry, reason)| (entry.trim().to_owned(), reason.trim().to_owned()))
        .collect()
}

/// The list anew: its head, and the entries that stay.
fn written(before: &str, entries: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for line in before.lines().take_while(|line| line.starts_with('#')) {
        let _ = writeln!(text, "{line}");
    }
    for (entry, reason) in entries {
        let reason = if reason.is_empty() { String::new() } else { format!(" # {reason}") };
        let _ = writeln!(text, "{entry}{reason}");
    }
    text
}

/// What a list becomes: of the offenders those that it names (`grow`: all of them).
fn after(
    listed: &BTreeMap<String, String>,
    offenders: &BTreeMap<String, Vec<String>>,
    reasons: bool,
    grow: bool,
) -> BTreeMap<String, String> {
    let reason = |entry: &String| match listed.get(entry) {
        Some(reason) => Some(reason.clone()),
        None => grow.then(|| if reasons { FOUND.to_owned() } else { String::new() }),
    };
    offenders.keys().filter_map(|entry| Some((entry.clone(), reason(entry)?))).collect()
}

/// Complaints of all `offenders` (entries of the list, with what is wrong there) that the list does
/// not name. `reasons`: each entry needs one.
pub(crate) fn unlisted(list: &str, offenders: &BTreeMap<String, Vec<String>>, reasons: bool) -> Vec<String> {
    let path: PathBuf = root().join("crates/testkit/tests/tidy/pending").join(list);
    let text = std::fs::read_to_string(&path).expect("a list of what is pending");
    let listed = read(&text);
    let regenerate = std::env::var("GLEANER_REGENERATE").unwrap_or_default();
    if regenerate == "1" || regenerate == "pending" {
        let entries = after(&listed, offenders, reasons, regenerate == "pending");
        std::fs::write(&path, written(&text, &entries)).expect("the list");
        return Vec::new();
    }
    let mut complaints: Vec<String> = offenders
        .iter()
        .filter(|(entry, _)| !listed.contains_key(*entry))
        .flat_map(|(_, complaints)| complaints.clone())
        .collect();
    if reasons {
        let unexplained = listed.iter().filter(|(_, reason)| reason.is_empty());
        complaints.extend(unexplained.map(|(entry, _)| format!("{list}: '{entry}' has no reason")));
    }
    complaints
}

#[test]
fn lists_only_shrink() {
    let before = "# A head.\na.rs\nb.rs # why\nc.rs\n";
    let listed = read(before);
    assert_eq!(listed.keys().collect::<Vec<_>>(), ["a.rs", "b.rs", "c.rs"]);
    let offenders = ["b.rs", "c.rs", "d.rs"].map(|name| (name.to_owned(), vec!["wrong".to_owned()])).into();
    let shrunk = after(&listed, &offenders, false, false);
    assert_eq!(written(before, &shrunk), "# A head.\nb.rs # why\nc.rs\n");
    let grown = after(&listed, &offenders, true, true);
    assert_eq!(written(before, &grown), format!("# A head.\nb.rs # why\nc.rs\nd.rs # {FOUND}\n"));
}
