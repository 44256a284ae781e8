//! The language-specific data area of a function with exception handling, in the layout that the
//! personalities of C++, C, Rust, Ada, D and Objective-C share (`.gcc_except_table`).

use crate::Image;
use crate::elf::cursor::{Cursor, ENCODED_OMIT, encoded_size};
use units::Svma;

/// A range of code in which calls may throw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    pub start: Svma,
    pub length: u64,
    pub landing_pad: Option<Svma>,
    /// 1 + offset in the action table; 0: clean-up only.
    pub action: u64,
}

/// A function's exception table.
#[derive(Clone, Debug)]
pub struct Lsda<'d> {
    pub call_sites: Vec<CallSite>,
    /// The action records, from the first one to the last that is reachable.
    pub actions: &'d [u8],
    pub type_encoding: u8,
    /// What each type entry points to (before following an indirection), by its number less one.
    pub types: Vec<u64>,
    /// Lists of type numbers for exception specifications, as bytes.
    pub filters: &'d [u8],
}

/// Reads the table at `address` for the piece of code that starts at `start` and has `code` bytes.
/// `None` if anything about it is unusual.
pub fn parse<'d>(image: &Image<'d>, address: Svma, start: Svma, code: u64) -> Option<Lsda<'d>> {
    let bytes = image.bytes_from(address)?;
    let mut cursor = Cursor::new(bytes, 0);
    let pad_base = match cursor.u8()? {
        ENCODED_OMIT => start.0,
        encoding => cursor.encoded(encoding, address.0)?,
    };
    let type_encoding = cursor.u8()?;
    let types_end = if type_encoding == ENCODED_OMIT {
        None
    } else {
        let offset = cursor.uleb()? as usize;
        Some(cursor.position().checked_add(offset)?)
    };
    let site_encoding = cursor.u8()?;
    let size = cursor.uleb()? as usize;
    let actions_at = cursor.position().checked_add(size)?;
    if types_end.unwrap_or(actions_at) < actions_at || bytes.len() < types_end.unwrap_or(actions_at) {
        return None;
    }
    let mut call_sites = Vec::new();
    // No more than there is code for, and some that hold none of it.
    let most = code.saturating_add(64);
    while cursor.position() < actions_at {
        if call_sites.len() as u64 >= most {
            return None;
        }
        let mut field = || cursor.encoded(site_encoding & 0x0f, 0);
        let (begin, length, pad) = (field()?, field()?, field()?);
        let action = cursor.uleb()?;
        call_sites.push(CallSite {
            start: Svma(start.0.checked_add(begin)?),
            length,
            landing_pad: (pad != 0).then(|| Svma(pad_base.wrapping_add(pad))),
            action,
        });
    }
    if cursor.position() != actions_at {
        return None;
    }
    let reach = reach_of_actions(bytes, actions_at, &call_sites)?;
    let (types, filters) = match types_end {
        Some(end) => {
            let filters = filters(bytes, end, reach.filter)?;
            let count = reach.types.max(highest_type(filters)?);
            (types(bytes, address, type_encoding, end, count)?, filters)
        }
        None if reach.types == 0 && reach.filter == 0 => (Vec::new(), &[][..]),
        None => return None,
    };
    Some(Lsda { call_sites, actions: bytes.get(actions_at..reach.end)?, type_encoding, types, filters })
}

struct Reach {
    /// One after the last byte of the last record.
    end: usize,
    /// The highest type number.
    types: u64,
    /// One after the start of the last exception specification; 0 without any.
    filter: usize,
}

/// Follows every chain of action records.
fn reach_of_actions(bytes: &[u8], table: usize, sites: &[CallSite]) -> Option<Reach> {
    let mut reach = Reach { end: table, types: 0, filter: 0 };
    let mut seen = std::collections::HashSet::new();
    for site in sites.iter().filter(|site| site.action != 0) {
        let mut at = table.checked_add(site.action as usize - 1)?;
        while seen.insert(at) {
            let mut cursor = Cursor::new(bytes, at);
            let filter = cursor.sleb()?;
            let next_at = cursor.position();
            let next = cursor.sleb()?;
            reach.end = reach.end.max(cursor.position());
            if filter > 0 {
                reach.types = reach.types.max(filter as u64);
            } else if filter < 0 {
                reach.filter = reach.filter.max(filter.unsigned_abs() as usize);
            }
            if next == 0 {
                break;
            }
            at = next_at.checked_add_signed(next as isize).filter(|&at| at >= table)?;
        }
    }
    Some(reach)
}

fn types(bytes: &[u8], address: Svma, encoding: u8, end: usize, count: u64) -> Option<Vec<u64>> {
    let size = encoded_size(encoding)?;
    (1..=count)
        .map(|number| {
            let at = end.checked_sub((number as usize).checked_mul(size)?)?;
            Cursor::new(bytes, at).encoded(encoding, address.0)
        })
        .collect()
}

fn filters(bytes: &[u8], start: usize, last: usize) -> Option<&[u8]> {
    if last == 0 {
        return Some(&[]);
    }
    let mut cursor = Cursor::new(bytes, start.checked_add(last - 1)?);
    while cursor.uleb()? != 0 {}
    bytes.get(start..cursor.position())
}

/// The highest type number that an exception specification names.
fn highest_type(filters: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(filters, 0);
    let mut highest = 0;
    while !cursor.at_end() {
        highest = highest.max(cursor.uleb()?);
    }
    Some(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// call sites: [0,5) pad 9 action 1; action record (filter 2, end); two absolute 4-byte types.
    const TABLE: [u8; 18] = [0xff, 0x03, 15, 0x01, 4, 0, 5, 9, 1, 2, 0, 0, 0x22, 0x11, 0, 0, 0x44, 0x33];

    #[test]
    fn chains_say_how_far_a_table_reaches() {
        let mut bytes = TABLE.to_vec();
        bytes.extend([0, 0, 0x99]);
        let sites = [CallSite { start: Svma(0), length: 5, landing_pad: Some(Svma(9)), action: 1 }];
        let reach = reach_of_actions(&bytes, 9, &sites).unwrap();
        assert_eq!((reach.end, reach.types, reach.filter), (11, 2, 0));
        assert_eq!(types(&bytes, Svma(0), 0x03, 20, 2), Some(vec![0x3344, 0x1122]));
        assert_eq!(types(&bytes, Svma(0), 0x03, 6, 2), None, "a table that starts before the file");
    }

    #[test]
    fn a_chain_that_runs_in_a_circle_ends() {
        let sites = [CallSite { start: Svma(0), length: 1, landing_pad: None, action: 1 }];
        let circle = [1, 0x7f];
        assert_eq!(reach_of_actions(&circle, 0, &sites).unwrap().end, 2);
    }

    #[test]
    fn specifications_reach_to_their_last_list() {
        let bytes = [1, 0, 3, 0, 7];
        assert_eq!(filters(&bytes, 0, 3), Some(&bytes[..4]));
        assert_eq!(highest_type(&bytes[..4]), Some(3));
        assert_eq!(filters(&[1, 2], 0, 1), None);
    }
}
