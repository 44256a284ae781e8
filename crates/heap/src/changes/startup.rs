//! The constructor: it maps the shared page and begins what is asked for there. Without the page
//! the program runs as it would.

use super::layout::{VARIABLE, count, done};
use super::{blocks, code, page, pages, placement};
use crate::environment;
use crate::next;

extern "C" fn constructor(_argc: i32, _argv: *mut *mut u8, passed: *mut *mut u8) {
    // Now, before there are several threads.
    next::next(next::MALLOC);
    let Some((Some(path), _)) = environment::find(VARIABLE, passed) else { return };
    let Some(page) = page::open(path) else { return };
    count(page, done::PROCESSES);
    placement::begin(page);
    blocks::begin(page);
    pages::begin(page);
    code::begin(page);
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(i32, *mut *mut u8, *mut *mut u8) = constructor;
