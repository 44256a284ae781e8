//! The files that take part, as they are read and analysed.

use super::error::SessionError;
use super::modules::without_path;
use super::participants::{LeftAlone, Participants};
use crate::find::candidates::{in_module, look_through};
use crate::find::checksums::Checksums;
use crate::find::names;
use crate::plan::Subject;
use crate::rewrite;
use image::{Image, ImageError};
use rayon::prelude::*;
use records::plan::Role;
use std::path::{Path, PathBuf};
use twin::{Rewriter, TwinError};

/// A file that takes part, as it was read.
pub(super) struct InputFile {
    pub(super) path: PathBuf,
    pub(super) role: Role,
    pub(super) is_library: bool,
    /// It may be left as it is for now.
    pub(super) can_wait: bool,
    data: Vec<u8>,
    /// Its separate debug information.
    debug: Option<Vec<u8>>,
    pub(super) checksums: Checksums,
}

/// The files of all participants, each role's once.
pub(super) fn read(participants: &Participants) -> Result<Vec<InputFile>, SessionError> {
    let files = participants.files().into_par_iter();
    files.map(|(file, role)| InputFile::of(file, role, participants)).collect()
}

impl InputFile {
    fn of(file: &Path, role: Role, participants: &Participants) -> Result<Self, SessionError> {
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let data = std::fs::read(&path).map_err(|e| SessionError::Unreadable {
            path: path.display().to_string(),
            why: records::plain(&e),
        })?;
        let separate = Image::parse(&data).ok().and_then(|image| names::separate(image.build_id()?));
        let debug = separate.and_then(|path| std::fs::read(path).ok());
        let is_library = participants.is_library(file);
        let can_wait = is_library && role == Role::Scavenger && !participants.always_calls(file);
        let checksums = Checksums::of(&data, debug.as_deref());
        Ok(Self { path, role, is_library, can_wait, data, debug, checksums })
    }

    pub(super) fn size(&self) -> u64 {
        self.data.len() as u64
    }

    /// Of its segments of code.
    pub(super) fn code_bytes(&self) -> u64 {
        let image = Image::parse(&self.data).ok();
        let segments = image.iter().flat_map(Image::loads);
        segments.filter(|load| load.is_executable()).map(|load| load.file_size).sum()
    }

    /// Its contents, and those of its separate debug information.
    pub(super) fn contents(&self) -> (&[u8], Option<&[u8]>) {
        (&self.data, self.debug.as_deref())
    }

    pub(super) fn left_alone(&self, why: &SessionError) -> LeftAlone {
        LeftAlone::new(&self.path, &without_path(why, &self.path))
    }

    /// Analysed by a rewriter, which is left in `left`. But no rewriter reads separate debug
    /// information.
    pub(super) fn analysed<'f>(
        &'f self,
        path: &str,
        left: &mut Option<Rewriter<'f>>,
    ) -> Result<Subject, SessionError> {
        let unreadable =
            |e: ImageError| SessionError::Unreadable { path: path.to_owned(), why: e.to_string() };
        if self.debug.is_some() {
            return look_through(path, self.role, &self.data, self.debug.as_deref()).map_err(unreadable);
        }
        let refused = |why: TwinError| match why {
            TwinError::Image(why) => unreadable(why),
            why => rewrite::refused(&self.path, &why).into(),
        };
        let sites = rewrite::no_sites();
        let mut rewriter = Rewriter::of(&self.data, None).map_err(refused)?;
        let (module, liveness) = rewriter.live(rewrite::mode(self.role, 0, &sites)).map_err(refused)?;
        let liveness = liveness.expect("there is some for roles");
        let subject = in_module(path, self.role, &self.data, module, liveness);
        *left = Some(rewriter);
        Ok(subject)
    }
}
