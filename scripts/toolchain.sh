#!/usr/bin/env bash
# Says clearly what a build here lacks: a C compiler that can link, cargo, a rustc that is new
# enough.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=0
lacks() {
    echo "gleaner cannot be built here: $1" >&2
    missing=1
}

# Without what it recommends, Debian's compiler comes without a C library to link with.
links() {
    local made status=0
    made=$(mktemp)
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' | cc -x c -o "$made" - 2>/dev/null || status=$?
    rm -f "$made"
    return "$status"
}
if ! command -v cc >/dev/null; then
    lacks "there is no C compiler 'cc' (Debian: apt install gcc libc6-dev)"
elif ! links; then
    lacks "the C compiler 'cc' cannot make a program (Debian: apt install libc6-dev)"
fi
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    lacks "there is no Rust toolchain, $wanted or later (https://rustup.rs)"
else
    # 'rustc 1.88.0 (…)'; the second field, without what follows a dash.
    found=$(rustc --version | cut -d' ' -f2 | cut -d- -f1)
    if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n1)" != "$wanted" ]; then
        lacks "rustc $found is too old; it takes $wanted or later (rustup update, or https://rustup.rs)"
    fi
fi
exit "$missing"
