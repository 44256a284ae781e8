#!/usr/bin/env bash
# All tests that this place allows. What is missing is installed if this is Debian and we are root;
# otherwise what cannot be tested is named, with the reason, at the end.
#
# One build serves all: cargo's profile for tests, with the features that packages have. Real
# programs meet its binary too, whose rewriter takes a quarter more CPU time than the release
# build's; the runtime inside is the same file in both, since its build does not depend on the
# profile. The release build is tried by `make test-long` and `make test-harvest`.
#
# To add a need: a line `need`. To add a step: a line `step`.
set -euo pipefail
cd "$(dirname "$0")/.."

skipped=()
failed=()
updated=no
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

there() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# need COMMAND PACKAGE WHAT: WHAT is skipped where COMMAND (or a file, by its whole path) is not
# there and cannot be installed.
need() {
    there "$1" && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        if [ "$updated" = no ]; then apt-get update -qq >/dev/null || true; updated=yes; fi
        echo "installing $2 for: $3"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null || true
        there "$1" && return 0
    fi
    skipped+=("$3: '$1' is missing (Debian: apt install $2, as root)")
    return 1
}

# component NAME WHAT: a part of the Rust toolchain, which rustup can add.
component() {
    cargo "$1" --version >/dev/null 2>&1 && return 0
    if command -v rustup >/dev/null; then
        rustup component add "$2" >/dev/null 2>&1 || true
        cargo "$1" --version >/dev/null 2>&1 && return 0
    fi
    skipped+=("$3: this toolchain has no $2 (rustup component add $2)")
    return 1
}

step() {
    local began=$SECONDS
    echo "== $*"
    "$@" || failed+=("$*")
    echo "   $((SECONDS - began)) s"
}

need g++ g++ "the rewriter's programs in C++" || true
need clang++ clang "the rewriter's programs by clang" || true
need ld.lld lld "link-time optimisation by clang" || true
need csmith csmith "random programs" || true
need /usr/include/csmith/csmith.h libcsmith-dev "random programs" || true
need tmux tmux "gleaner top on a terminal" || true
need debuginfod-find debuginfod "debug information from a server" || true
need git git "leaving files that git ignores out of the tidy test" || true
if need unshare util-linux "what happens on a full disk"; then
    unshare -m true 2>/dev/null || unshare -rm true 2>/dev/null ||
        skipped+=("what happens on a full disk: no mount namespace may be made here (root, or user namespaces, would help)")
fi

need chromium chromium "pages of reports in a real browser" || true

# What reads exports. Packages of npm go below target/, in the versions that were tried.
need go golang-go "exports for pprof, and profiles of programs in Go" || true
need /usr/include/gperftools/profiler.h libgoogle-perftools-dev "profiles of gperftools" || true
need callgrind_annotate valgrind "exports for callgrind's tools" || true
need /usr/lib/llvm-22/bin/llvm-profdata llvm-22 "exports for llvm-profdata" || true
export GLEANER_READERS=${GLEANER_READERS:-$PWD/target/readers}
if need npm npm "exports for the Firefox Profiler and speedscope"; then
    [ -d "$GLEANER_READERS/node_modules/@firefox-devtools/profiler-cli" ] ||
        timeout 300 npm install --prefix "$GLEANER_READERS" --no-audit --no-fund --silent \
            @firefox-devtools/profiler-cli@0.10.0 speedscope@1.25.0 >/dev/null 2>&1 ||
        skipped+=("exports for the Firefox Profiler and speedscope: their packages cannot be had from npm")
fi

# What reads tables, checks a manifest, and reads gauges; and what reads topologies.
need hwloc-info hwloc-nox "exports for hwloc" || true
if need python3 python3 "schemas, tables in DuckDB, gauges, the Kubernetes manifest"; then
    scripts/python-readers.sh "$GLEANER_READERS/python" duckdb==2.0.1 prometheus-client==0.26.0 kubernetes-validate==1.37.0 jsonschema==4.26.0 opentelemetry-proto==1.45.2 ||
        skipped+=("schemas, tables in DuckDB, gauges, the Kubernetes manifest: their packages cannot be had from PyPI (Debian: apt install python3-venv)")
fi

# Of records alone: in the build of all tests schemas would double what there is to compile of them.
schema=gleaner-records/schema

if component fmt rustfmt "formatting"; then step cargo fmt --all --check; fi
if component clippy clippy "lints"; then
    step cargo clippy --locked --workspace --features parquet --all-targets --quiet -- -D warnings
    step cargo clippy --locked --workspace --features $schema --test schemas --quiet -- -D warnings
fi
# What failed is said again at the end, where it is found: the tests' own words stand thousands of
# lines above.
tests() {
    "$@" 2>&1 | tee -a "$work/tests"
}
step cargo test --locked --workspace --features parquet --lib --bins --tests --no-run --quiet
# Tests have limits of their own; this one is for what hangs without any.
step tests timeout --foreground 3000 cargo test --locked --workspace --features parquet --lib --bins --tests \
    --no-fail-fast
step tests cargo test --locked --workspace --features $schema --test schemas
step tests cargo test --locked --workspace --features parquet --doc --quiet

export GLEANER=${CARGO_TARGET_DIR:-target}/debug/gleaner
step scripts/real.sh --quick
step scripts/harvest-real.sh --quick
need gdb gdb "breakpoints and stacks in twins" || true
step scripts/debugging.sh

echo
for what in "${skipped[@]}"; do echo "skipped: $what"; done
if [ -f "$work/tests" ]; then
    awk '/^failures:$/ { on = 1 } /^test result: / { on = 0 } on' "$work/tests" | head -c 20000
fi
for what in "${failed[@]}"; do echo "FAILED: $what"; done
[ "${#failed[@]}" = 0 ]
