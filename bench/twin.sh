#!/usr/bin/env bash
# How long it takes to rewrite large programs, proof included, and how much memory, compared with
# llvm-bolt on the same files: one after the other, several rounds, one ratio from each round. Both
# write a whole new file; bolt also optimises it. Variables: PROGRAMS, ROUNDS.
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-3}
# Without symbols bolt finds functions by unwind tables, as Gleaner does, but only with this option.
stripped=--allow-stripped
bolt=$(command -v llvm-bolt-19 || compgen -c llvm-bolt- | grep -x 'llvm-bolt-[0-9]*' | sort -Vr | head -1 || true)

# timed NAME ROUND COMMAND…: appends "NAME ROUND seconds MiB" to the raw data; no line if the
# command fails
timed() {
    local name=$1 round=$2
    shift 2
    if /usr/bin/time -o "$work/time" -f '%e %M' "$@" >"$work/said" 2>&1; then
        echo "$name $round $(tail -1 "$work/time" | awk '{ printf "%s %.0f", $1, $2 / 1024 }')" >>"$work/raw"
    else
        echo "$name: $(tail -1 "$work/said")" >&2
    fi
}

{
    echo "| program | bytes | Gleaner, s | peak, MiB | $(basename "${bolt:-llvm-bolt (not installed)}"), s | peak, MiB | times faster (pairs) |"
    echo "|---|---|---|---|---|---|---|"
    for program in ${PROGRAMS:-node gdb}; do
        file=$(realpath "$(command -v "$program")") || continue
        : >"$work/raw"
        for round in $(seq "$rounds"); do
            timed gleaner "$round" "$gleaner" twin --identity -q -o "$work/twin" "$file"
            if [ -n "$bolt" ]; then timed bolt "$round" "$bolt" "$stripped" "$file" -o "$work/bolt"; fi
        done
        ratio=$(awk '$1 == "gleaner" { g[$2] = $3 } $1 == "bolt" { b[$2] = $3 } END { for (r in b) print b[r] / g[r] }' "$work/raw" | spread %.1f)
        echo "| $program | $(stat -c %s "$file") | $(column gleaner 3) | $(column gleaner 4) | $(column bolt 3) | $(column bolt 4) | $ratio |"
    done
    echo
    echo "Median of $rounds rounds [least, greatest]: wall time and the process's peak memory, proof included. ${bolt:+$("$bolt" --version | grep -o 'LLVM version.*' | head -1).}"
} | keep twin.md
