//! Builds the runtime, so that it can be a part of the launcher: the runtime room's own source,
//! compiled once more.

fn main() {
    let embed = embed::Embed::new().using("runtime-abi").using("bare-calls");
    // Its constructor runs before all others: theirs may be twins, which need an area.
    embed.library("runtime", "gleaner_runtime", &["-Clink-arg=-Wl,-z,initfirst"]);
}
