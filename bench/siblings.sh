#!/usr/bin/env bash
# Threads of one unmodified program that chase through memory on one CPU: as the kernel runs them,
# one after the other, and as each other's guests; in turn, in one run. The table shows how much
# work they do together.
#   siblings.sh [-o DIR] [THREADS...]     default: 1 2 4 8 12
# Variables: MIB (of each thread), SECONDS_EACH, ROUNDS, CPU.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
counts=("$@")
[ ${#counts[@]} -gt 0 ] || counts=(1 2 4 8 12)
mib=${MIB:-128} seconds=${SECONDS_EACH:-1} rounds=${ROUNDS:-3} cpu=${CPU:-1}
program=$work/threads
cc -O2 -w -pthread -o "$program" "$root/crates/cli/tests/cli/siblings/program.c"

raw=$work/siblings.tsv
: >"$raw"
for round in $(seq "$rounds"); do
    for count in "${counts[@]}"; do
        plain=$(taskset -c "$cpu" "$program" pace "$count" "$mib" "$seconds")
        siblings=$(taskset -c "$cpu" "$gleaner" harvest --siblings -- "$program" pace "$count" "$mib" "$seconds")
        awk -v OFS='\t' -v count="$count" -v plain="$plain" -v siblings="$siblings" \
            'BEGIN { print count, plain / 1e6, siblings / 1e6, siblings / plain }' >>"$raw"
    done
done

{
    echo "| threads, $mib MiB each, one CPU | plain, million steps a second | siblings, million steps a second | siblings / plain |"
    echo "|---|---|---|---|"
    by siblings "$raw" rows -v digits=2
    echo
    echo "Medians of $rounds rounds [least, greatest]; each ratio is taken within a round."
} | keep siblings.md
