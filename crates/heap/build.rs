//! Builds the libraries that are preloaded, so that they can be a part of the profiler: this
//! crate's own source, compiled once more for each.

fn main() {
    let embed = embed::Embed::new().using("bare-calls");
    embed.library("heap", "gleaner_heap", &[]);
    embed.library("heap", "gleaner_changes", &["--cfg=changes"]);
    embed.library("heap", "gleaner_java", &["--cfg=java"]);
}
