//! The tables of values by program counter, as Go encodes them: pairs of varints, the change of the
//! value (zigzag, beginning with -1) and how many bytes it holds for; a zero ends them.

/// How far (an offset in the function, exclusive) a value holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub end: u32,
    pub value: i32,
}

/// A table as runs; `None` if it is none, or goes on beyond `most` bytes of code.
pub fn read(bytes: &[u8], most: u32) -> Option<Vec<Run>> {
    let (mut at, mut runs) = (0, Vec::new());
    let (mut pc, mut value) = (0u32, -1i32);
    loop {
        let change = varint(bytes, &mut at)?;
        if change == 0 && !runs.is_empty() {
            return Some(runs);
        }
        value = value.wrapping_add((change >> 1) as i32 ^ -((change & 1) as i32));
        let by = varint(bytes, &mut at)?;
        if by == 0 {
            return None;
        }
        pc = pc.checked_add(by).filter(|&pc| pc <= most)?;
        runs.push(Run { end: pc, value });
    }
}

/// The value at an offset.
pub fn value_at(runs: &[Run], at: u32) -> Option<i32> {
    runs.get(runs.partition_point(|run| run.end <= at)).map(|run| run.value)
}

/// Appends a table; runs ascend and no two neighbours have one value.
pub fn write(runs: &[Run], out: &mut Vec<u8>) {
    let (mut pc, mut value) = (0, -1i32);
    for run in runs {
        let change = run.value.wrapping_sub(value);
        put_varint(out, (change << 1) as u32 ^ (change >> 31) as u32);
        put_varint(out, run.end - pc);
        (pc, value) = (run.end, run.value);
    }
    out.push(0);
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let mut value = 0u32;
    for position in 0..5 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u32::from(byte & 0x7f).checked_shl(7 * position)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let run = |end, value| Run { end, value };
        for runs in [
            vec![run(1, -1)],
            vec![run(4, 0), run(300, 136), run(70_000, -2), run(70_001, i32::MAX)],
            vec![run(5, -1), run(6, i32::MIN), run(9, 7)],
        ] {
            let mut out = Vec::new();
            write(&runs, &mut out);
            assert_eq!(read(&out, 70_001), Some(runs.clone()));
            assert_eq!(read(&out[..out.len() - 1], 70_001), None, "without its end");
            let end = runs.last().map_or(0, |run| run.end);
            assert_eq!(read(&out, end - 1), None, "beyond its function");
        }
        assert_eq!(value_at(&[run(4, 7), run(6, 8)], 3), Some(7));
        assert_eq!(value_at(&[run(4, 7), run(6, 8)], 4), Some(8));
        assert_eq!(value_at(&[run(4, 7), run(6, 8)], 6), None);
    }
}
