//! The environment of the process we are preloaded into: what brought us here is taken out again,
//! so that the program sees what it would have seen without us.

use core::ffi::CStr;

/// The value of a variable, if an entry is its assignment.
fn value<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// An environment as the kernel lays it out: pointers to assignments, ended by a null.
#[derive(Clone, Copy)]
pub(crate) struct Environment {
    first: *mut *mut u8,
}

impl Environment {
    /// # Safety
    /// It must point to an environment that may be changed, and that no other code reads now.
    pub(crate) unsafe fn new(first: *mut *mut u8) -> Option<Self> {
        (!first.is_null()).then_some(Self { first })
    }

    fn entry(self, index: usize) -> Option<&'static [u8]> {
        // SAFETY: pointers up to the null, each to a string; `index` never goes beyond the first
        // null, see the callers.
        unsafe {
            let entry = *self.first.add(index);
            (!entry.is_null()).then(|| CStr::from_ptr(entry.cast()).to_bytes())
        }
    }

    fn find(self, name: &str) -> Option<usize> {
        (0..).map_while(|i| Some((i, self.entry(i)?))).find(|(_, e)| value(e, name).is_some()).map(|(i, _)| i)
    }

    /// The value of a variable as a string with its zero.
    pub(crate) fn get(self, name: &str) -> Option<&'static CStr> {
        let bytes = value(self.entry(self.find(name)?)?, name)?;
        // SAFETY: the rest of a string, so the zero follows.
        Some(unsafe { CStr::from_ptr(bytes.as_ptr().cast()) })
    }

    /// Takes a variable out, whichever it is.
    pub(crate) fn remove(self, name: &str) {
        let Some(index) = self.find(name) else { return };
        let mut at = index;
        loop {
            // SAFETY: `at` is at most the index of the null.
            unsafe {
                let next = *self.first.add(at + 1);
                *self.first.add(at) = next;
                if next.is_null() {
                    return;
                }
            }
            at += 1;
        }
    }

    /// Takes the first element out of a list separated by colons; with the last one the variable
    /// goes.
    pub(crate) fn remove_first(self, name: &str, keep_empty: bool) {
        let Some(index) = self.find(name) else { return };
        let Some(list) = self.entry(index).and_then(|entry| value(entry, name)) else { return };
        let Some(colon) = list.iter().position(|byte| *byte == b':') else {
            if !keep_empty {
                self.remove(name);
                return;
            }
            // SAFETY: the string is the process's own and writable; it gets shorter.
            unsafe { list.as_ptr().cast_mut().write(0) };
            return;
        };
        // SAFETY: moves the rest of the string, with its zero, to the front.
        unsafe {
            let start = list.as_ptr().cast_mut();
            core::ptr::copy(start.add(colon + 1), start, list.len() - colon);
        }
    }

    /// Gives a variable its value from before it was made longer; without one it goes.
    pub(crate) fn shorten(self, name: &str, before: Option<&CStr>) {
        let Some(before) = before else { return self.remove(name) };
        let Some(now) = self.find(name).and_then(|at| value(self.entry(at)?, name)) else { return };
        let before = before.to_bytes_with_nul();
        if before.len() <= now.len() + 1 {
            // SAFETY: the string is the process's own and writable, and there is space: it gets no
            // longer.
            unsafe { core::ptr::copy(before.as_ptr(), now.as_ptr().cast_mut(), before.len()) };
        }
    }

    /// Leaves of variables whose names begin so what stands behind the sign.
    pub(crate) fn unwrap(self, prefix: &str) {
        for index in 0.. {
            let Some(entry) = self.entry(index) else { return };
            let sign = entry.iter().position(|byte| *byte == b'=');
            if let (true, Some(sign)) = (entry.starts_with(prefix.as_bytes()), sign) {
                // SAFETY: the index of an entry, and the rest of its string.
                unsafe { *self.first.add(index) = (*self.first.add(index)).add(sign + 1) };
            }
        }
    }

    /// Brings the entries into the order of `wanted`, as far as they are the same. Others follow,
    /// as they stood.
    pub(crate) fn reorder(self, wanted: impl Iterator<Item = &'static CStr>) {
        let mut place = 0;
        for text in wanted {
            let same = (place..)
                .map_while(|i| Some((i, self.entry(i)?)))
                .find(|(_, entry)| *entry == text.to_bytes())
                .map(|(i, _)| i);
            let Some(found) = same else { continue };
            // SAFETY: both are indices of entries; they are exchanged by moving those between up by
            // one.
            unsafe {
                let entry = *self.first.add(found);
                for i in (place..found).rev() {
                    *self.first.add(i + 1) = *self.first.add(i);
                }
                *self.first.add(place) = entry;
            }
            place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of an environment.
    fn after(entries: &[&str], change: impl FnOnce(Environment)) -> Vec<String> {
        let mut strings: Vec<Vec<u8>> =
            entries.iter().map(|e| e.bytes().chain([0]).collect::<Vec<u8>>()).collect();
        let mut pointers: Vec<*mut u8> = strings.iter_mut().map(Vec::as_mut_ptr).collect();
        pointers.push(core::ptr::null_mut());
        // SAFETY: an environment of our own.
        change(unsafe { Environment::new(pointers.as_mut_ptr()) }.unwrap());
        let left = pointers.iter().take_while(|p| !p.is_null());
        // SAFETY: the strings above.
        left.map(|p| unsafe { CStr::from_ptr(p.cast()) }.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_brought_us_is_taken_out() {
        assert_eq!(after(&["A=1", "X=/y", "B=2"], |e| e.remove("X")), ["A=1", "B=2"]);
        assert_eq!(after(&["A=1"], |e| e.remove("X")), ["A=1"]);
        assert_eq!(after(&["L=ours", "B=2"], |e| e.remove_first("L", false)), ["B=2"]);
        assert_eq!(after(&["L=ours", "B=2"], |e| e.remove_first("L", true)), ["L=", "B=2"]);
        assert_eq!(after(&["L=ours:a.so:b.so"], |e| e.remove_first("L", false)), ["L=a.so:b.so"]);
        assert_eq!(after(&["LL=ours:a.so"], |e| e.remove_first("L", false)), ["LL=ours:a.so"]);
    }

    #[test]
    fn what_was_made_longer_is_as_it_was() {
        assert_eq!(after(&["A=1", "L=/u:/o"], |e| e.shorten("L", Some(c"/u"))), ["A=1", "L=/u"]);
        assert_eq!(after(&["L=/o", "A=1"], |e| e.shorten("L", Some(c""))), ["L=", "A=1"]);
        assert_eq!(after(&["L=/o", "A=1"], |e| e.shorten("L", None)), ["A=1"]);
        assert_eq!(after(&["L=/o"], |e| e.shorten("L", Some(c"/longer"))), ["L=/o"]);
    }

    #[test]
    fn what_was_wrapped_is_itself() {
        let entries = ["W_0=A=1", "A=2", "W_1=none", "W_2=", "W", "=W_3=1"];
        assert_eq!(after(&entries, |e| e.unwrap("W_")), ["A=1", "A=2", "none", "", "W", "=W_3=1"]);
    }

    #[test]
    fn the_order_is_as_it_was() {
        let wanted = [c"Z=1", c"gone=1", c"A=2"];
        assert_eq!(after(&["A=2", "N=3", "Z=1"], |e| e.reorder(wanted.into_iter())), ["Z=1", "A=2", "N=3"]);
    }

    #[test]
    fn values_are_found() {
        after(&["AB=1", "A=2"], |e| {
            assert_eq!(e.get("A").unwrap(), c"2");
            assert!(e.get("B").is_none());
        });
    }
}
