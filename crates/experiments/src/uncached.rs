//! Nodes that no cache holds: what experiments on misses read.

use crate::context::{Context, Refused};
use lab::arena::{PageKind, Placement};
use lab::chain::{self, Layout};
use lab::rigs::NodeSupply;
use units::Bytes;

/// One chain through all lines of an area that no cache holds.
pub(crate) fn uncached_nodes(ctx: &mut Context<'_>, pages: PageKind) -> Result<NodeSupply, Refused> {
    let wanted = (ctx.last_cache().0 * ctx.pick(4, 6, 8)).clamp(64 << 20, 1 << 30);
    let span = wanted.min(ctx.max_memory.0).max(4 << 20);
    let layout = Layout::random(Bytes(span), ctx.line());
    let chain = chain::build(&[layout], pages, &Placement::FirstTouch, &mut ctx.rng)?.remove(0);
    Ok(NodeSupply::of(chain))
}
