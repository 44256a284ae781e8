#!/usr/bin/env bash
# How many pages the translation buffers hold, by Gleaner and by a plain program: where a load
# begins to cost more.
set -euo pipefail
. "$(dirname "$0")/common.sh"
tlb=$(peer tlb)
cpu=${CPU:-0}
{
    echo "Gleaner, entries of each level [95%] beside the claim:"
    echo
    "$gleaner" measure tlb --cpu "$cpu" -q -o "$work/tlb.json" | grep dTLB | sed 's/^/    /'
    echo
    echo "Plain program, eight reads a lap, ns a load:"
    echo
    echo "| pages | cut from huge pages: best | median | as the kernel gives them: best | median |"
    echo "|---|---|---|---|---|"
    paste -d' ' <("$tlb" "$cpu" 8 1792 4352 256 cut) <("$tlb" "$cpu" 8 1792 4352 256) |
        awk '{ printf "| %d | %s | %s | %s | %s |\n", $1, $2, $3, $5, $6 }'
} | keep tlb.md
