#!/usr/bin/env bash
# How far off are predictions? Measures this machine, or takes the record in MACHINE, then times the
# programs in programs/predict, whose cases state their access pattern and measure what they compute
# in the nearest cache, and predicts each of them. The machine is measured before and after the
# programs, for its neighbours change: predictions take both runs.
# The last lines count the cases that are within 10% and within 25%.
# QUICK=1: the machine and each program are measured once and briefly, to see that all of it runs.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cpu=${CPU:-0}
runs=()
# measured NAME: measures the machine, unless there is a record already
measured() {
    [ -z "${MACHINE:-}" ] || return 0
    "$gleaner" measure latency stride windows mlp bandwidth --cpu "$cpu" ${QUICK:+--quick} -q -o "$work/$1" >/dev/null
    runs+=(--machine "$work/$1")
}
[ -z "${MACHINE:-}" ] || runs=(--machine "$MACHINE")
measured before.json
for source in "$root"/bench/programs/predict/*.c; do
    program=$work/$(basename "$source" .c)
    cc -O2 -Wall -Wno-unused-function ${QUICK:+-DROUNDS=1} -o "$program" "$source" -lm
    taskset -c "$cpu" "$program"
done >"$work/measured"
measured after.json
# Value and bounds in milliseconds. The programs' memory has huge pages where they can be had.
predicted() {
    "$gleaner" predict --json -q "${runs[@]}" --if pages=thp "$1" |
        awk -F'[:,]' '/^  "time"/ { inside = 1 }
            inside && /"(value|lo|hi)"/ { gsub(/[ "]/, ""); found[$1] = $2 / 1e6 }
            inside && /}/ { print found["value"], found["lo"], found["hi"]; exit }'
}
while IFS=$'\t' read -r name median least most pattern; do
    value='' lo='' hi=''
    # What this record cannot predict has told why, and has no place in the counts.
    read -r value lo hi < <(predicted "$pattern") || true
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$median" "$least" "$most" "$value" "$lo" "$hi" "$pattern"
done <"$work/measured" >"$work/both"
awk -F'\t' '
    BEGIN {
        print "| program | pattern | measured [fastest, slowest round] | predicted [95%] | predicted / measured |"
        print "|---|---|---|---|---|"
    }
    {
        pattern = length($8) > 60 ? substr($8, 1, 57) "..." : $8
        gsub(/\|/, "\\|", pattern)
        measured = sprintf("%.2f ms [%.2f, %.2f]", $2 / 1e6, $3 / 1e6, $4 / 1e6)
        if ($5 == "") {
            printf "| %s | `%s` | %s | - | - |\n", $1, pattern, measured
            next
        }
        ratio = $5 / ($2 / 1e6)
        off = ratio > 1 ? ratio - 1 : 1 / ratio - 1
        all++
        near += off <= 0.10
        within += off <= 0.25
        printf "| %s | `%s` | %s | %.2f ms [%.2f, %.2f] | %.2f |\n", $1, pattern, measured, $5, $6, $7, ratio
    }
    END {
        if (!all) exit 1
        printf "\nWithin 10%%: %d of %d (%.0f%%). Within 25%%: %d (%.0f%%). A program takes longer than predicted by what it\n", \
            near, all, 100 * near / all, within, 100 * within / all
        print "computes, where no work= tells it, and by what other programs and guests take of its caches."
    }' "$work/both" | keep predict.md
