//! One run whose samples are loads and stores that the hardware chooses: Intel PEBS, AMD IBS. The
//! program is started and watched as for the clock; samples are read as from a file.

mod pmus;

use crate::method::accesses::ByAccesses;
use crate::request::{Request, SampleError};
use crate::session::run_by;
use lab::stop::Stop;
use records::profile::{Backend, Profile};
use std::path::Path;

/// Where the kernel lists PMUs, under the root of the file system.
const DEVICES: &str = "sys/bus/event_source/devices";

/// Profiles by this hardware.
pub fn run(request: &Request, backend: Backend, root: &Path, stop: Stop) -> Result<Profile, SampleError> {
    let event = pmus::find(&root.join(DEVICES), backend).map_err(|why| SampleError::NoHardware { why })?;
    run_by(&ByAccesses::of(request, event), request, stop)
}
