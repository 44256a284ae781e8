#!/usr/bin/env bash
# How many pages the translation buffers hold, by Gleaner and by a plain program: where a load begins to cost more.
set -euo pipefail
. "$(dirname "$0")/common.sh"
tlb=$(peer tlb)
cpu=${CPU:-0}
{
    echo "Gleaner, entries of each level [95%] beside the claim:"
    "$gleaner" measure tlb --cpu "$cpu" -q -o "$work/tlb.json" | grep dTLB
    echo
    echo "Plain program, ns a load:"
    echo
    echo "| pages | one visit a lap: best | median | eight visits a lap: best | median |"
    echo "|---|---|---|---|---|"
    paste -d' ' <("$tlb" "$cpu" 1 1792 4352 128) <("$tlb" "$cpu" 8 1792 4352 128) |
        awk '{ printf "| %d | %s | %s | %s | %s |\n", $1, $2, $3, $5, $6 }'
} | keep tlb.md
