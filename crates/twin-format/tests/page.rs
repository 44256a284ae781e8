//! `docs/twin-format.md` states the version that the code writes, in one place.

use gleaner_twin_format::VERSION;

/// The versions that a page states: the number behind each `version`, in any spelling.
fn stated(page: &str) -> Vec<u32> {
    let small = page.to_ascii_lowercase();
    let behind = small.split("version").skip(1);
    let behind = behind.map(|text| text.trim_start_matches([':', ' ']));
    behind
        .map(|text| text.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[test]
fn the_page_states_the_version_of_the_code_once() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/twin-format.md");
    let page = std::fs::read_to_string(page).expect("docs/twin-format.md");
    assert_eq!(stated(&page), [VERSION], "docs/twin-format.md and `VERSION` change together");
}

#[test]
fn versions_are_found_in_any_spelling() {
    assert_eq!(stated("Version 5. A page\n| 0 | 4 | version: 6 |\nversions differ\n"), [5, 6]);
}
