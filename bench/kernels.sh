#!/usr/bin/env bash
# Kernels on a graph, by threads of OpenMP on one CPU: as the kernel runs them, and as each other's
# guests as long as that pays; in turns, in one run. The table shows how much of its speed each has.
#   kernels.sh [-o DIR] [THREADS...]     default: 1 8
# Variables: NODES, ROUNDS, CPU.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
counts=("$@")
[ ${#counts[@]} -gt 0 ] || counts=(1 8)
nodes=${NODES:-2000000} rounds=${ROUNDS:-5} cpu=${CPU:-1}
program=$work/kernels
gcc -O2 -w -fopenmp -o "$program" "$root/bench/programs/kernels.c"

raw=$work/kernels.tsv
: >"$raw"
for round in $(seq "$rounds"); do
    for count in "${counts[@]}"; do
        export OMP_NUM_THREADS=$count
        for kernel in "bfs 4" "cc 3" "bc 1" "pr 30"; do
            read -r name times <<<"$kernel"
            run=("$program" "$name" "$nodes" 16 "$times")
            # Before and behind, since a machine is not the same from minute to minute.
            first=$(taskset -c "$cpu" "${run[@]}" 2>&1 >"$work/plain")
            siblings=$(taskset -c "$cpu" "$gleaner" harvest -q --siblings -- "${run[@]}" 2>&1 >"$work/siblings")
            last=$(taskset -c "$cpu" "${run[@]}" 2>&1 >/dev/null)
            cmp -s "$work/plain" "$work/siblings" || echo "$name with $count threads: another result" >&2
            awk -v OFS='\t' -v label="$name | $count" -v plain="$first $last" -v siblings="$siblings" \
                'BEGIN { split(plain, runs, " "); mean = (runs[1] + runs[2]) / 2; print label, mean, siblings, mean / siblings }' >>"$raw"
        done
    done
done

{
    echo "| kernel | threads, one CPU | plain, s | siblings, s | speed of siblings, plain 1 |"
    echo "|---|--:|--:|--:|--:|"
    by siblings "$raw" rows -v digits=3
    echo
    echo "$nodes nodes with 16 neighbours each. Medians of $rounds rounds [least, greatest]; plain is the mean of a run before and one behind."
} | keep kernels.md
