//! Stored samples of a fleet, joined to the table of `gleaner sites` by a database.

use super::{built_with_gperftools, gleaner, place, profiled, ran};
use testkit::text;

/// A table of samples as a fleet's store has it: build ID, file offset, count; of files
/// of gperftools.
const TO_TABLE: &str = r#"
import csv, struct, subprocess, sys
out = csv.writer(open("samples.csv", "w"))
out.writerow(["host", "build_id", "file_offset", "samples"])
ids = {}
def build_id(path):
    if path not in ids:
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
        ids[path] = next((line.split()[-1] for line in notes.splitlines() if "Build ID" in line), "")
    return ids[path]
for host, name in enumerate(sys.argv[1:]):
    data = open(name, "rb").read()
    end = data.rindex(struct.pack("<3Q", 0, 1, 0)) + 24
    maps = []
    for line in data[end:].decode().splitlines():
        cells = line.split(None, 5)
        if len(cells) == 6 and "x" in cells[1]:
            start, limit = (int(part, 16) for part in cells[0].split("-"))
            maps.append((start, limit, int(cells[2], 16), cells[5].strip()))
    words = struct.unpack(f"<{end // 8}Q", data[:end])
    at = 5
    while words[at:at + 3] != (0, 1, 0):
        count, depth, pc = words[at:at + 3]
        at += 2 + depth
        for start, limit, offset, path in maps:
            if start <= pc < limit and path.startswith("/"):
                out.writerow([f"host{host}", build_id(path), pc - start + offset, count])
"#;

/// The query of `docs/fleet.md` that is headed so.
fn query() -> String {
    let page = std::fs::read_to_string(testkit::root().join("docs/fleet.md")).unwrap();
    let from = page.find("## Loads that a fleet waits for").expect("the part of the page");
    let sql = page[from..].split("```sql\n").nth(1).expect("a query").split("```").next().unwrap();
    sql.to_owned()
}

#[cfg(feature = "parquet")]
#[test]
fn a_database_names_the_loads_that_a_fleet_waits_for() {
    let place = place();
    let Some(python) = testkit::python_reader() else { return };
    if !built_with_gperftools(&place, &[], "p") {
        return;
    }
    for host in ["0.prof", "1.prof"] {
        ran(&place, "p", &[host]);
    }
    let output = gleaner(&place, &["sites", "-o", "sites.parquet", "p"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let made = place.command(&python).args(["-c", TO_TABLE, "0.prof", "1.prof"]).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let rows = crate::fleet::readers::duckdb(&python, place.folder(), &[&query()]);
    let (own, told) = profiled(&place, &["--pprof", "0.prof"]);
    let chase = rows.iter().find(|row| row["function"] == "chase").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!((chase["pattern"].as_str(), chase["hosts"].as_u64()), (Some("chain"), Some(2)), "{rows:?}");
    assert!(chase["source"].as_str().is_some_and(|source| source.ends_with("p.c")), "{rows:?}");
    // Both hosts ran the same: the fleet's share is about that of one of them.
    let one = super::first(&own, "chase").unwrap().stall.value().unwrap();
    let all = chase["percent"].as_f64().unwrap() / 100.0;
    assert!((one - all).abs() < 0.15, "{one} and {all}: {told}{rows:?}");
    let waits = rows.iter().map(|row| row["percent"].as_f64().unwrap()).sum::<f64>();
    assert!(waits >= 90.0, "{waits}% of the time at these lines: {rows:?}");
}

#[cfg(feature = "parquet")]
#[test]
fn tables_are_the_same_for_the_same_file() {
    let place = place();
    assert!(place.compile("cc", "p", &["-g", "-Wl,--build-id"]));
    std::fs::create_dir_all(place.at("other/tables")).unwrap();
    std::fs::copy(place.at("p"), place.at("other/p")).unwrap();
    for arguments in [&["sites", "-o", "a.parquet", "p"][..], &["sites", "-o", "b.parquet", "other/p"]] {
        assert!(gleaner(&place, arguments).status().unwrap().success());
    }
    let read = |name: &str| std::fs::read(place.at(name)).unwrap();
    assert!(read("a.parquet") == read("b.parquet"), "nothing in it is of its place or time");
    let add = || text(&gleaner(&place, &["sites", "-o", "other/tables", "p"]).output().unwrap().stderr);
    assert!(add().contains("rows of p"));
    assert!(add().contains("is there already"), "it is named by its build ID");
    let [entry] = &std::fs::read_dir(place.at("other/tables")).unwrap().collect::<Vec<_>>()[..] else {
        panic!("one table")
    };
    assert!(read("a.parquet") == std::fs::read(entry.as_ref().unwrap().path()).unwrap());
}

#[test]
fn the_table_says_what_the_profile_says() {
    let place = place();
    if !built_with_gperftools(&place, &[], "p") {
        return;
    }
    ran(&place, "p", &["cpu.prof"]);
    let (profile, told) = profiled(&place, &["--pprof", "cpu.prof"]);
    let rows = text(&gleaner(&place, &["sites", "p"]).output().unwrap().stdout);
    for load in profile.loads.iter().filter(|load| load.module.ends_with("/p")) {
        let is_it = |row: &&str| row.split(',').nth(7) == Some(load.address.to_string().as_str());
        let row = rows.lines().find(is_it).unwrap_or_else(|| panic!("{load:?}: {told}"));
        assert!(row.contains(&format!(",load,{},", load.pattern.word())), "{row}: {load:?}");
        assert_eq!(row.rsplit(',').next().unwrap().parse().ok(), load.line, "{row}");
    }
    for (arguments, says) in [
        (&["sites", "-o", "table.txt", "p"][..], "ends in none of"),
        (&["sites", "p.c"], "no ELF file"),
        (&["sites", "none"], "No such file"),
    ] {
        let output = gleaner(&place, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
}
