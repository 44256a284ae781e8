#!/usr/bin/env bash
# The same quick run alone, beside a neighbour that hammers memory on the same CPU, and beside one
# on another CPU: the grade must fall, and no figure may silently leave the interval that it has
# alone. `~` marks a figure that was taken while other tasks ran.
set -euo pipefail
. "$(dirname "$0")/common.sh"
hammer=$(peer hammer)

cpus=($(awk '/^Cpus_allowed_list/ { n = split($2, part, /[,-]/); print part[n]; if (n > 1) print part[1] }' /proc/self/status))
{
    echo "| neighbour | levels, cycles [95%] | grade and why |"
    echo "|---|---|---|"
    for where in none "${cpus[@]}"; do
        victim=
        if [ "$where" != none ]; then
            "$hammer" 268435456 "$where" &
            victim=$!
        fi
        "$gleaner" measure latency --quick --cpu "${cpus[0]}" -q >"$work/text" || true
        [ -n "$victim" ] && { kill $victim; wait $victim 2>/dev/null || true; }
        levels=$(awk '/^  (L[0-9]|DRAM)  / { gsub(/  +/, ";"); n = split($0, f, ";"); printf "%s %s<br>", f[2], f[5] }' "$work/text")
        grade=$(awk '/^Grade/ { g = 1; printf "%s", $0; next } g { printf "<br>%s", $0 }' "$work/text")
        [ "$where" = none ] || where="CPU $where"
        echo "| $where | $levels | $grade |"
    done
} | keep hammer.md
