//! Programs that run as another user than the one who starts them: the kernel ends the events of
//! such a program when it is executed, unless root samples it.

use crate::request::{Request, Subject};
use records::run::Refused;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Why there are no samples, if that is it.
pub(super) fn refusal(request: &Request, samples: u64) -> Option<Refused> {
    const SET_ID: u32 = 0o6000;
    let Subject::Command(words) = &request.subject else { return None };
    if samples > 0 || rustix::process::geteuid().is_root() {
        return None;
    }
    let name = PathBuf::from(words.first()?);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = if name.components().count() > 1 {
        vec![name.clone()]
    } else {
        std::env::split_paths(&path).map(|place| place.join(&name)).collect()
    };
    let file = places.into_iter().find(|place| place.is_file())?;
    let is_set = std::fs::metadata(&file).is_ok_and(|file| file.mode() & SET_ID != 0);
    is_set.then(|| Refused {
        what: "samples".to_owned(),
        why: format!("{} runs as another user (set-user-ID), whom only root may sample", file.display()),
        would_help: Some("profile it as root".to_owned()),
    })
}
