//! The programs and libraries of this system can be rewritten, nearly all of their functions. That programs do the same
//! rewritten is tested by the command's tests, over `programs/rewriter/`.

use gleaner_twin::{Mode, rewrite};

#[test]
#[ignore = "takes minutes: every ELF file in the system's folders"]
fn every_file_of_the_system() {
    let (mut files, mut functions, mut twinned) = (0, 0, 0);
    for folder in ["/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu"] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(data) = std::fs::read(&path) else { continue };
            if !path.is_file() || path.is_symlink() || !data.starts_with(b"\x7fELF") {
                continue;
            }
            match rewrite(&data, None, Mode::Identity) {
                Ok(rewritten) => {
                    files += 1;
                    functions += rewritten.coverage.functions_with_unwind_entry;
                    twinned += rewritten.coverage.functions_twinned;
                }
                Err(
                    gleaner_twin::TwinError::NoUnwindTable
                    | gleaner_twin::TwinError::ForeignRuntime(_)
                    | gleaner_twin::TwinError::Image(
                        image::ImageError::Not64Bit
                        | image::ImageError::NotLoadable(_)
                        | image::ImageError::WrongMachine(_),
                    ),
                ) => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }
    println!("{files} files, {twinned} of {functions} functions");
    assert!(twinned * 100 >= functions * 99);
}
