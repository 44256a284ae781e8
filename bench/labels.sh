#!/usr/bin/env bash
# Does a profile say of a load what is true of it? Twenty-four loads whose level and pattern are
# known by how they are made (programs/labelled.c), each profiled by `gleaner profile` as anybody
# would; then whether the level and the pattern are right, and how far the latency is from what
# `gleaner measure` says of an area of that size. Reads of which several are under way, of lines
# that the core has fetched ahead, have no such figure. Caches have the sizes that the machine's
# record says. The program's own clock is beside it: time by reads, which is a latency where each
# read waits for the one before. Variables: MACHINE (a record of this machine, in place of measuring
# it), LOADS (which), SECONDS_EACH, BUDGET (percent), KEEP (a directory for the profiles).
set -euo pipefail
. "$(dirname "$0")/common.sh"
cc -O2 -g -pthread -Wall -Wno-unused-function -o "$work/labelled" "$root/bench/programs/labelled.c" -lm

# The record that the profiles are weighed by is the one that the figures are compared with.
export XDG_CACHE_HOME=$work/cache
mkdir -p "$work/cache/gleaner"
machine=$work/cache/gleaner/machine.json
if [ -n "${MACHINE:-}" ]; then
    cp "$MACHINE" "$machine"
else
    "$gleaner" measure -q clock latency tlb c2c -o "$machine" >/dev/null
fi
sizes() { for level in 0 1 2; do "$gleaner" show "$machine" ".levels[$level].size.value"; done | tr '\n' ' '; }
read -r -a caches <<<"$(sizes)"

profiles=${KEEP:-$work/profiles}
mkdir -p "$profiles"
"$work/labelled" | while read -r name function level pattern figure; do
    if [ -n "${LOADS:-}" ] && [[ " $LOADS " != *" $name "* ]]; then continue; fi
    "$gleaner" profile -q --budget "${BUDGET:-3}" -o "$profiles/$name.json" -- \
        "$work/labelled" "$name" "${caches[@]}" "${SECONDS_EACH:-10}" >"$profiles/$name.txt"
    echo "$name $function $level $pattern $figure $("$work/labelled" "$name" "${caches[@]}" 0)"
done >"$work/loads"
python3 "$root/bench/labels.py" "$machine" "$profiles" "$work/loads" | keep labels.md
