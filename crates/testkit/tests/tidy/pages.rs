//! Each verb has a page in `docs`, which the README and the index name, and which ends with its
//! known limits; and the README stays short.

use crate::{none, root};
use std::fs;

const MOST_WORDS: usize = 900;

fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// The verbs, by their help texts.
pub(crate) fn verbs() -> Vec<String> {
    let pages = fs::read_dir(root().join("crates/cli/tests/help")).expect("help texts");
    let names = pages.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut verbs: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".txt")?.to_owned()))
        .filter(|verb| verb != "help" && verb != "gleaner")
        .collect();
    verbs.sort();
    verbs
}

/// The title of the last section.
fn last_section(page: &str) -> Option<&str> {
    page.lines().rfind(|line| line.starts_with("## "))
}

/// What is wrong with a verb's page, or with what should name it.
fn complaints(verb: &str, page: Option<&str>, readme: &str, index: &str) -> Vec<String> {
    let path = format!("docs/{verb}.md");
    let Some(page) = page else { return vec![format!("{path} is not there: a verb has a page")] };
    let limits = (last_section(page) != Some("## Known limits"))
        .then(|| format!("{path}: its last section is not 'Known limits'"));
    let title = (page.lines().next() != Some(format!("# gleaner {verb}").as_str()))
        .then(|| format!("{path}: its title is not 'gleaner {verb}'"));
    let named = (!readme.contains(&format!("({path})"))).then(|| format!("README.md: no link to {path}"));
    let listed =
        (!index.contains(&format!("({verb}.md)"))).then(|| format!("docs/README.md: no link to {path}"));
    [limits, title, named, listed].into_iter().flatten().collect()
}

#[test]
fn each_verb_has_a_page() {
    let (readme, index) = (read("README.md").expect("it"), read("docs/README.md").expect("it"));
    let verbs = verbs();
    assert!(verbs.len() > 10, "{verbs:?}");
    let of = |verb: &String| {
        let page = read(&format!("docs/{verb}.md"));
        complaints(verb, page.as_deref(), &readme, &index)
    };
    none(&verbs.iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn the_readme_is_short() {
    let words = read("README.md").expect("it").split_whitespace().count();
    assert!(
        words <= MOST_WORDS,
        "README.md has {words} words; {MOST_WORDS} are the most: details go to docs"
    );
}

#[test]
fn pages_that_lack_something_are_seen() {
    let page = "# gleaner show\n## Known limits\nnone\n";
    assert!(complaints("show", Some(page), "[show](docs/show.md)", "[show](show.md)").is_empty());
    assert_eq!(complaints("show", None, "", ""), ["docs/show.md is not there: a verb has a page"]);
    let told = complaints("show", Some("# Showing\n## Known limits\n## More\n"), "", "");
    let expected = [
        "docs/show.md: its last section is not 'Known limits'",
        "docs/show.md: its title is not 'gleaner show'",
        "README.md: no link to docs/show.md",
        "docs/README.md: no link to docs/show.md",
    ];
    assert_eq!(told, expected);
}
