//! What a man page says beyond the definition of the command line: examples, files, variables,
//! related pages.
//!
//! To add a verb: a case in [`examples`], and in [`files`] and [`see_also`] if it has any. A test
//! looks for examples.

/// Something that a page names, and a sentence on it.
pub(super) type Entry = (&'static str, &'static str);

/// Commands with what they do, for the page of this verb; for that of `gleaner` itself, a way
/// through all.
pub(super) fn examples(verb: &str) -> &'static [Entry] {
    match verb {
        "gleaner" => &[
            ("gleaner doctor", "Show what works on this host, and what would help where something does not."),
            ("gleaner measure", "Measure this machine (six minutes); later steps use the record."),
            ("gleaner profile ./search data", "Run ./search, and show the loads that it waits for."),
            (
                "gleaner harvest --scavenger 'gzip -k big.log' ./server --port 8080",
                "Run a server, and gzip in its memory stalls.",
            ),
        ],
        "gleaner-tour" => &[
            ("gleaner tour", "See a program wait for memory; the page is gleaner-tour/report.html."),
            (
                "gleaner tour --directory /tmp/tour --json | jq '.steps[].says'",
                "Print what was found, for a script.",
            ),
        ],
        "gleaner-speed" => &[
            (
                "gleaner speed -- ./join orders.txt",
                "Find what makes it faster without its source, and keep it.",
            ),
            (
                "gleaner speed --with 'small.txt' -- ./join orders.txt",
                "Keep only what costs other arguments no time.",
            ),
            ("gleaner speed --show --as systemd -- ./join", "Show it as lines of a unit."),
            ("gleaner speed --forget -- ./join", "Take it away again."),
        ],
        "gleaner-top" => &[
            ("sudo gleaner top", "Watch which programs, functions and lines wait for memory now."),
            ("sudo gleaner top --batch -n 1", "Print it once."),
            (
                "sudo gleaner top --json | jq '.programs[0].name'",
                "Name the program that waits most, for a script.",
            ),
        ],
        "gleaner-run" => &[
            ("gleaner run -- ./join orders.txt", "Run it by what gleaner speed has kept for this build."),
            ("gleaner run --recipe recipe.json -- ./join orders.txt", "Run it by a record of elsewhere."),
        ],
        "gleaner-doctor" => &[
            ("gleaner doctor", "Show what works on this host."),
            ("gleaner doctor --record machine.tree", "Record this machine, to look at it elsewhere."),
            ("gleaner doctor --root machine.tree", "Show the page of the recorded machine."),
            ("gleaner doctor --json | jq .verdict", "Print the verdict only, for a script."),
        ],
        "gleaner-measure" => &[
            ("gleaner measure", "Measure everything; 'gleaner harvest' uses the record from now on."),
            ("gleaner measure --quick latency mlp", "Measure two experiments only, with fewer points."),
            ("gleaner measure -o machine.json --csv points", "Choose the file, and write all points as CSV."),
            (
                "gleaner measure latency --repeat 5 -o before",
                "Measure five times, into before/1.json to before/5.json, to compare with later runs.",
            ),
            (
                "gleaner measure stride --stride 64,128 --size 1G --format lat_mem_rd",
                "Choose strides and the largest size, and print a curve for each stride.",
            ),
            (
                "gleaner measure --dry-run",
                "Say how long that takes and how much memory it may use; measure nothing.",
            ),
            (
                "gleaner measure --cpu 3 --seed 42",
                "Measure on CPU 3, with the random choices of an earlier run.",
            ),
        ],
        "gleaner-probe" => &[
            ("gleaner probe", "Show in ten seconds what would give away a fault."),
            (
                "gleaner probe --jitter 30s -o /shared/records",
                "Write a record with this host's name and the time into a directory, after up to 30 seconds.",
            ),
            (
                "gleaner probe --budget 5s --expect /etc/gleaner/limits",
                "Check a node before a job: exit with 4 if a figure breaks its limit.",
            ),
        ],
        "gleaner-profile" => &[
            ("gleaner profile ./search data", "Run ./search, and show the loads that it waits for."),
            (
                "gleaner profile --pid 4711 --duration 10s -o profile.json",
                "Sample a running process for ten seconds, and keep the record.",
            ),
            (
                "gleaner profile --from 5s --to 10s ./server",
                "Leave out what happens in the first five seconds, and after the tenth.",
            ),
            (
                "gleaner profile --trace -o profile.json ./search data",
                "Put all accesses of a second run through a model of the caches: levels, bandwidth over time.",
            ),
            (
                "gleaner profile --trace --if l3=64M,pages=2M ./search data",
                "The same for a machine with a larger L3, and with large pages.",
            ),
            ("gleaner show profile.json '.loads[0]'", "Show all figures of the load that stalls most."),
        ],
        "gleaner-harvest" => &[
            (
                "gleaner harvest --scavenger 'gzip -k big.log' ./server --port 8080",
                "Run ./server, and gzip in its memory stalls.",
            ),
            (
                "gleaner harvest --scavengers '4 x ./scan data' --max-slowdown 2% --record run.json ./search",
                "Run four copies of a scan, slow the search down by at most 2%, and write the run record.",
            ),
            (
                "gleaner harvest --dry-run --scavenger ./scan ./search",
                "Explain which loads get a yield, and why; run nothing.",
            ),
        ],
        "gleaner-twin" => &[
            ("gleaner twin --identity -o ls.twin /bin/ls", "Give every function a twin without yields."),
            (
                "gleaner twin --plan plan.json -o search.twin ./search",
                "Rewrite a program according to a plan.",
            ),
        ],
        "gleaner-proof" => {
            &[("gleaner proof /bin/ls ls.twin", "Check the rewritten file against its original.")]
        }
        "gleaner-annotate" => &[
            ("gleaner annotate profile.json", "Show the code of the three functions that took most time."),
            ("gleaner annotate profile.json hash_lookup", "Show the code of functions with this name."),
        ],
        "gleaner-show" => &[
            ("gleaner show machine.json", "Show the record as a tree."),
            (
                "gleaner show machine.json '.levels[-1].latency.ns'",
                "Show the latency of memory, with its interval.",
            ),
            ("gleaner show --json run.json .slowdown", "Print a part of a record as JSON."),
        ],
        "gleaner-export" => &[
            (
                "gleaner export --format pprof -o profile.pb.gz profile.json",
                "Write a profile for 'go tool pprof -http=: profile.pb.gz'.",
            ),
            (
                "gleaner export --format folded --weight stall profile.json | flamegraph.pl >stall.svg",
                "Draw a flame graph of the time spent waiting for loads.",
            ),
            (
                "gleaner export --format csv-loads profile.json",
                "Print the loads as a table for a spreadsheet.",
            ),
            (
                "gleaner export --parquet tables records/",
                "Add all records below a directory to tables that databases read.",
            ),
            (
                "gleaner export --format hwloc machine.json | lstopo --input - --input-format xml --memattrs",
                "Show measured latency and bandwidth as hwloc's memory attributes.",
            ),
        ],
        "gleaner-sites" => &[
            ("gleaner sites -o sites.parquet ./search", "Write the table of one program."),
            (
                "gleaner sites -o /shared/sites /usr/bin/search /usr/lib/libsearch.so",
                "Add files to a directory of tables, each under its build ID.",
            ),
        ],
        "gleaner-report" => &[
            ("gleaner report machine.json", "Write machine.html, a page with all figures of the record."),
            (
                "gleaner report --share -o report.html machine.json profile.json run.json",
                "Write one page of three records, without names of hosts and users.",
            ),
            ("gleaner report --svg figures machine.json", "Write each figure as a file, too."),
        ],
        "gleaner-model" => &[
            ("gleaner model machine.json", "Print levels of the memory hierarchy, with sizes and costs."),
            ("gleaner model --json machine.json | jq '.fits[].levels'", "The same for scripts."),
        ],
        "gleaner-compare" => &[
            (
                "gleaner compare before.json after.json",
                "Show what differs between two runs; how much runs differ by chance is not known.",
            ),
            (
                "gleaner compare before/ after/ --fail-on regression",
                "Compare the runs of two directories; exit with 4 if something became slower, with 5 if that is not known.",
            ),
            (
                "gleaner compare --ab 'latency --quick' 'latency --quick thp=never'",
                "Measure with and without huge pages, five times each, in turns, and compare.",
            ),
            (
                "gleaner compare b1.json,b2.json,b3.json a1.json,a2.json,a3.json --json | jq .against[].gate",
                "The same for runs in any files, for scripts.",
            ),
        ],
        "gleaner-predict" => &[
            (
                "gleaner predict 'chase(64M)'",
                "Predict a pass through a linked list of 64 MiB on this machine.",
            ),
            (
                "gleaner predict --machine m.json --on other.json '8 * rand(1G, mlp=4); seq(2G)'",
                "Predict eight passes of random reads, then a scan, on two machines.",
            ),
            (
                "gleaner predict 'tree(1G, 16, 256, n=1M) & seq(64M)'",
                "Predict a million walks through a tree among a pass in order, by one thread.",
            ),
            (
                "gleaner predict --json --if pages=2M 'rand(1G)' | jq .per_access.value",
                "Print the nanoseconds of each read with huge pages, for a script.",
            ),
        ],
        "gleaner-reproduce" => &[
            ("gleaner reproduce", "List the documents, and the time and memory that each takes."),
            ("gleaner reproduce mlp --list", "List the claims of one of them."),
            ("gleaner reproduce mlp --quick", "Test its claims on this machine."),
            (
                "gleaner reproduce lat_mem_rd --machine machine.json",
                "Test claims on the figures of a machine record, and measure nothing.",
            ),
        ],
        "gleaner-help" => &[("gleaner help measure", "Show the help of 'gleaner measure'.")],
        _ => &[],
    }
}

const MACHINE: Entry = (
    "~/.cache/gleaner/machine.json",
    "The machine record that 'gleaner measure' leaves and other verbs use (below XDG_CACHE_HOME, if that is set).",
);
const TWINS: Entry =
    ("~/.cache/gleaner/twins/", "Rewritten programs, kept from run to run; may be removed at any time.");

const RECIPES: Entry =
    ("~/.cache/gleaner/recipes/", "What gleaner speed has kept, by build id; --forget takes it away.");

pub(super) fn files(verb: &str) -> &'static [Entry] {
    match verb {
        "gleaner" | "gleaner-harvest" => &[MACHINE, TWINS],
        "gleaner-measure" => &[
            MACHINE,
            (
                "NAME.interrupted.json",
                "Where a stopped run writes its record, if NAME.json holds that of a complete run.",
            ),
            ("/tmp/gleaner-machine-*.json", "A record that could not be written to the requested place."),
        ],
        "gleaner-predict" => &[MACHINE],
        "gleaner-speed" | "gleaner-run" => &[RECIPES],
        "gleaner-tour" => &[
            ("gleaner-tour/report.html", "The page: the story, and all records."),
            (
                "gleaner-tour/tour.json",
                "The story as a record; machine.json, profile.json and run.json stand beside it.",
            ),
            ("gleaner-tour/join, join.c", "The program that waits, and its source."),
            MACHINE,
            TWINS,
        ],
        _ => &[],
    }
}

const HOME: Entry =
    ("XDG_CACHE_HOME, HOME", "Where the cache directory is: $XDG_CACHE_HOME, or else $HOME/.cache.");
const TMPDIR: Entry = ("TMPDIR", "Where temporary files go; /tmp if not set.");
const OUTPUT: [Entry; 4] = [
    ("NO_COLOR", "If set and not empty, text has no colours."),
    ("TERM", "If 'dumb', text is ASCII without escape sequences."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "The first of them that is set names the locale; in one that is not UTF-8, text is ASCII.",
    ),
    ("COLUMNS", "The width of text that does not go to a terminal."),
];

pub(super) fn environment(verb: &str) -> Vec<Entry> {
    let own: &[Entry] = match verb {
        "gleaner" | "gleaner-harvest" | "gleaner-measure" | "gleaner-speed" | "gleaner-tour" => {
            &[HOME, TMPDIR]
        }
        "gleaner-predict" | "gleaner-run" => &[HOME],
        _ => &[],
    };
    own.iter().chain(&OUTPUT).copied().collect()
}

/// Pages of other programs; those of Gleaner's own are known.
pub(super) fn see_also(verb: &str) -> &'static [&'static str] {
    match verb {
        "gleaner-measure" | "gleaner-tour" => &["perf(1)", "numactl(8)", "taskset(1)"],
        "gleaner-doctor" => &["lscpu(1)", "perf(1)"],
        "gleaner-twin" | "gleaner-proof" => &["objdump(1)", "readelf(1)", "elf(5)"],
        "gleaner-profile" => &["perf(1)", "perf_event_open(2)"],
        "gleaner-harvest" => &["nice(1)", "taskset(1)", "sched(7)"],
        "gleaner-annotate" => &["perf-annotate(1)", "objdump(1)"],
        "gleaner-show" => &["jq(1)"],
        "gleaner-report" => &["xdg-open(1)"],
        "gleaner-export" => &["callgrind_annotate(1)", "llvm-profdata(1)", "lstopo(1)"],
        "gleaner-probe" => &["srun(1)", "numactl(8)"],
        _ => &["perf(1)"],
    }
}
