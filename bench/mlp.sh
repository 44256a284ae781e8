#!/usr/bin/env bash
# How many misses overlap, by Gleaner and by a plain program, in the same area and within the same
# minute: the largest number of independent accesses that take less time than two in sequence, of
# which the second depends on the first.
set -euo pipefail
. "$(dirname "$0")/common.sh"
mlp=$(peer mlp)
cpu=${CPU:-0}
{
    echo "| round | Gleaner [95%] | plain, by means | by medians | Gleaner, no page walks [95%] | plain, by means | by medians |"
    echo "|---|---|---|---|---|---|---|"
    for round in 1 2 3 4 5; do
        "$gleaner" measure mlp --quick --cpu "$cpu" -q -o "$work/mlp.json" >/dev/null
        kind=.experiments.mlp.result.kinds[0]
        found() { "$gleaner" show "$work/mlp.json" "$kind.$1" | sed 's, measured.*,,'; }
        bytes=$("$gleaner" show --json "$work/mlp.json" "$kind.area")
        # The two in sequence come last, as N = 0.
        largest() { awk -v c="$1" '{ t[$1] = $c } END { for (n = 2; n <= 32 && t[n] < t[0]; n++); print n - 1 }'; }
        "$mlp" "$bytes" "$cpu" 3000 >"$work/raw"
        "$mlp" "$bytes" "$cpu" 3000 touch >"$work/touched"
        echo "| $round | $(found effective) | $(largest 3 <"$work/raw") | $(largest 2 <"$work/raw") |" \
            "$(found translated.effective) | $(largest 3 <"$work/touched") | $(largest 2 <"$work/touched") |"
    done
} | keep mlp.md
