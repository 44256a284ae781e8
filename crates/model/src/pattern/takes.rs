//! Which accesses take which options.

use super::{Access, Kind};

/// Options that say what one kind of access does, and so hold for no other.
pub(super) const OWN: [&str; 4] = ["work", "instructions", "lines", "zipf"];

/// What an area holds at least one of.
pub(super) fn part(kind: Kind) -> &'static str {
    match kind {
        Kind::Stride { .. } => "step",
        Kind::Window { .. } => "size",
        _ => "node",
    }
}

impl Access {
    /// Why this access does not take one of the options that it has.
    pub(super) fn takes_not(&self) -> Option<&'static str> {
        let (kind, options) = (self.kind, &self.options);
        let drawn = matches!(kind, Kind::Rand | Kind::Rmw);
        let walks = matches!(kind, Kind::Tree { .. } | Kind::Search);
        let loads_alone = drawn || matches!(kind, Kind::Stride { .. });
        if options.mlp.is_some() && !(loads_alone || walks) {
            return Some(match kind {
                Kind::Chase => "the loads of a chase wait for each other: no mlp",
                _ => "how many of these are under way at once is up to the processor: no mlp",
            });
        }
        if options.operation.is_some() && kind != Kind::Seq {
            return Some(
                "op belongs to seq; rmw writes lines at random, a window writes, and the others read",
            );
        }
        if options.instructions.is_some() && !loads_alone {
            return Some(match kind {
                Kind::Seq | Kind::Window { .. } => {
                    "how many of these are under way at once is up to the processor: no instructions"
                }
                _ => "the loads of a chase, tree or search wait for each other: no instructions",
            });
        }
        if options.lines.is_some() && !(drawn || matches!(kind, Kind::Chase | Kind::Tree { .. })) {
            return Some("lines belongs to chase, rand, rmw and tree, which read nodes");
        }
        if options.zipf.is_some() && !drawn {
            return Some("zipf belongs to rand and rmw");
        }
        None
    }
}
