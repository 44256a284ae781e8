//! Which planned module is a file's, and what is said of a file beside its name.

use super::error::SessionError;
use records::plan::{Plan, PlannedModule, Role};
use std::path::Path;

pub(super) fn module_of<'p>(
    plan: &'p Plan,
    file: &Path,
    role: Role,
) -> Result<&'p PlannedModule, SessionError> {
    plan.modules.iter().find(|module| is_of(module, file, role)).ok_or_else(|| {
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        SessionError::NotPlanned { path: path.display().to_string(), role }
    })
}

pub(super) fn is_of(module: &PlannedModule, file: &Path, role: Role) -> bool {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    module.role == role && records::path_of(&module.path) == path
}

/// What went wrong with a file that is named beside it.
pub(super) fn without_path(why: &SessionError, path: &Path) -> String {
    let text = why.to_string();
    text.strip_prefix(&format!("{}: ", path.display())).map_or(text.clone(), str::to_owned)
}

/// Whether a library has to be rewritten: a primary's that has no yield is as good as it is.
pub(super) fn needs_copy(module: &PlannedModule) -> bool {
    module.role != Role::Primary || has_yields(module)
}

/// Whether guests may run in this module's stalls.
pub(super) fn has_yields(module: &PlannedModule) -> bool {
    !module.sites.is_empty()
}
