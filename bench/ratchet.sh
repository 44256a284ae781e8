#!/usr/bin/env bash
# Compares the release build of the work tree with an older build, in turns, on this machine.
# Prints a table for the commit message; exits with 1 where the new build is worse, or fails.
#   ratchet.sh [--seconds S] [--rows NAME,...] [BASE] [ROUNDS]
# BASE: a commit, or the path of a binary. Default: HEAD if crates/ in the work tree differs from
# it, else HEAD~1. A commit is built once; its binary is kept in target/ratchet.
# ROUNDS: 3 by default; with one there are no intervals, and nothing is judged.
# --seconds: how long each chase is watched (3). --rows: these rows only, by name or by the part
# of the name before its dash; bench/runner/ratchet_rows.py lists them.
# Variables: NEW, the path of a binary to compare in place of the work tree's build.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
git() { command git -C "$root" "$@"; }
usage() { echo "usage: $0 [--seconds S] [--rows NAME,...] [BASE] [ROUNDS]" >&2; exit 2; }

options=() words=()
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --rows) [ $# -gt 1 ] || usage; options+=("$1" "$2"); shift ;;
    -*) usage ;;
    *) words+=("$1") ;;
    esac
    shift
done
[ ${#words[@]} -le 2 ] || usage
base=${words[0]:-} rounds=${words[1]:-3}

changed=$(git status --porcelain -- crates)
if [ -z "$base" ]; then
    if [ -n "$changed" ]; then base=HEAD; else base=HEAD~1; fi
fi

# build COMMIT: its binary as $target/ratchet/COMMIT/gleaner; the rest of its build is removed
build() {
    local kept=$target/ratchet/$1
    [ ! -x "$kept/gleaner" ] || return 0
    echo "building $1" >&2
    rm -rf "$kept"
    git worktree prune
    trap 'git worktree remove --force "$target/ratchet/$commit/source"; rm -rf "$target/ratchet/$commit/build"' EXIT
    git worktree add --quiet --detach "$kept/source" "$1" >&2
    (cd "$kept/source" && CARGO_TARGET_DIR=$kept/build cargo build --release --locked --quiet -p gleaner-cli) >&2
    strip -o "$kept/stripped" "$kept/build/release/gleaner"
    mv "$kept/stripped" "$kept/gleaner"
    git worktree remove --force "$kept/source"
    rm -rf "$kept/build"
    trap - EXIT
}

if [ -f "$base" ]; then
    old=$(realpath "$base") old_name=$(basename "$base")
else
    commit=$(git rev-parse --verify --quiet "$base^{commit}") || { echo "$base: no commit, and no file" >&2; exit 2; }
    build "$commit"
    old=$target/ratchet/$commit/gleaner old_name=$(git log -1 --format='%h (%s)' "$commit")
fi
if [ -n "${NEW:-}" ]; then
    new=$(realpath "$NEW") new_name=$(basename "$NEW")
else
    (cd "$root" && cargo build --release --locked --quiet -p gleaner-cli) >&2
    new=$target/release/gleaner new_name="$(git log -1 --format='%h (%s)')${changed:+ and the changes of the work tree}"
fi

GLEANER=$new PYTHONPATH=$root/bench exec python3 -B -m runner.ratchet "${options[@]}" \
    --rounds "$rounds" --old "$old" --old-name "$old_name" --new-name "$new_name"
