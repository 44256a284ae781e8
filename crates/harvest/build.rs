//! Builds the runtime, so that it can be a part of the launcher, and the carrier of programs that
//! run together, for the same reason: the runtime room's own source, compiled once more.

fn main() {
    let embed = embed::Embed::new().using("runtime-abi").using("bare-calls");
    // Its constructor runs before all others: theirs may be twins, which need an area.
    embed.library("runtime", "gleaner_runtime", &["-Clink-arg=-Wl,-z,initfirst"]);
    // An ordinary program, which is rewritten like any other: its functions must be found, and its
    // loop have one load.
    let findable = ["-Copt-level=s", "-Cstrip=debuginfo", "-Cforce-unwind-tables=yes"];
    embed.program("runtime/carrier", "gleaner-carrier", &findable);
}
