//! The library that changes how a program gets its memory, brought into the program.

use crate::page::{Expected, Page};
use crate::prepared::Prepared;
use heap::changes::layout::{Asked, VARIABLE};
use heap::library::CHANGES;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// What a run needs for the library to do what is asked.
pub(crate) fn prepare(asked: &Asked, expected: Expected, says: String) -> Result<Prepared, String> {
    let files = records::temporary_directory("gleaner-").map_err(|e| records::plain(&e))?;
    // The program may run as another user.
    fs::set_permissions(files.path(), PermissionsExt::from_mode(0o711)).map_err(|e| records::plain(&e))?;
    let (library, path) = (files.path().join("libgleaner-changes.so"), files.path().join("page"));
    let page: Vec<u8> = asked.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    let write = || {
        fs::write(&library, CHANGES)?;
        fs::set_permissions(&library, PermissionsExt::from_mode(0o755))?;
        fs::write(&path, page)
    };
    write().map_err(|e| {
        format!("{}: the library was not written: {}", files.path().display(), records::plain(&e))
    })?;
    let mut prepared = Prepared { says, ..Prepared::default() };
    // In front of other libraries: one of them may be an allocator, to which ours passes on.
    prepared.in_front("LD_PRELOAD", library.as_os_str());
    prepared.environment.push((VARIABLE.into(), path.clone().into()));
    // Else a program built with this sanitizer ends at once, since a library comes before it.
    prepared.behind("ASAN_OPTIONS", "verify_asan_link_order=0".as_ref());
    prepared.page = Some(Page::new(path, expected));
    prepared.files = Some(files);
    Ok(prepared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Program;

    fn run(words: &[&str], prepared: &Prepared) {
        let program = Program { command: words.iter().map(Into::into).collect() };
        assert_eq!(program.run(prepared).unwrap().failed, None);
    }

    #[test]
    fn what_the_library_did_is_known() {
        let asked = Asked { huge_up_to: 1 << 30, ..Asked::default() };
        let prepared = prepare(&asked, Expected::Mapped, String::new()).unwrap();
        let page = prepared.page.as_ref().unwrap();
        assert!(page.did_nothing().unwrap().contains("linked statically"), "it has not run");
        run(&["true"], &prepared);
        assert!(page.did_nothing().unwrap().contains("maps no memory"));
    }

    #[test]
    fn threads_stay_where_they_are_put() {
        let own = lab::pin::allowed().unwrap();
        let mut cpus = [0; 16];
        cpus[own[0] / 64] |= 1 << (own[0] % 64);
        let asked = Asked { cpus: Some(cpus), ..Asked::default() };
        let prepared = prepare(&asked, Expected::Placed, String::new()).unwrap();
        let check = format!("grep -q 'Cpus_allowed_list:.{}$' /proc/self/status || kill -9 $$", own[0]);
        run(&["sh", "-c", &check], &prepared);
        assert_eq!(prepared.page.unwrap().did_nothing(), None);
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
        let prepared = prepare(&asked, Expected::Aligned, String::new()).unwrap();
        let mut command = std::process::Command::new(&file);
        command.envs(prepared.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n");
        assert_eq!(prepared.page.unwrap().did_nothing(), None);
    }
}
