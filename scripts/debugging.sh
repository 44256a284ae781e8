#!/usr/bin/env bash
# Debuggers and profilers see twins: gdb breaks in them, steps through them and unwinds through
# them, what it says is programs/debug/expected.txt; perf, by the kernel's own clock, finds the time
# in the twin and its callers by name.
#
#   scripts/debugging.sh [--regenerate]
set -euo pipefail
cd "$(dirname "$0")/.."
gleaner=$(realpath "${GLEANER:-${CARGO_TARGET_DIR:-target}/release/gleaner}")
[ -x "$gleaner" ] || { echo "no $gleaner: run 'make build' first" >&2; exit 2; }
folder=programs/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

verdict() { # NAME ok|FAILED|"skipped: why"
    echo "$1: $2"
    case $2 in ok) passed=$((passed + 1)) ;; FAILED) failed=$((failed + 1)) ;; *) skipped=$((skipped + 1)) ;; esac
}

# Frame pointers, for perf; all else as a program usually is.
gcc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o "$work/target" $folder/target.c
"$gleaner" twin --identity -q -o "$work/twin" "$work/target" >/dev/null

if command -v gdb >/dev/null; then
    env -i PATH="$PATH" LC_ALL=C TERM=dumb HOME="$work" gdb -q -nx -batch -x $folder/commands.gdb "$work/twin" >"$work/gdb" 2>&1 </dev/null || true
    # What the C library is, whether its inner functions have names, and where things lie is no
    # matter here, nor how many instructions a compiler needs.
    sed -i -e '/libthread_db/d' -e '/^#.*_start/d' -e '/^#[0-9]* .*?? () from [^ ]*\/libc\.so/d' -e "s|$work/||g; s/ (process [0-9]*)//; s/ at 0x[0-9a-f]*//; s/ + [0-9]* in/ in/" -e '/^$/d' "$work/gdb"
    uniq "$work/gdb" >"$work/said"
    mv "$work/said" "$work/gdb"
    if [ "${1:-}" = --regenerate ]; then cp "$work/gdb" $folder/expected.txt; fi
    if diff $folder/expected.txt "$work/gdb"; then verdict "gdb in twins" ok; else verdict "gdb in twins" FAILED; fi
else
    verdict "gdb in twins" "skipped: 'gdb' is missing (Debian: apt install gdb)"
fi

# Twins keep the build id of what they were made from, and perf's cache goes by that: one that twins
# of other days are in would not do.
perf() { command perf --buildid-dir "$work/perf" "$@"; }
if command -v perf >/dev/null && perf record -q -e cpu-clock -o "$work/data" true >/dev/null 2>&1; then
    perf record -q -e cpu-clock -F 999 -g -o "$work/data" "$work/twin" long >/dev/null 2>&1
    perf report -i "$work/data" --no-children -g none --sort sym 2>/dev/null | awk '/^ *[0-9.]+%/ { print $1, $NF }' | sed -n 1p >"$work/hot"
    perf script -i "$work/data" -F ip,sym 2>/dev/null | awk 'BEGIN { RS = "" } /spin\.twin/ && /inner\.twin/ && /outer\.twin/ && /main\.twin/ { whole++ } END { print whole + 0, NR }' >"$work/chains"
    read -r whole all <"$work/chains"
    if grep -qE '^([89][0-9]|100)\..*spin\.twin$' "$work/hot" && [ $((whole * 10)) -ge $((all * 8)) ]; then
        verdict "perf in twins" ok
    else
        cat "$work/hot" "$work/chains"
        verdict "perf in twins" FAILED
    fi
else
    verdict "perf in twins" "skipped: 'perf' is missing, or may not sample (Debian: apt install linux-perf; as root)"
fi

outcome=ok
if [ $failed != 0 ]; then outcome=FAILED; fi
echo "test result: $outcome. $passed passed; $failed failed; $skipped skipped"
[ $failed = 0 ]
