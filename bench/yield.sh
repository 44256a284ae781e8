#!/usr/bin/env bash
# What a yield costs in place, by the number of live values beside pointer and count. A loop over
# 16 KiB yields at its load, at each step, to another loop of its kind: nothing misses, so only the
# switch there and back costs time. The table shows core cycles from one step to the next, of
# whichever loop takes it, less those of the loop without yields in the same round.
#   yield.sh [-o DIR] [ALIVE...]     default: 0 1 2 3 4 6 8
# Variables: OTHERS (guests in the ring), ROUNDS, and those of beside.sh.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
. "$(dirname "$0")/beside.sh"
alive=("$@")
[ ${#alive[@]} -gt 0 ] || alive=(0 1 2 3 4 6 8)
rounds=${ROUNDS:-5} others=${OTHERS:-3} turns=1
for n in "${alive[@]}"; do
    cc -O2 -Wall -Wno-unused-function -DALIVE="$n" -o "$work/registers$n" "$root/bench/programs/registers.c"
    eval "start_registers$n() { exec \"\$@\" \"$work/registers$n\" 1 0 \"$work/progress.0\"; }; pace_registers$n() { pace_chase; }; stop_registers$n() { stop_chase; }"
done
mib=1 raw=$work/yield.tsv
: >"$raw"
for round in $(seq "$rounds"); do
    hertz=$(taskset -c "$cpu" "$gleaner" measure clock --quick -q --json | awk -F'[:,]' '/"core": {/ { f = 1 } f && /"value"/ { print $2 + 0; exit }')
    for n in "${alive[@]}"; do
        plain=$(beside alone "registers$n" - 0)
        pace=$(beside harvested "registers$n" "registers$n" "$others" --choose every-load --max-slowdown 100000%)
        read -r plain pace steps < <(awk '{ print $1, $3, $5 }' <<<"$plain $pace")
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$round" "$n" "$hertz" "$plain" "$pace" "$steps" >>"$raw"
    done
done
further yield "round, values alive, core clock (Hz), steps a second alone, of the primary, of all $others guests"
shown yield yield "$raw"
pictured yield yield "$raw" "A yield in place, there and back, hits only" "values alive, beside pointer and count" "core cycles"
