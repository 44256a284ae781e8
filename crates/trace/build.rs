//! Builds the library that hands over traced accesses, so that it can be a part of the profiler:
//! the heap room's source, compiled once more.

fn main() {
    embed::Embed::new().using("bare-calls").library("heap", "gleaner_trace", &["--cfg=traces"]);
}
