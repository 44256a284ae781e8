//! R20: the tables that Go's runtime finds a twin in. Every byte of them is changed, one at a time,
//! and nothing of that may be accepted but where nobody reads; so is what leads to them. Besides,
//! wrongs that lie in what both files say.

use gleaner_proof::{Refusal, Rule, check};
use image::Image;
use image::elf::bytes::{u32_at, u64_at};
use std::process::Command;
use std::sync::LazyLock;
use twin::{Mode, VectorWidth};
use units::Svma;

/// Of `moduledata` in version 1.26.
const MODULE_SIZE: usize = 592;
const FUNCTIONS: usize = 104;
const INDEX: usize = 128;
const FIND: usize = 152;

static ORIGINAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("program");
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proof/go/program.s");
    let done = Command::new("gcc").args(["-static", "-nostdlib", "-no-pie", from, "-o"]).arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was assembled")
});

const MODES: [Mode<'static>; 2] = [Mode::Identity, Mode::Poison(VectorWidth::Sse)];

fn twins(original: &[u8], mode: Mode<'_>) -> Vec<u8> {
    let rewritten = twin::rewrite(original, None, mode).expect("rewritten");
    assert!(rewritten.coverage.functions_twinned >= 1, "{:?}", rewritten.coverage);
    rewritten.bytes
}

/// The rules that are broken; none where all is proven.
fn broken(original: &[u8], rewritten: &[u8]) -> Vec<Rule> {
    match check(original, rewritten) {
        Ok(_) => Vec::new(),
        Err(Refusal::Wrong { violations, .. }) => violations.iter().map(|found| found.rule).collect(),
        Err(other) => panic!("{other}"),
    }
}

/// Where a symbol of the program lies in the file.
fn place(name: &str) -> usize {
    let image = Image::parse(&ORIGINAL).expect("an image");
    let section =
        |name: &str| image.section(name).and_then(|found| image.section_bytes(found)).expect("a section");
    let (symbols, names) = (section(".symtab"), section(".strtab"));
    let is_it = |symbol: &&[u8]| {
        let rest = &names[u32_at(symbol, 0).expect("a name") as usize..];
        rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest[0] == 0)
    };
    let symbol = symbols.chunks_exact(24).find(is_it).expect(name);
    image_offset(&ORIGINAL, u64_at(symbol, 8).expect("an address"))
}

/// Where the new tables lie in the file, and where in them the module and the things that it names
/// do.
struct Tables {
    begin: usize,
    end: usize,
    module: usize,
    functions: usize,
    count: usize,
    find: usize,
}

fn tables(rewritten: &[u8]) -> Tables {
    let image = Image::parse(rewritten).expect("an image");
    let section = image.section(".gopclntab.twin").expect("tables");
    let offset =
        |address: Option<u64>| image.file_offset(Svma(address.expect("a word"))).expect("in the file").0;
    let module = offset(u64_at(rewritten, place("next"))) as usize;
    Tables {
        begin: section.offset as usize,
        end: (section.offset + section.size) as usize,
        module,
        functions: offset(u64_at(rewritten, module + FUNCTIONS)) as usize,
        count: u64_at(rewritten, module + INDEX + 8).expect("a word") as usize - 1,
        find: offset(u64_at(rewritten, module + FIND)) as usize,
    }
}

#[test]
fn twins_of_functions_that_the_compiler_made_are_accepted() {
    for mode in MODES {
        let rewritten = twin::rewrite(&ORIGINAL, None, mode).expect("rewritten");
        let of_go = |reason: &str| {
            rewritten.coverage.refusals.iter().filter(|(refusal, _)| format!("{refusal:?}") == reason).count()
        };
        assert_eq!(rewritten.coverage.functions_twinned, 2);
        assert_eq!((of_go("GoAssembly"), of_go("BesideGo")), (1, 1));
        assert_eq!(broken(&ORIGINAL, &rewritten.bytes), []);
        assert_eq!(tables(&rewritten.bytes).count, 2);
    }
}

#[test]
fn no_byte_of_the_tables_can_be_another() {
    for mode in MODES {
        let rewritten = twins(&ORIGINAL, mode);
        let tables = tables(&rewritten);
        let word = |at: usize| u64_at(&rewritten, at).expect("a word");
        let text = word(tables.module + 176);
        let size = word(tables.module + 184) - text;
        // Where nobody reads: what the last entry of the index has beside its end, parts of the
        // bucket behind the last twin, what lies between the pieces; and the first byte of the
        // values, which stands for no table.
        let find = tables.find + 4 + size.div_ceil(256) as usize;
        let index = tables.functions + 8 * tables.count + 4;
        let pctab = image_offset(&rewritten, word(tables.module + 80));
        let unread = |at: usize| {
            (index..index + 4).contains(&at) || (find..tables.find + 20).contains(&at) || at == pctab
        };
        let mut accepted = Vec::new();
        for at in tables.begin..tables.end {
            // Not the highest bit: it makes other varints of the same numbers.
            for change in [1, 2, 0x40] {
                let mut wrong = rewritten.clone();
                wrong[at] ^= change;
                let found = broken(&ORIGINAL, &wrong);
                if found.is_empty() && !unread(at) {
                    accepted.push(at - tables.begin);
                }
                assert!(found.is_empty() || found.contains(&Rule::Go), "{at}: {found:?}");
            }
        }
        // Three pieces end where the next one could not begin: the trees, the functions, or what to
        // look for.
        accepted.dedup();
        let padding = |&at: &usize| rewritten[tables.begin + at] == 0 && at > MODULE_SIZE + 72 + 64;
        assert!(
            accepted.iter().all(padding) && accepted.len() <= 8,
            "{mode:?}: {accepted:?} may be anything"
        );
    }
}

fn image_offset(rewritten: &[u8], address: u64) -> usize {
    let image = Image::parse(rewritten).expect("an image");
    image.file_offset(Svma(address)).expect("in the file").0 as usize
}

#[test]
fn the_list_of_modules_goes_on_with_the_new_one() {
    let rewritten = twins(&ORIGINAL, Mode::Identity);
    let next = place("next");
    for at in next..next + 8 {
        for bit in 0..8 {
            let mut wrong = rewritten.clone();
            wrong[at] ^= 1 << bit;
            assert!(broken(&ORIGINAL, &wrong).contains(&Rule::Go), "byte {} of next, bit {bit}", at - next);
        }
    }
    // No other word of the data may change.
    for at in [next - 8, place("data"), place("module")] {
        let mut wrong = rewritten.clone();
        wrong[at] ^= 1;
        assert!(!broken(&ORIGINAL, &wrong).is_empty(), "{at:#x}");
    }
}

#[test]
fn a_function_is_never_looked_for_behind_itself() {
    let rewritten = twins(&ORIGINAL, Mode::Identity);
    let tables = tables(&rewritten);
    assert_eq!(rewritten[tables.find..tables.find + 6], [0, 0, 0, 0, 0, 0], "leaf begins in the second part");
    for at in [tables.find, tables.find + 4, tables.find + 5] {
        let mut wrong = rewritten.clone();
        wrong[at] += 1;
        assert!(broken(&ORIGINAL, &wrong).contains(&Rule::Go));
    }
}

/// Twins of a program that one change makes another one; the change is taken back in both files.
fn taken_back(at: usize, changed: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut other = ORIGINAL.clone();
    other[at..at + changed.len()].copy_from_slice(changed);
    let mut rewritten = twins(&other, Mode::Identity);
    assert_eq!(broken(&other, &rewritten), []);
    rewritten[at..at + changed.len()].copy_from_slice(&ORIGINAL[at..at + changed.len()]);
    (ORIGINAL.clone(), rewritten)
}

#[test]
fn assembly_has_no_twin() {
    let (original, rewritten) = taken_back(place("flags") + 1, &[0]);
    assert!(broken(&original, &rewritten).contains(&Rule::Go));
}

#[test]
fn what_is_no_module_of_a_known_kind_is_refused_by_both() {
    let rewritten = twins(&ORIGINAL, Mode::Identity);
    let module = place("module");
    let version = ORIGINAL.windows(8).position(|text| text == b"go1.26.8").expect("a version");
    for (at, value, what) in [
        (version + 4, b'0', "a version that nobody knows"),
        (version + 6, b'r', "a release candidate"),
        (place("header"), 0xf0, "another magic number"),
        (place("header") + 8, 9, "another number of functions"),
        (module + 160, 1, "functions that begin elsewhere"),
        (module + 432 + 8, 1, "a plugin"),
        (module + 512 + 8, 1, "hashes of other modules"),
        (module + 536, 0, "no main function"),
        (module + 537, 1, "bad"),
        (module + 544, 1, "a mask of data"),
        (place("next"), 8, "another module behind it"),
    ] {
        let mut other = ORIGINAL.clone();
        other[at] = value;
        let refused = twin::rewrite(&other, None, Mode::Identity).err();
        let refused = refused.unwrap_or_else(|| panic!("{what} is not refused")).to_string();
        assert!(refused.starts_with("a Go program that "), "{what}: {refused}");
        let mut wrong = rewritten.clone();
        wrong[at] = value;
        assert!(broken(&other, &wrong).contains(&Rule::Go), "{what} is accepted");
    }
}

#[test]
fn code_that_may_add_modules_behind_the_last_one_is_refused() {
    // `lea` in place of `mov`: the address of what leads to the last module, to do with it what it
    // will.
    let (mut taken, load) = (ORIGINAL.clone(), place("load"));
    assert_eq!(taken[load + 1], 0x8b);
    taken[load + 1] = 0x8d;
    // The address may also stand in data.
    let mut held = ORIGINAL.clone();
    let (image, data) = (Image::parse(&ORIGINAL).expect("an image"), place("data"));
    let last = image.section(".data").map(|section| section.address + 8).expect("data");
    held[data..data + 8].copy_from_slice(&last.to_le_bytes());
    for wrong in [taken, held] {
        let refused = twin::rewrite(&wrong, None, Mode::Identity).err().map(|why| why.to_string());
        assert_eq!(refused.as_deref(), Some("a Go program that may load code while it runs"));
    }
}

#[test]
fn what_is_compared_with_a_checksum_stays_as_it_is() {
    for mode in MODES {
        let coverage = twin::rewrite(&ORIGINAL, None, mode).expect("rewritten").coverage;
        let kept: Vec<String> = coverage.kept.iter().map(|kept| format!("{:?}", kept.reason)).collect();
        assert_eq!((coverage.entries_patched, kept), (1, vec!["Checksummed".to_owned()]));
    }
    // Ranges that end with the first byte of a function, and begin with the last one of its patch;
    // and data that leads to the twins.
    let (leaves, leaf) = (place("leaves"), u64_at(&ORIGINAL, place("leaves")).expect("an address"));
    let next = u64_at(&ORIGINAL, place("last")).expect("an address") + 584;
    for (from, to) in [(leaf - 8, leaf + 1), (leaf + 4, leaf + 5), (next + 7, next + 9)] {
        let mut other = ORIGINAL.clone();
        other[leaves..leaves + 8].copy_from_slice(&from.to_le_bytes());
        other[leaves + 8..leaves + 16].copy_from_slice(&to.to_le_bytes());
        match twin::rewrite(&other, None, Mode::Identity) {
            Ok(rewritten) => {
                assert_eq!(rewritten.coverage.entries_patched, 1, "{from:#x}");
                assert_eq!(broken(&other, &rewritten.bytes), []);
            }
            Err(why) => assert!(from > next && why.to_string().contains("what it checks"), "{why}"),
        }
    }
    // Without the words that say so, or where they name another place, it is no more than data.
    for at in [place("fips"), place("fips") + 48] {
        let (original, rewritten) = taken_back(at, &[0]);
        assert!(broken(&original, &rewritten).contains(&Rule::Go));
    }
    let mut beyond = ORIGINAL.clone();
    beyond[leaves + 15] = 1;
    let refused = twin::rewrite(&beyond, None, Mode::Identity).err().map(|why| why.to_string());
    assert!(refused.is_some_and(|why| why.contains("out of place")));
    let mut rewritten = twins(&ORIGINAL, Mode::Identity);
    rewritten[leaves + 15] = 1;
    assert!(broken(&beyond, &rewritten).contains(&Rule::Go));
}

#[test]
fn what_is_begun_anew_by_its_place_has_no_twin() {
    let unsafe_points = place("main_unsafe");
    let mut other = ORIGINAL.clone();
    // -3 in place of -2.
    other[unsafe_points] = 3;
    let rewritten = twin::rewrite(&other, None, Mode::Identity).expect("rewritten");
    assert_eq!(rewritten.coverage.functions_twinned, 1);
    assert_eq!(u32_at(&other, unsafe_points).map(|word| word as u8), Some(3));
    // Where both say so, it is the rule that minds.
    let mut both = twins(&ORIGINAL, Mode::Identity);
    let tables = tables(&both);
    let run = &ORIGINAL[unsafe_points..unsafe_points + 2];
    let at = (tables.begin..tables.end).find(|&at| both[at..].starts_with(run) && both[at] == 1);
    both[at.expect("the twin's table")] = 3;
    both[unsafe_points] = 3;
    assert!(broken(&other, &both).contains(&Rule::Go));
}
