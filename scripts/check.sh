#!/usr/bin/env bash
# The short tests, for each change: formatting, lints, the house rules, all unit tests, each verb
# once. `make test` has the rest. Nothing is installed; what is missing is named.
#
# All of it uses cargo's profile for tests, as `make test` does: what one has built the other uses,
# but for the tables in Parquet, which only `make test` builds.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=()
step() {
    local began=$SECONDS
    echo "== $*"
    "$@" || failed+=("$*")
    echo "   $((SECONDS - began)) s"
}

if cargo fmt --version >/dev/null 2>&1; then step cargo fmt --all --check; else echo "skipped: formatting: no rustfmt"; fi
if cargo clippy --version >/dev/null 2>&1; then
    step cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
else
    echo "skipped: lints: no clippy"
fi
step cargo test --locked --workspace --lib --bins --no-fail-fast --quiet
# By --workspace, so that features are resolved as above and nothing is built anew.
step cargo test --locked --workspace --test tidy --quiet
step cargo test --locked --workspace --test cli --quiet -- smoke:: generated::

for what in "${failed[@]}"; do echo "FAILED: $what"; done
[ "${#failed[@]}" = 0 ]
