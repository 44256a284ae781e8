#!/usr/bin/env bash
# What yields cost a primary that never meets a guest: its pace as a harvest's primary beside a
# scavenger that sleeps, compared with the original program. Both run at once and work in turns of a
# tenth of a second. A second original beside the first one shows how exact such a comparison is:
# each program's memory lies elsewhere.
#   no-guest.sh [-o DIR] [PROGRAM...]     default: chase scan dfs cc join tree
# Variables: MIB, WINDOW (seconds), ROUNDS, PAIRS (how often all programs start anew), CPU.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(chase scan dfs cc join tree)
mib=${MIB:-64} window=${WINDOW:-0.1} rounds=${ROUNDS:-60} pairs=${PAIRS:-4} cpu=${CPU:-1}
program "${programs[@]}"
turns=$(peer turns)

raw=$work/no-guest.tsv
: >"$raw"
# Sets the fourth word of each progress file, which asks its program to stop.
stop() {
    for file in "$work"/progress.*; do printf '\1\0\0\0\0\0\0\0' | dd of="$file" bs=1 seek=24 conv=notrunc status=none; done
}
# Without this, the last program to start would get fewer huge pages than the first, and be slower
# for that alone. Works as root only.
compacted() { if [ -w /proc/sys/vm/compact_memory ]; then echo 1 >/proc/sys/vm/compact_memory; fi; }
for pair in $(seq "$pairs"); do
    for program in "${programs[@]}"; do
        rm -f "$work"/progress.*
        compacted
        run=("$work/$program" "$mib" 0)
        taskset -c "$cpu" "${run[@]}" "$work/progress.0" >/dev/null &
        taskset -c "$cpu" "$gleaner" harvest -q --scavenger 'sleep 1000' -- "${run[@]}" "$work/progress.1" >/dev/null &
        taskset -c "$cpu" "${run[@]}" "$work/progress.2" >/dev/null &
        "$turns" "$rounds" "$window" "$work"/progress.{0,1,2} >"$work/paces" || { stop; echo "not all programs made progress" >&2; exit 1; }
        sed "s/^/$pair\t$program\t/" "$work/paces" >>"$raw"
        stop
        wait
    done
done
# percent PROGRAM EXPRESSION: of the rounds of that program
percent() { awk -F'\t' -v p="$1" "\$2 == p && \$3 > 0 && \$4 > 0 && \$5 > 0 { print 100 * ($2 - 1) }" "$raw" | ranked %.1f; }
{
    echo "| program, $mib MiB | slower by, % | one original slower than the other by, % |"
    echo "|---|---|---|"
    # shellcheck disable=SC2016 # columns of awk
    for program in "${programs[@]}"; do
        echo "| $program | $(percent "$program" '($3 + $5) / 2 / $4') | $(percent "$program" '$3 / $5') |"
    done
    echo
    echo "Medians [95 %] of the rounds of $pairs starts; the originals count with their mean."
} | keep no-guest.md
