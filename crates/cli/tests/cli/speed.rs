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
    let recipe = tried.recipe(&["--budget", "90s", "--", "./p", "3000000"]);
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
