//! The profile record on the page: findings first, then where time went, loads, memory over
//! time, calls, code, data.

mod accesses;
mod calls;
pub(crate) mod change;
mod code;
mod lines;
mod loads;
mod summary;
mod system;
mod trace;
mod trials;

use crate::parts::Out;
use crate::text::escape;
use records::profile::Profile;
use records::run::Refused;

pub(crate) fn sections(profile: &Profile, out: &mut Out) {
    summary::findings(profile, out);
    trials::trials(profile, out);
    if profile.sampling.backend.samples_accesses() {
        accesses::levels(profile, out);
        accesses::loads(profile, out);
        lines::lines(profile, out);
        calls::flames(profile, out);
        accesses::functions(profile, out);
        code::code(profile, out);
        accesses::objects(profile, out);
        summary::sampling(profile, out);
        return;
    }
    system::sections(profile, out);
    summary::time(profile, out);
    loads::loads(profile, out);
    lines::lines(profile, out);
    trace::sections(profile, out);
    calls::flames(profile, out);
    loads::functions(profile, out);
    code::code(profile, out);
    loads::objects(profile, out);
    summary::sampling(profile, out);
}

/// What was asked for and not done.
pub(crate) fn refusals(refusals: &[Refused], out: &mut Out) {
    for refused in refusals {
        let help = refused.would_help.as_deref();
        let help = help.map_or_else(String::new, |h| format!(" What would help: {}.", escape(h)));
        out.missing(&format!("{}: {}.{help}", escape(&refused.what), escape(&refused.why)));
    }
}
