//! In which order a chain reads the units of its span. Pure arithmetic: nothing is stored but a
//! few keys, so that a gigabyte of chain needs no side table.
//!
//! To add an order: a variant, and where it goes in [`Reads::unit`]; it must take `0..n` onto
//! `0..n`, each once.

use crate::rng::{Permutation, Rng};

/// In which order a chain reads its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// One random cycle through all nodes.
    Random,
    /// Random inside windows of this many bytes, window after window in random order: few TLB
    /// misses.
    Windowed(u64),
    /// Ascending.
    Forward,
    /// Descending.
    Backward,
    /// Neighbours in turn inside windows of this many bytes, ascending or descending; window after
    /// window in random order. What a prefetcher learns in one window is of no use in the next.
    Runs { bytes: u64, descending: bool },
    /// Every `units`th node; then again every `units`th from another of the first nodes, until all
    /// are read: a stride that leaves nothing out, however long it is. Laps follow each other at
    /// random, so that what a lap fetched beside its own lines is long gone when it is the next
    /// one's.
    Strided { units: u64, descending: bool },
    /// Every line [`READS_PER_LINE`](super::READS_PER_LINE) times a lap, each time by another
    /// pointer in it, all in one random order: close to drawing lines at random. When a buffer
    /// holds C of n lines' pages, C/n of the reads find theirs whatever it replaces; in a plain
    /// cycle that is a little too long a buffer that replaces the oldest would hold none.
    Rereading,
    /// Ascending streams, each `length` nodes long, a step of each in turn.
    Streams { length: u64 },
}

/// An order over a given number of units.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    order: Order,
    nodes: u64,
    /// Units in a window, for the orders that have windows.
    per_window: u64,
    /// Over all units, or over the windows, or over the laps.
    permutation: Option<Permutation>,
    seed: u64,
}

impl Reads {
    pub(super) fn new(order: &Order, nodes: u64, pitch: u64, rng: &mut Rng) -> Self {
        let per_window = match order {
            Order::Windowed(bytes) | Order::Runs { bytes, .. } => (bytes / pitch).clamp(1, nodes),
            _ => 1,
        };
        let permuted = match order {
            Order::Random | Order::Rereading | Order::Windowed(_) | Order::Runs { .. } => {
                Some((nodes / per_window).max(1))
            }
            Order::Strided { units, .. } => Some((*units).clamp(1, nodes)),
            Order::Forward | Order::Backward | Order::Streams { .. } => None,
        };
        let permutation = permuted.map(|n| Permutation::new(n, rng));
        Self { order: order.clone(), nodes, per_window, permutation, seed: rng.next_u64() }
    }

    /// The unit that is read as the `i`th; of lines read several times, the read.
    pub(super) fn unit(&self, i: u64) -> u64 {
        let n = self.nodes;
        match self.order {
            Order::Random | Order::Rereading => self.permute(i),
            Order::Forward => i,
            Order::Backward => n - 1 - i,
            Order::Windowed(_) => self.in_window(i, |window, inside| {
                // A cheap keyed permutation that differs from window to window.
                let mut rng = Rng::new(self.seed ^ window.wrapping_mul(0x9e37_79b9));
                Permutation::new(self.per_window, &mut rng).at(inside)
            }),
            Order::Runs { descending, .. } => {
                self.in_window(i, |_, inside| if descending { self.per_window - 1 - inside } else { inside })
            }
            Order::Strided { units, descending } => {
                let unit = interleaved(i, n, units.clamp(1, n), |lap| self.permute(lap));
                if descending { n - 1 - unit } else { unit }
            }
            Order::Streams { length } => interleaved(i, n, length.clamp(1, n), |step| step),
        }
    }

    fn in_window(&self, i: u64, place: impl Fn(u64, u64) -> u64) -> u64 {
        let (window, inside) = (i / self.per_window, i % self.per_window);
        if window >= self.nodes / self.per_window {
            return i;
        }
        let window = self.permute(window);
        window * self.per_window + place(window, inside)
    }

    fn permute(&self, i: u64) -> u64 {
        self.permutation.as_ref().map_or(i, |p| p.at(i))
    }
}

/// Units `apart` from each other in turn, beginning where `first` says for each lap. What is left
/// over at the end of the span comes last.
fn interleaved(i: u64, n: u64, apart: u64, first: impl Fn(u64) -> u64) -> u64 {
    let steps = n / apart;
    if i < steps * apart { i % steps * apart + first(i / steps) } else { i }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_by(order: &Order, nodes: u64, pitch: u64) -> Vec<u64> {
        let reads = Reads::new(order, nodes, pitch, &mut Rng::new(3));
        (0..nodes).map(|i| reads.unit(i)).collect()
    }

    #[test]
    fn every_order_reads_everything_once() {
        let mut orders = vec![
            Order::Random,
            Order::Forward,
            Order::Backward,
            Order::Windowed(512),
            Order::Windowed(1 << 20),
        ];
        for descending in [false, true] {
            orders.extend([64, 128, 448, 4096].map(|bytes| Order::Runs { bytes, descending }));
            orders.extend([1, 2, 7, 50, 1000].map(|units| Order::Strided { units, descending }));
            orders.extend([1, 2, 7, 50, 1000].map(|length| Order::Streams { length }));
        }
        for order in &orders {
            for nodes in [1, 2, 3, 63, 64, 100, 1001] {
                let mut units = read_by(order, nodes, 64);
                units.sort_unstable();
                assert!(units.into_iter().eq(0..nodes), "{order:?} over {nodes}");
            }
        }
    }

    #[test]
    fn runs_run() {
        let units = read_by(&Order::Runs { bytes: 256, descending: false }, 40, 64);
        assert!(units.chunks(4).all(|run| run.windows(2).all(|w| w[1] == w[0] + 1)), "{units:?}");
        let jumps = units.chunks(4).zip(units.chunks(4).skip(1)).filter(|(a, b)| a[3] + 1 != b[0]).count();
        assert!(jumps > 5, "{units:?}");
        let units = read_by(&Order::Runs { bytes: 256, descending: true }, 40, 64);
        assert!(units.chunks(4).all(|run| run.windows(2).all(|w| w[1] + 1 == w[0])), "{units:?}");
    }

    #[test]
    fn strides_leave_nothing_out() {
        for descending in [false, true] {
            let units = read_by(&Order::Strided { units: 8, descending }, 80, 64);
            let step = if descending { -8 } else { 8 };
            assert!(units.chunks(10).all(|lap| lap.windows(2).all(|w| w[1] as i64 - w[0] as i64 == step)));
            let beside =
                units.chunks(10).zip(units.chunks(10).skip(1)).filter(|(a, b)| a[0].abs_diff(b[0]) == 1);
            assert!(beside.count() < 5, "laps are to be at random: {units:?}");
        }
    }

    #[test]
    fn streams_take_turns() {
        // Three streams of three, and one left over.
        assert_eq!(read_by(&Order::Streams { length: 3 }, 10, 64), [0, 3, 6, 1, 4, 7, 2, 5, 8, 9]);
    }
}
