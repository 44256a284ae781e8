//! Pages of profiles of all processes, and what changed between two profiles.

mod fixtures;

use fixtures::fixture;
use gleaner_report::{Named, Options, report};
use records::profile::Profile;
use records::{AnyRecord, Document};

const SYSTEM: &str = "profile.v1.system.json";
const CALLS: &str = "profile.v1.call-chain.json";

#[test]
fn programs_and_control_groups_are_told() {
    let page = report(&[fixture(SYSTEM)], &Options::default());
    let profile: Profile = fixture(SYSTEM).record.body_as().unwrap();
    let system = profile.system.unwrap();
    for text in [
        "all processes of the machine",
        "Programs, most CPU time first",
        "Control groups, most CPU time first",
    ] {
        assert!(page.html.contains(text), "{text}");
    }
    for program in &system.programs {
        assert!(page.html.contains(&program.program), "{program:?}");
    }
    assert!(page.figures.iter().any(|(name, _)| name == "r1-programs"), "a figure of who waits");
}

#[test]
fn two_profiles_have_a_differential_flame_graph() {
    let before = fixture(CALLS);
    let mut profile: Profile = before.record.body_as().unwrap();
    let most = profile.calls.nodes.iter_mut().max_by_key(|node| node.samples).unwrap();
    let share = most.samples;
    most.samples *= 3;
    assert!(share > 100, "{share}");
    let after = Named { name: "after.json".to_owned(), record: again(&before.record, profile) };
    let page = report(&[before.clone(), after], &Options::default());
    let names: Vec<&str> = page.figures.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"beside-flame-time-change"), "{names:?}");
    let (_, svg) = page.figures.iter().find(|(name, _)| name == "beside-flame-time-change").unwrap();
    assert!(svg.contains("class=\"f g"), "what grew");
    assert!(page.html.contains("Frames by the change of their own share"));
    // The same profile twice has not changed.
    let page = report(&[before.clone(), before], &Options::default());
    let (_, svg) = page.figures.iter().find(|(name, _)| name == "beside-flame-time-change").unwrap();
    assert!(!svg.contains("class=\"f g") && !svg.contains("class=\"f l") && svg.contains("class=\"f e\""));
}

fn again(record: &AnyRecord, profile: Profile) -> AnyRecord {
    let text = Document { header: record.header.clone(), body: profile }.to_json();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("record.json");
    std::fs::write(&path, text).unwrap();
    records::read_any(&path).unwrap()
}
