/// 64-byte lines of each array that one loop of [`Spec::Stream`](crate::Spec::Stream) goes over.
pub const LINES_PER_LOOP: u64 = 4;
