//! `gleaner speed` and `gleaner run`: what is tried, kept, applied and taken away again.

use records::Document;
use records::recipe::{ChangeOutcome, Recipe, Setting, Verdict};
use std::fs;
use std::process::{Command, Output};
use testkit::{Place, text};

/// Reads a table of 256 MiB at places that another array gives, and says what it found.
const GATHER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    size_t entries = 1ul << 25, reads = argc > 1 ? strtoul(argv[1], 0, 10) : 1ul << 23;
    uint64_t *table = malloc(entries * 8);
    uint32_t *index = malloc(reads * 4);
    uint64_t x = 88172645463325252ul, sum = 0;
    for (size_t i = 0; i < entries; i++) table[i] = i * 7;
    for (size_t i = 0; i < reads; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; index[i] = x % entries; }
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < reads; i++) {
            uint64_t v = table[index[i]];
            if (v & 1) sum += v * 31; else sum ^= v >> 3;
        }
    printf("%lu\n", sum);
    return 3;
}
"#;

struct Tried {
    place: Place,
}

impl Tried {
    fn of(source: &str) -> Self {
        Self { place: Place::new(source, env!("CARGO_BIN_EXE_gleaner")) }
    }

    fn gleaner(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(env!("CARGO_BIN_EXE_gleaner"));
        command.args(arguments).env("XDG_CACHE_HOME", self.place.at("cache"));
        command
    }

    fn recipe(&self, arguments: &[&str]) -> Recipe {
        let output = self.gleaner(&[&["speed", "-q", "-o", "recipe.json"], arguments].concat());
        assert!(matches!(output.status.code(), Some(0 | 5)), "{}", text(&output.stderr));
        let document: Document<Recipe> = records::read(&self.place.at("recipe.json")).unwrap();
        document.body
    }

    /// A recipe that is kept, whatever this machine's runs would say.
    fn keeps(&self, settings: Vec<Setting>) {
        let _ = self.recipe(&["--budget", "1s", "--", "./p", "1000000"]);
        let mut document: Document<Recipe> = records::read(&self.place.at("recipe.json")).unwrap();
        document.body.settings = settings;
        document.body.verdict = Verdict::Faster;
        fs::write(self.place.at("recipe.json"), document.to_json()).unwrap();
    }
}

#[test]
fn a_search_tries_what_the_profile_proposes() {
    let tried = Tried::of(GATHER);
    let recipe = tried.recipe(&["--budget", "40s", "--", "./p", "3000000"]);
    assert!(recipe.runs >= 3, "{recipe:#?}");
    let says: Vec<&str> = recipe.tried.iter().map(|one| one.says.as_str()).collect();
    assert!(says.contains(&"huge pages"), "{says:?}");
    assert!(recipe.compared[0].contains("standard output"), "{recipe:#?}");
    let kept = recipe.tried.iter().filter(|one| one.outcome == ChangeOutcome::Kept).count();
    match &recipe.verdict {
        Verdict::Faster => {
            let faster = recipe.faster.estimate().unwrap();
            assert!(kept > 0 && !recipe.settings.is_empty() && faster.lo > 1.0 && faster.value >= 1.02);
        }
        _ => assert!(kept == 0 && recipe.settings.is_empty(), "{recipe:#?}"),
    }
}

#[test]
fn what_is_no_use_to_try_is_left_as_it_is() {
    let why = |recipe: &Recipe| match &recipe.verdict {
        Verdict::LeaveIt { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    let short = Tried::of("int main(void) { return 0; }");
    assert!(why(&short.recipe(&["--", "./p"])).contains("ms"));
    let sleeps = Tried::of("#include <unistd.h>\nint main(void) { usleep(300000); return 0; }");
    assert!(why(&sleeps.recipe(&["--", "./p"])).contains("waits for something else"));
    let clock = "#include <stdio.h>\n#include <time.h>\nint main(void) { struct timespec t; volatile long n = 0;\n\
                 while (n < 200000000) n++; clock_gettime(CLOCK_REALTIME, &t); printf(\"%ld\\n\", t.tv_nsec); }";
    let differs = Tried::of(clock);
    let recipe = differs.recipe(&["--", "./p"]);
    assert!(why(&recipe).contains("differs from run to run"), "{recipe:#?}");
    let once = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { volatile long n = 0; while (n < 100000000) n++;\n\
                if (!access(\"made\", F_OK)) return 1; fclose(fopen(\"made\", \"w\")); return 0; }";
    let once = Tried::of(once);
    let recipe = once.recipe(&["--", "./p"]);
    // The profiled run made the file: each later one ends alike, with an error.
    assert!(recipe.settings.is_empty(), "{recipe:#?}");
}

#[test]
fn a_recipe_is_applied_refused_and_forgotten() {
    let tried = Tried::of(GATHER);
    let settings = vec![Setting::MallocOnHugePages, Setting::MappedOnHugePages { up_to: 1 << 30 }];
    tried.keeps(settings);
    let alone = tried.place.command("./p").arg("1000000").output().unwrap();
    let with = tried.gleaner(&["run", "--recipe", "recipe.json", "--", "./p", "1000000"]);
    assert_eq!((with.status.code(), &with.stdout), (Some(3), &alone.stdout), "{}", text(&with.stderr));
    let shown = tried.command(&["run", "--recipe", "recipe.json", "--", "/usr/bin/env"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(2), "a recipe of another program: {}", text(&shown.stderr));
    let forgotten = tried.gleaner(&["speed", "--forget", "--", "./p"]);
    assert!(forgotten.status.success(), "{}", text(&forgotten.stderr));
    let cache = tried.place.at("cache/gleaner/recipes");
    let left: Vec<_> = fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name == "paths"), "{left:?}");
    assert_eq!(fs::read_dir(cache.join("paths")).map_or(0, Iterator::count), 0, "nothing is left behind");
}

#[test]
fn without_a_recipe_programs_run_as_they_are() {
    let tried = Tried::of("#include <stdio.h>\nint main(int c, char **v) { puts(v[0]); return 7; }");
    let output = tried.gleaner(&["run", "--", "./p"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "./p\n".into()));
    assert_eq!(text(&output.stderr), "", "there is nothing to say");
    let missing = tried.gleaner(&["run", "--", "./no-such-program"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
    let shown = tried.gleaner(&["speed", "--show", "--", "./p"]);
    assert_eq!(shown.status.code(), Some(2), "{}", text(&shown.stdout));
    assert!(text(&shown.stderr).contains("no recipe is kept"), "{}", text(&shown.stderr));
}

#[test]
fn a_program_that_was_moved_keeps_its_recipe() {
    let tried = Tried::of(GATHER);
    tried.keeps(vec![Setting::MallocOnHugePages]);
    fs::rename(tried.place.at("p"), tried.place.at("moved")).unwrap();
    let output = tried.gleaner(&["run", "--recipe", "recipe.json", "--", "./moved", "1000"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(3), String::new()));
}

/// Answers requests of 16 KiB: for each key what a table of 128 MiB holds at its hash.
const SERVER: &str = r"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) uint64_t answer(const uint64_t *table, const uint32_t *keys, int number) {
    uint64_t sum = 0;
    for (int i = 0; i < number; i++) sum += table[keys[i] * 0x9e3779b97f4a7c15ul >> 40];
    return sum;
}
int main(int argc, char **argv) {
    static uint32_t keys[4096];
    uint64_t *table = malloc(8ul << 24), sum = 0;
    for (uint64_t i = 0; i < 1ul << 24; i++) table[i] = i * 7;
    for (long left = atol(argv[1]); left > 0; left--) {
        if (read(0, keys, sizeof keys) != sizeof keys) lseek(0, 0, SEEK_SET);
        sum += answer(table, keys, 4096);
        if (write(1, &sum, 8) != 8) return 1;
    }
    return 3;
}
";

impl Tried {
    /// A server, its requests, and a profile of it.
    fn server() -> Self {
        let tried = Self::of(SERVER);
        let mut x = 1u64;
        let mut requests = Vec::new();
        for _ in 0..64 << 10 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            requests.extend(x.to_le_bytes());
        }
        fs::write(tried.place.at("requests"), requests).unwrap();
        let profile = ["profile", "-q", "--no-allocations", "-o", "profile.json", "--", "./p", "5000"];
        let output = tried.serving(&profile).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "it ends with 3: {}", text(&output.stderr));
        tried
    }

    fn serving(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.stdin(fs::File::open(self.place.at("requests")).unwrap());
        command
    }
}

#[test]
fn prefetches_are_switched_while_a_server_runs() {
    let tried = Tried::server();
    let alone = |answers: &str| {
        let requests = fs::File::open(tried.place.at("requests")).unwrap();
        tried.place.command("./p").arg(answers).stdin(requests).output().unwrap()
    };
    let seconds = |answers: &str| {
        let begun = std::time::Instant::now();
        alone(answers);
        begun.elapsed().as_secs_f64()
    };
    // It serves for longer than it is tried, on a machine of any pace.
    let serving = (seconds("5000") - seconds("0")).max(0.005);
    let answers = &format!("{:.0}", 5000.0 * (8.0 / serving).clamp(4.0, 400.0));
    let alone = alone(answers);
    let online = ["speed", "--online", "--budget", "4s", "--profile", "profile.json", "-o", "recipe.json"];
    let with = tried.serving(&[&online[..], &["--", "./p", answers]].concat()).output().unwrap();
    let said = text(&with.stderr);
    assert_eq!(with.status.code(), Some(3), "as the program ends: {said}");
    assert!(alone.stdout == with.stdout, "it answers the same: {said}");
    let document: Document<Recipe> = records::read(&tried.place.at("recipe.json")).unwrap();
    let recipe = document.body;
    assert!(said.contains("phases of one run") && recipe.program.counted.is_some(), "{said}");
    let tried_forms = recipe.tried.iter().filter(|one| one.says.contains("answer")).count();
    assert!(tried_forms > 0 && recipe.runs > 10, "{recipe:#?}");
    if recipe.verdict == Verdict::Faster {
        assert!(matches!(recipe.settings[..], [Setting::Prefetch(_)]), "{recipe:#?}");
    }
}

#[test]
fn what_gleaner_run_started_is_switched_by_its_number() {
    use std::process::Stdio;
    let tried = Tried::server();
    let online = ["speed", "--online", "--budget", "3s", "--profile", "profile.json", "-o", "recipe.json"];
    tried.serving(&[&online[..], &["--", "./p", "20000"]].concat()).output().unwrap();
    // A prefetch, whatever this machine says of it.
    let profile: Document<records::profile::Profile> =
        records::read(&tried.place.at("profile.json")).unwrap();
    let load = profile.body.loads.iter().find(|load| load.function.as_deref() == Some("answer")).unwrap();
    let mut document: Document<Recipe> = records::read(&tried.place.at("recipe.json")).unwrap();
    document.body.settings = vec![Setting::Prefetch(records::recipe::PrefetchedLoad {
        file: document.body.program.file.clone(),
        address: load.address,
        function: None,
        ahead: records::recipe::Ahead::Steps(16),
    })];
    document.body.verdict = Verdict::Faster;
    fs::write(tried.place.at("recipe.json"), document.to_json()).unwrap();
    let mut server = tried.serving(&["run", "--recipe", "recipe.json", "--", "./p", "2000000000"]);
    let mut server = server.stdout(Stdio::null()).spawn().unwrap();
    let process = server.id().to_string();
    // It writes the file that it executes first.
    let is_there =
        || fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe.ends_with("rewritten-0/p"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_there() && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let by_number = tried.gleaner(&["speed", "--pid", &process, "--budget", "4s"]);
    let said = text(&by_number.stderr);
    let still_runs = server.try_wait().unwrap().is_none();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(still_runs && matches!(by_number.status.code(), Some(0 | 5)), "{said}");
    assert!(said.contains("phases of one run") && said.contains("in this process"), "{said}");
    let other = tried.gleaner(&["speed", "--pid", &std::process::id().to_string()]);
    let said = text(&other.stderr);
    assert!(other.status.code() == Some(2) && said.contains("gleaner run did not start it"), "{said}");
}

#[test]
fn online_needs_a_profile_and_a_prefetch() {
    let tried = Tried::of("int main(void) { volatile long n = 0; while (n < 300000000) n++; return 0; }");
    let refused = tried.gleaner(&["speed", "--online", "--", "./p"]);
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("no profile of it"));
    tried.gleaner(&["profile", "-q", "--", "./p"]);
    let refused = tried.gleaner(&["speed", "--online", "--", "./p"]);
    let said = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("no prefetch to switch"), "{said}");
}
