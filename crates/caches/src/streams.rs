//! Misses that a prefetcher would have seen coming: the second and all further neighbours of a line
//! in its page, up or down.
//!
//! Processors watch what misses L1, and fetch the lines that come next into L2. Such a miss costs
//! memory's bandwidth and hardly any of its latency.

/// Streams that are followed at a time, the most recent first.
const STREAMS: usize = 32;
/// Lines of a page: streams end with it.
const PAGE_SHIFT: u32 = 6;
/// A stream goes on if the next line is at most this far away.
const STEP: i64 = 2;
/// Steps before it counts as one.
const SURE: u8 = 2;

#[derive(Clone, Copy, Default)]
struct Stream {
    line: u64,
    direction: i64,
    steps: u8,
}

pub(crate) struct Streams {
    streams: [Stream; STREAMS],
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self { streams: [Stream::default(); STREAMS] }
    }

    /// Told of each line that misses L1; whether it was to be expected.
    pub(crate) fn expected(&mut self, line: u64) -> bool {
        let page = line >> PAGE_SHIFT;
        let found = self.streams.iter().position(|stream| stream.line >> PAGE_SHIFT == page);
        let Some(at) = found else {
            self.streams.rotate_right(1);
            self.streams[0] = Stream { line, direction: 0, steps: 0 };
            return false;
        };
        let stream = &mut self.streams[at];
        let step = line as i64 - stream.line as i64;
        let was_sure = stream.steps >= SURE;
        let goes_on = step != 0 && step.abs() <= STEP;
        if goes_on && (stream.steps == 0 || step.signum() == stream.direction) {
            stream.direction = step.signum();
            stream.steps = stream.steps.saturating_add(1);
            stream.line = line;
        } else if step != 0 {
            *stream = Stream { line, direction: 0, steps: 0 };
        }
        let is_expected = was_sure && goes_on && stream.steps > SURE;
        self.streams[..=at].rotate_right(1);
        is_expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_expected_after_some_steps() {
        let mut streams = Streams::new();
        let up: Vec<bool> = (100 * 64..100 * 64 + 6).map(|line| streams.expected(line)).collect();
        assert_eq!(up, [false, false, false, true, true, true]);
        let down: Vec<bool> = (200 * 64..200 * 64 + 6).rev().map(|line| streams.expected(line)).collect();
        assert_eq!(down, [false, false, false, true, true, true]);
    }

    #[test]
    fn what_jumps_is_not() {
        let mut streams = Streams::new();
        let mut random = 1_u64;
        let expected = (0..10_000).filter(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            streams.expected(random >> 40)
        });
        assert!(expected.count() < 10);
    }

    #[test]
    fn several_streams_go_on_side_by_side() {
        let mut streams = Streams::new();
        let mut expected = 0;
        for line in 0..64 {
            for page in 10..26 {
                expected += usize::from(streams.expected(page * 64 + line));
            }
        }
        assert_eq!(expected, 16 * 61);
    }
}
