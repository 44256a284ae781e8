#!/usr/bin/env bash
# A store at half its load that busy-waits for its next request (bench/programs/tree.c), with
# scavengers on its core: under SCHED_IDLE, and harvested with several slowdowns.
#   store.sh [-o DIR] [SCAVENGER]
# A program that only counts takes the time of all other cores, so that scavengers do their work on
# the store's core, but for two hundredths. In each run the scavengers sleep every other 0.2 s, and
# each such time is compared with the one before it, since the machine changes from second to
# second. Parts of 10 ms in which an answer took half a millisecond are counted apart. Variables:
# KEYS (in each request), MIB, COUNT (scavengers), ROUNDS, SECONDS_EACH, SPAN, CPU (the store's),
# OTHER (for everything else).
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
seconds=${SECONDS_EACH:-8} span=${SPAN:-0.2}
export SECONDS_EACH=$seconds
. "$root/bench/beside.sh"
scavenger=${1:-chase} count=${COUNT:-8} rounds=${ROUNDS:-3} keys=${KEYS:-32} mib=${MIB:-64}
built peers answers busy
taskset -cp "$other" $$ >/dev/null # keep this script off the store's core

word() { printf '\1' | dd of="$work/progress.0" bs=8 seek="$1" conv=notrunc status=none; }
# way NAME RATE [OPTION…]: for each window with scavengers and the one without behind it: what
# `answers` prints; alone: the requests a second that the store can answer
way() {
    local name=$1 rate=$2 files=() children=() commands=() i busy n=$count
    shift 2
    rm -f "$work"/progress.*
    compacted
    [ "$name" != alone ] || n=0
    for ((i = 1; i <= n; i++)); do
        files+=("$work/progress.$i")
        commands+=(--scavenger "$work/$scavenger $mib 0 $work/progress.$i")
    done
    if [ "$name" = harvested ]; then
        set -- "$gleaner" harvest --stay-aboard --ring "$count" --home-cpus "$other" "$@" "${commands[@]}" --
    else
        for file in "${files[@]}"; do
            "$work/$scavenger" "$mib" 0 "$file" >/dev/null &
            children+=($!)
        done
        set --
    fi
    taskset -c "$cpu" "$@" "$work/tree" "$mib" 0 "$work/progress.0" "$rate" "$keys" &
    primary=$!
    [ "$n" = 0 ] || "$work/window" 0 "${files[@]}" >/dev/null
    for child in "${children[@]}"; do
        chrt -a -i -p 0 "$child"
        taskset -a -c -p "$cpu" "$child" >/dev/null
    done
    "$work/busy" &
    busy=$!
    until [ -s "$work/progress.0" ]; do sleep 0.05; done
    [ "$rate" = 0 ] || word 2
    "$work/window" 0 "$work/progress.0" >/dev/null
    sleep 1
    if [ "$n" = 0 ]; then
        "$work/answers" 2 "$work/progress.0" | awk '{ print int($2 / $1) }'
    else
        "$work/answers" "$seconds" "$work/progress.0" "$span" "${files[@]}"
    fi
    word 3
    wait "$primary"
    kill "$busy" "${children[@]}"
    wait "$busy" "${children[@]}" 2>/dev/null || true
}

most=$(way alone 0)
rate=$((most / 2))
for round in $(seq "$rounds"); do
    way idle "$rate" | sed "s/^/$round SCHED_IDLE - /"
    for slowdown in 5% 10% 20%; do
        way harvested "$rate" --max-slowdown "$slowdown" | sed "s/^/$round harvested $slowdown /"
    done
done >"$work/store.tsv"
seconds=1 work_alone "$scavenger" >"$work/alone"
if [ -n "$out" ]; then
    mkdir -p "$out"
    { echo "# round, way, slowdown asked; beside scavengers p50 and p95 (us), while they sleep p50 and p95; beside them p95 of undisturbed parts and the share"
      echo "# of others, while they sleep the same; their steps a second (one alone: $(cat "$work/alone"))"
      cat "$work/store.tsv"; } >"$out/store.tsv"
fi
{
    echo "| way | slowdown asked | p95 alone, µs | p95 ÷ alone | disturbed | alone | p50 ÷ alone | undisturbed p95 alone, µs | ÷ alone | scavengers' work |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    awk -f "$root/bench/ranks.awk" -f "$root/bench/store.awk" -v what=table -v one="$(cat "$work/alone")" "$work/store.tsv"
    echo
    echo "$count scavengers ($scavenger), areas of $mib MiB, $rate requests a second of $keys keys each (half of what the store can answer)."
    echo "Medians [95%] of $(awk '$2 == "SCHED_IDLE"' "$work/store.tsv" | wc -l) pairs: $span s beside scavengers, $span s while they sleep. Work is relative to one scavenger alone on that core."
    echo "Disturbed: the share of parts of 10 ms in which an answer took half a millisecond or more, beside scavengers and alone."
} | keep store.md
[ -z "$out" ] || by store "$work/store.tsv" json -v one="$(cat "$work/alone")" >"$out/store.json"
pictured store store "$work/store.tsv" "A store at half its load, and what scavengers do on its core" "scavengers' work, in one alone" "95th percentile over that while they sleep" -v one="$(cat "$work/alone")"
