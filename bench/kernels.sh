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
            printf '%s\t%s\t%s\t%s\t%s\n' "$count" "$name" "$first" "$siblings" "$last" >>"$raw"
        done
    done
done

{
    echo "| kernel | threads, one CPU | plain, s | siblings, s | speed of siblings, plain 1 |"
    echo "|---|--:|--:|--:|--:|"
    for count in "${counts[@]}"; do
        for name in bfs cc bc pr; do
            awk -v count="$count" -v name="$name" '
                function sort(list, size,    i, j, t) {
                    for (i = 2; i <= size; i++)
                        for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
                }
                function cell(list, size) {
                    sort(list, size)
                    return sprintf("%.3f [%.3f, %.3f]", list[int((size + 1) / 2)], list[1], list[size])
                }
                $1 == count && $2 == name { n++; plain[n] = ($3 + $5) / 2; siblings[n] = $4; ratio[n] = plain[n] / $4 }
                END { printf "| %s | %d | %s | %s | %s |\n", name, count, cell(plain, n), cell(siblings, n), cell(ratio, n) }' "$raw"
        done
    done
    echo
    echo "$nodes nodes with 16 neighbours each. Medians of $rounds rounds [least, greatest]; plain is the mean of a run before and one behind."
} | keep kernels.md
