//! Cache lines that several threads use: which of them cost time, why, and what would help.
//!
//! ```text
//! access       one access to data: by which code and thread, when, for how much stall
//! gathered     accesses from samples that were kept
//! together     whether two threads use a line at the same time
//! lines        accesses by line, offset and thread: false sharing, true sharing, or none
//! cost         what the sharing of lines costs
//! farther      lines that other cores hold, too many to show one by one
//! progress     the same by what threads get done
//! one_stack    threads that run on one stack, one after the other
//! first_touch  memory that one thread makes and several use
//! words        what a finding says
//! says         all of it as records and findings
//! sampled      the same of what hardware samples show: lines that other cores had modified
//! sampled_from those samples, with their code and data
//! ```
//!
//! A clock's samples show loads that wait, and read-modify-writes among them. So a line is seen
//! only if a thread waits for it: that is also when it matters. What is read is all in
//! `access::Access`; another source of accesses needs only to make these.

pub(crate) mod access;
mod cost;
mod farther;
mod first_touch;
mod gathered;
mod lines;
mod one_stack;
mod progress;
mod sampled;
pub(crate) mod sampled_from;
mod says;
mod together;
mod words;

pub(crate) use gathered::{By, Gathered};
pub(crate) use one_stack::on_one_stack;
pub(crate) use says::shared;

/// Lines in the record.
const MOST_LINES: usize = 32;
/// Findings of one kind.
const MOST_FINDINGS: usize = 4;
/// Less than this share of the CPU time, or of all latency, is no finding.
const LEAST_SHARE: f64 = 0.01;
