#!/usr/bin/env bash
# Memory latency by Gleaner, and by a plain pointer chase of the same size before and after it; five
# rounds. The plain chase differs from run to run since each run gets other memory: the column
# "plain after / before" shows by how much, and no pair can agree better than that.
set -euo pipefail
. "$(dirname "$0")/common.sh"
chase=$(peer chase)
loads=8000000

cpu=$("$gleaner" measure clock --quick --json -q 2>/dev/null | awk -F'[:,]' '/"cpu":/ { gsub(/ /, "", $2); print $2; exit }')
{
    echo "| area | plain before, ns | Gleaner, ns [95%] | plain after, ns | plain after / before | Gleaner / plain |"
    echo "|---|---|---|---|---|---|"
    for round in 1 2 3 4 5; do
        # The area is the largest that Gleaner takes; a first run tells which, later ones repeat it.
        [ "$round" = 1 ] && "$gleaner" measure latency --quick --cpu "$cpu" --csv "$work/csv" -q >/dev/null
        size=$(awk -F, '$1 == "random" && $2 == "read" && $3 == "thp" { s = $4 } END { print s }' "$work/csv/latency.csv")
        before=$("$chase" "$size" $loads "$cpu")
        "$gleaner" measure latency --quick --cpu "$cpu" --csv "$work/csv" -q >/dev/null
        after=$("$chase" "$size" $loads "$cpu")
        awk -F, -v before="$before" -v after="$after" '
            $1 == "random" && $2 == "read" && $3 == "thp" { size = $4; ns = $6; lo = $7; hi = $8 }
            END {
                printf "| %d MiB | %.1f | %.1f [%.1f, %.1f] | %.1f | %.3f | %.3f |\n", size / 1048576, before, ns, lo, hi, after,
                    after / before, 2 * ns / (before + after)
            }' "$work/csv/latency.csv" | tee -a "$work/rounds"
    done
    median() { awk -F'|' -v c="$1" '{ print $c + 0 }' "$work/rounds" | sort -g | sed -n 3p; }
    echo "| median | $(median 3) | $(median 4) | $(median 5) | $(median 6) | $(median 7) |"
} | keep chase.md
