//! The rings of a run: one for each CPU, with the events of its threads.

use super::open::{Clock, cpus, open, write_into};
use super::ring::Ring;
use crate::request::SampleError;
use std::io;

/// A ring for each CPU, and in it the events of all these threads.
pub(crate) fn rings(threads: &[u32], clock: Clock) -> Result<Vec<Ring>, SampleError> {
    let mut rings = Vec::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for cpu in cpus() {
        let mut ring: Option<Ring> = None;
        for &thread in threads {
            let event = match open(clock, thread, cpu) {
                Ok(event) => event,
                // Threads end at any time, and CPUs that are offline have no events.
                Err(e) if matches!(e.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {
                    last = e;
                    continue;
                }
                Err(e) if e.raw_os_error() == Some(libc::EMFILE) => {
                    return Err(SampleError::TooManyFiles { pid: threads[0], threads: threads.len() });
                }
                Err(e) => return Err(SampleError::NotAllowed { why: records::plain(&e) }),
            };
            let no_ring = |e: io::Error| SampleError::NoRing { why: records::plain(&e) };
            match &mut ring {
                None => ring = Some(Ring::of(event, clock.holds).map_err(no_ring)?),
                Some(ring) => {
                    write_into(&event, ring.event()).map_err(no_ring)?;
                    ring.keep(event);
                }
            }
        }
        rings.extend(ring);
    }
    if rings.is_empty() { Err(SampleError::NotAllowed { why: records::plain(&last) }) } else { Ok(rings) }
}
