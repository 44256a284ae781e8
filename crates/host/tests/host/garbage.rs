//! Nothing that stands in a file may make the readers panic, or loop, or ask for unreasonable
//! memory.

use gleaner_host::{Source, Tree, probe};
use proptest::prelude::*;

const MACHINES: [&str; 8] = [
    include_str!("../../fixtures/epyc-7313-2s.tree"),
    include_str!("../../fixtures/firecracker-zen4.tree"),
    include_str!("../../fixtures/graviton3-64k.tree"),
    include_str!("../../fixtures/laptop-12700h.tree"),
    include_str!("../../fixtures/power9-s922.tree"),
    include_str!("../../fixtures/qemu-docker.tree"),
    include_str!("../../fixtures/spr-8462y-snc4.tree"),
    include_str!("../../fixtures/xeon-e5-2640v3.tree"),
];

/// What files say when they say nonsense: numbers at the edges, half lines, switches without a
/// choice.
const NONSENSE: [&str; 14] = [
    "",
    "\n",
    "-1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "0-4294967295",
    "[",
    "[]",
    "always never",
    "0x",
    "1 2 3 4 5 6 7 8 9 10 11",
    "max max",
    "{}",
];

fn read(tree: Tree) -> gleaner_host::Host {
    let source = Source::recorded(tree);
    gleaner_host::read_with(&source, &probe::RecordedProber::of(&source))
}

fn must_be_sound(host: &gleaner_host::Host) {
    let text = serde_json::to_string(host).unwrap();
    assert_eq!(&serde_json::from_str::<gleaner_host::Host>(&text).unwrap(), host);
    assert!(host.usable_cpus().len() <= 1 << 16);
}

/// Paths of a machine's files; of numbered ones the first.
fn paths(text: &str) -> Vec<String> {
    let named =
        text.lines().skip(1).filter(|l| !l.starts_with(['\t', '#'])).filter_map(|l| l.split('\t').next());
    named.map(first).collect()
}

fn first(path: &str) -> String {
    let Some((before, rest)) = path.split_once('{') else { return path.to_owned() };
    let (list, after) = rest.split_once('}').unwrap();
    format!("{before}{}{after}", list.split([',', '-']).next().unwrap())
}

#[test]
fn every_file_may_hold_nonsense() {
    for (index, machine) in MACHINES.iter().enumerate() {
        let whole = Tree::parse(machine).unwrap();
        // Machines have much the same files: half of those of each, others of the next.
        for (turn, path) in paths(machine).iter().enumerate().skip(index % 2).step_by(2) {
            // Each file meets a few kinds of nonsense, all kinds meet some file.
            let nonsense = NONSENSE[(turn / 2 + index) % NONSENSE.len()];
            let mut tree = whole.clone();
            assert!(tree.file(path).is_some(), "{path}");
            tree.insert(path.clone(), nonsense);
            must_be_sound(&read(tree));
        }
    }
}

#[test]
fn all_files_may_hold_the_same_nonsense() {
    for machine in MACHINES {
        for nonsense in NONSENSE {
            let mut tree = Tree::default();
            for path in paths(machine) {
                tree.insert(
                    path.replace("{0-1}", "0").replace("{0-63}", "0").replace("{0-31}", "0"),
                    nonsense,
                );
            }
            must_be_sound(&read(tree));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn files_may_be_cut_and_scrambled(
        machine in 0..MACHINES.len(),
        cuts in proptest::collection::vec((0.0..1.0_f64, 0..40_usize, any::<Option<u8>>()), 1..30),
    ) {
        // On the text of the whole tree: lines vanish, bytes change, paths get new contents.
        let mut bytes = MACHINES[machine].as_bytes().to_vec();
        for (at, length, replacement) in cuts {
            let start = (bytes.len() as f64 * at) as usize;
            let start = start.max("# gleaner tree 1\n".len()).min(bytes.len());
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, replacement);
        }
        if let Ok(tree) = Tree::parse(&String::from_utf8_lossy(&bytes)) {
            must_be_sound(&read(tree));
        }
    }

    #[test]
    fn known_paths_may_hold_random_bytes(
        content in proptest::collection::vec(any::<u8>(), 0..64),
        machine in 0..MACHINES.len(),
        pick in any::<prop::sample::Index>(),
    ) {
        let mut tree = Tree::parse(MACHINES[machine]).unwrap();
        let paths = paths(MACHINES[machine]);
        tree.insert(pick.get(&paths).clone(), content);
        must_be_sound(&read(tree));
    }
}
