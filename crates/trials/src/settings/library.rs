//! The library that changes how a program gets its memory, and where its threads run: what it is
//! asked, and the files that it comes with.

use super::own_lines;
use super::page::{Expected, Page};
use super::placed;
use super::prepared::Start;
use heap::changes::layout::{Asked, SITES, VARIABLE};
use heap::library::CHANGES;
use records::recipe::Setting;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the library is asked, and what it must then have done; none where no setting needs it.
fn asked(settings: &[Setting]) -> Option<(Asked, Vec<Expected>)> {
    let (mut asked, mut expected) = (Asked::default(), Vec::new());
    for setting in settings {
        expected.push(match setting {
            Setting::MappedOnHugePages { up_to } => {
                asked.huge_up_to = asked.huge_up_to.max(*up_to);
                Expected::Mapped
            }
            Setting::CodeOnHugePages => {
                asked.moves_code = true;
                Expected::CodeMoved
            }
            Setting::OwnLines { alignment, paths, .. } => {
                let sites = own_lines::sites(paths);
                let room = &mut asked.sites[asked.site_count..];
                let taken = sites.len().min(room.len());
                room[..taken].copy_from_slice(&sites[..taken]);
                asked.site_count = (asked.site_count + taken).min(SITES);
                asked.alignment = asked.alignment.max(*alignment);
                Expected::Aligned
            }
            Setting::OnCpus { cpus, .. } => {
                asked.cpus = Some(placed::mask(cpus));
                Expected::Placed
            }
            Setting::OverNodes { nodes } => {
                asked.nodes = *nodes;
                Expected::Placed
            }
            Setting::Prefetch(_)
            | Setting::WithoutPrefetches { .. }
            | Setting::MallocOnHugePages
            | Setting::Tunable { .. }
            | Setting::Allocator { .. } => continue,
        });
    }
    (!expected.is_empty()).then_some((asked, expected))
}

fn library(directory: &Path) -> PathBuf {
    directory.join("libgleaner-changes.so")
}

fn page_file(directory: &Path) -> PathBuf {
    directory.join("page")
}

/// The library, and the page that asks it.
pub(crate) fn write(settings: &[Setting], directory: &Path) -> Result<(), String> {
    let Some((asked, _)) = asked(settings) else { return Ok(()) };
    written(&asked, directory)
        .map_err(|e| format!("{}: the library was not written: {}", directory.display(), records::plain(&e)))
}

fn written(asked: &Asked, directory: &Path) -> std::io::Result<()> {
    let words: Vec<u8> = asked.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(library(directory), CHANGES)?;
    fs::set_permissions(library(directory), PermissionsExt::from_mode(0o755))?;
    fs::write(page_file(directory), words)
}

/// Where the library says what it has done.
pub(crate) fn page(settings: &[Setting], directory: &Path) -> Option<Page> {
    asked(settings).map(|(_, expected)| Page::new(page_file(directory), expected))
}

pub(crate) fn start(settings: &[Setting], directory: &Path, start: &mut Start) {
    if asked(settings).is_some() {
        started(directory, start);
    }
}

fn started(directory: &Path, start: &mut Start) {
    // In front of other libraries: one of them may be an allocator, to which ours passes on.
    start.in_front("LD_PRELOAD", library(directory).as_os_str());
    start.set(VARIABLE, page_file(directory).into());
    // Else a program built with this sanitizer ends at once, since a library comes before it.
    start.behind("ASAN_OPTIONS", "verify_asan_link_order=0".as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use crate::settings::prepared::Prepared;

    fn prepare(setting: Setting) -> Prepared {
        crate::settings::prepare(&[setting], &Program::default()).unwrap()
    }

    fn run(words: &[&str], prepared: &Prepared) {
        let program = Program { command: words.iter().map(Into::into).collect(), load: None };
        assert_eq!(program.run(&prepared.start).unwrap().failed, None);
    }

    #[test]
    fn what_the_library_did_is_known() {
        let prepared = prepare(Setting::MappedOnHugePages { up_to: 1 << 30 });
        let page = prepared.page.as_ref().unwrap();
        assert!(page.did_nothing().unwrap().contains("linked statically"), "it has not run");
        run(&["true"], &prepared);
        assert!(page.did_nothing().unwrap().contains("maps no memory"));
    }

    #[test]
    fn threads_stay_where_they_are_put() {
        let own = lab::pin::allowed().unwrap();
        let cpus = vec![u32::try_from(own[0]).unwrap()];
        let prepared = prepare(Setting::OnCpus { cpus, says: String::new() });
        let check = format!("grep -q 'Cpus_allowed_list:.{}$' /proc/self/status || kill -9 $$", own[0]);
        run(&["sh", "-c", &check], &prepared);
        assert_eq!(prepared.page.unwrap().did_nothing(), None);
    }

    /// Five megabytes of code: an operation at its begin and at its end, with nothing between.
    const CODE: &str = r#"
#include <stdio.h>
__asm__(".globl far\nfar: lea 1(%rdi), %rax\n.fill 5 << 20, 1, 0x90\nadd $1, %rax\nret\n");
long far(long);
int main(void) { return printf("%ld\n", far(40)) == 3 ? 5 : 6; }
"#;

    #[test]
    fn code_that_was_moved_does_what_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let (source, file) = (folder.path().join("p.c"), folder.path().join("p"));
        fs::write(&source, CODE).unwrap();
        let mut compile = std::process::Command::new("gcc");
        let Ok(done) = compile.args(["-O1", "-o"]).arg(&file).arg(&source).output() else {
            return eprintln!("skipped: there is no gcc");
        };
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let prepared = prepare(Setting::CodeOnHugePages);
        let program = Program { command: vec![file.into()], load: None };
        let output = program.command(&prepared.start).output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()),
            (Some(5), "42\n")
        );
        let nothing = prepared.page.unwrap().did_nothing();
        let thp = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        if thp.contains("[never]") || thp.is_empty() {
            return eprintln!("skipped: no huge pages here: {nothing:?}");
        }
        assert_eq!(nothing, None);
    }

    /// Allocates in every way at calls whose return addresses have names, and checks what it gets.
    const BLOCKS: &str = r#"
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define STUB(name, result, ...) \
    __asm__(".globl at_" #name "\nat_" #name ": sub $8, %rsp\ncall " #name "@PLT\n" \
            ".globl of_" #name "\nof_" #name ": add $8, %rsp\nret\n"); \
    result at_##name(__VA_ARGS__);
STUB(malloc, void *, size_t)
STUB(calloc, void *, size_t, size_t)
STUB(realloc, void *, void *, size_t)
STUB(aligned_alloc, void *, size_t, size_t)
STUB(posix_memalign, int, void **, size_t, size_t)
static int wrong;
static void check(const char *what, void *block, size_t bytes, int has) {
    unsigned char *all = block;
    if (!block || (uintptr_t)block % 128) { printf("%s: %p\n", what, block); wrong = 1; return; }
    if (malloc_usable_size(block) < bytes) { printf("%s: small\n", what); wrong = 1; }
    for (size_t i = 0; has >= 0 && i < bytes; i++) if (all[i] != has) { printf("%s: content\n", what); wrong = 1; return; }
    memset(block, 0x5a, bytes);
}
static int all(void) {
    for (size_t size = 0; size < 5000; size = size * 3 + 1) {
        void *a, *b, *c, *d;
        check("malloc", a = at_malloc(size), size, -1);
        check("calloc", b = at_calloc(3, size), 3 * size, 0);
        if (size) { a = at_realloc(a, 4 * size); check("realloc", a, size, 0x5a); }
        check("aligned_alloc", c = at_aligned_alloc(32, (size + 31) / 32 * 32), size, -1);
        if (at_posix_memalign(&d, 16, size)) wrong = 1;
        check("posix_memalign", d, size, -1);
        if (!at_posix_memalign(&d, 3, size)) { puts("a wrong alignment"); wrong = 1; }
        free(a); free(b); free(c); free(d);
    }
    volatile size_t most = SIZE_MAX;
    if (at_calloc(most / 2, 3) || at_malloc(most) || at_realloc(NULL, most)) wrong = 1;
    return wrong;
}
int main(void) { puts(all() ? "wrong" : "right"); }
"#;

    #[test]
    fn blocks_of_sites_are_aligned_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (source, file) = (folder.path().join("p.c"), folder.path().join("p"));
        fs::write(&source, BLOCKS).unwrap();
        let mut compile = std::process::Command::new("gcc");
        compile.args(["-O1", "-w", "-fno-builtin", "-o"]).arg(&file).arg(&source);
        let Ok(done) = compile.output() else { return eprintln!("skipped: there is no gcc") };
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let data = fs::read(&file).unwrap();
        let image = image::Image::parse(&data).unwrap();
        let symbols = image::elf::symbols::Symbols::of(&image, None);
        let mut asked = Asked { alignment: 128, ..Asked::default() };
        for name in ["of_malloc", "of_calloc", "of_realloc", "of_aligned_alloc", "of_posix_memalign"] {
            let symbol = symbols.all().iter().find(|symbol| symbol.name == name.as_bytes());
            let offset = image.file_offset(symbol.unwrap().address).unwrap().0;
            let call = heap::changes::layout::Call::new(b"p", offset);
            asked.sites[asked.site_count] = heap::changes::layout::Site { inner: call, outer: call };
            asked.site_count += 1;
        }
        let mut start = Start::default();
        written(&asked, folder.path()).unwrap();
        started(folder.path(), &mut start);
        let mut command = std::process::Command::new(&file);
        command.envs(start.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n");
        assert_eq!(Page::new(page_file(folder.path()), vec![Expected::Aligned]).did_nothing(), None);
    }
}
