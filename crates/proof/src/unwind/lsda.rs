//! Exception tables (LSDAs): what the personality routine finds for a return address.

use crate::container::read::Reader;

/// What happens to an exception at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// 0: none.
    pub(crate) pad: u64,
    pub(crate) action: u64,
}

/// One exception table, its call sites read, its other tables as bytes.
pub(crate) struct Lsda<'d> {
    pub(crate) sites: Vec<Site>,
    bytes: &'d [u8],
    address: u64,
    actions: usize,
    types: Option<(u8, usize)>,
}

impl<'d> Lsda<'d> {
    /// Reads the table at `address` (whose bytes, and all behind them, are given) of code that
    /// starts at `start` and has `size` bytes.
    pub(crate) fn read(bytes: &'d [u8], address: u64, start: u64, size: u64) -> Result<Self, &'static str> {
        let malformed = "a malformed exception table";
        let mut reader = Reader::new(bytes, 0);
        let mut pad_base = start;
        let encoding = reader.byte().ok_or(malformed)?;
        if encoding != 0xff {
            pad_base = reader.pointer(encoding, address).ok_or(malformed)?;
        }
        let encoding = reader.byte().ok_or(malformed)?;
        let mut types = None;
        if encoding != 0xff {
            let distance = reader.uleb().ok_or(malformed)?;
            types = Some((encoding, reader.at.checked_add(distance as usize).ok_or(malformed)?));
        }
        let encoding = reader.byte().ok_or(malformed)?;
        let length = reader.uleb().ok_or(malformed)? as usize;
        let actions = reader.at.checked_add(length).filter(|&end| end <= bytes.len()).ok_or(malformed)?;
        let mut sites: Vec<Site> = Vec::new();
        let mut empty = 0;
        while reader.at < actions {
            let mut number = || reader.pointer(encoding & 0x0f, 0);
            let (Some(from), Some(length), Some(pad)) = (number(), number(), number()) else {
                return Err(malformed);
            };
            let action = reader.uleb().ok_or(malformed)?;
            let end = from.checked_add(length).ok_or(malformed)?;
            if sites.last().is_some_and(|last| from < last.end) {
                return Err("call sites out of order");
            }
            let pad = if pad == 0 { 0 } else { pad_base.wrapping_add(pad) };
            // Sites without length say nothing, and there may be no more others than bytes of code.
            if length > 0 {
                if from >= size {
                    return Err("a call site outside its code");
                }
                sites.push(Site { start: from, end, pad, action });
            } else {
                empty += 1;
                if empty > size + 64 {
                    return Err("more empty call sites than there is code");
                }
            }
        }
        if reader.at != actions {
            return Err(malformed);
        }
        Ok(Self { sites, bytes, address, actions, types })
    }

    /// How many bytes the table takes at least: to see whether a relocation lies in it.
    pub(crate) fn span(&self) -> u64 {
        self.types.map_or(self.actions, |(_, end)| end.max(self.actions)) as u64
    }

    /// Whether an action does the same in both tables: its filters, their types, their order.
    pub(crate) fn same_action(&self, other: &Self, action: u64) -> bool {
        if action == 0 {
            return true;
        }
        let begin = |table: &Self| table.actions.checked_add(action as usize - 1);
        let (Some(mut mine), Some(mut its)) = (begin(self), begin(other)) else { return false };
        // Chains only lead backwards in practice; one that leads in a circle is as good as none.
        for _ in 0..=256 {
            let (Some(a), Some(b)) = (self.record(mine), other.record(its)) else { return false };
            if a.0 != b.0 || !self.same_filter(other, a.0) || a.1.is_none() != b.1.is_none() {
                return false;
            }
            match (a.1, b.1) {
                (Some(a), Some(b)) => (mine, its) = (a, b),
                _ => return true,
            }
        }
        false
    }

    /// An action record: its filter, and where the next one is.
    fn record(&self, at: usize) -> Option<(i64, Option<usize>)> {
        let mut reader = Reader::new(self.bytes, at);
        let filter = reader.sleb()?;
        let place = reader.at;
        let next = reader.sleb()?;
        if next == 0 {
            return Some((filter, None));
        }
        Some((filter, Some(place.checked_add_signed(next as isize)?)))
    }

    fn same_filter(&self, other: &Self, filter: i64) -> bool {
        if filter == 0 {
            return true;
        }
        if filter > 0 {
            return self.catches(filter as u64).is_some_and(|to| Some(to) == other.catches(filter as u64));
        }
        // An exception specification: a list of types that may pass.
        let list = |table: &Self| table.types?.1.checked_add((-(filter + 1)) as usize);
        let (Some(mine), Some(its)) = (list(self), list(other)) else { return false };
        let (mut a, mut b) = (Reader::new(self.bytes, mine), Reader::new(other.bytes, its));
        for _ in 0..=256 {
            match (a.uleb(), b.uleb()) {
                (Some(0), Some(0)) => return true,
                (Some(a), Some(b))
                    if a == b && self.catches(a).is_some_and(|to| Some(to) == other.catches(b)) => {}
                _ => return false,
            }
        }
        false
    }

    /// The type of an index, counted backwards from the end of the types: whether it is looked up,
    /// and where it is.
    fn catches(&self, index: u64) -> Option<(u8, u64)> {
        let (encoding, end) = self.types?;
        let size = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => 8,
            0x02 | 0x0a => 2,
            0x03 | 0x0b => 4,
            _ => return None,
        };
        let at = end.checked_sub(usize::try_from(index).ok()?.checked_mul(size)?)?;
        let to = Reader::new(self.bytes, at).pointer(encoding & 0x7f, self.address)?;
        Some((encoding & 0x80, to))
    }
}

/// Goes along call sites in the order of addresses.
pub(crate) struct Sites<'l> {
    rest: &'l [Site],
}

impl<'l> Sites<'l> {
    pub(crate) fn new(sites: &'l [Site]) -> Self {
        Self { rest: sites }
    }
    /// The site that holds an offset; offsets must not fall.
    pub(crate) fn at(&mut self, offset: u64) -> Option<&'l Site> {
        while self.rest.first().is_some_and(|site| site.end <= offset) {
            self.rest = &self.rest[1..];
        }
        self.rest.first().filter(|site| site.start <= offset)
    }
}
