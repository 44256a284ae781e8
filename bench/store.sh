#!/usr/bin/env bash
# A store at half its load that waits for its next request by turning round (bench/programs/tree.c), with scavengers on its core: by
# SCHED_IDLE, and harvested under several slowdowns, with all yields or with those in its waits only.
#   store.sh [-o DIR] [SCAVENGER]
# All other cores' time is taken by a program that only counts, so that what scavengers do, they do on the store's core but for two
# hundredths. Each way is a process of its own, so medians over rounds count. KEYS (in each request), MIB, COUNT (scavengers), ROUNDS,
# SECONDS_EACH, CPU (the store's) and OTHER (everybody else's) may be set in the environment.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
. "$root/bench/beside.sh"
scavenger=${1:-chase} count=${COUNT:-8} rounds=${ROUNDS:-5} keys=${KEYS:-32} mib=${MIB:-64}
built peers answers busy
taskset -cp "$other" $$ >/dev/null # nothing of this on the store's core

word() { printf '\1' | dd of="$work/progress.0" bs=8 seek="$1" conv=notrunc status=none; }
steps() { for file in "$@"; do od -An -t u8 -N 8 "$file"; done | awk '{ s += $1 } END { printf "%.0f", s }'; }

# way NAME RATE [OPTION…]: "p50 p95 p99 steps-a-second"
way() {
    local name=$1 rate=$2 files=() children=() commands=() i line from to began ended busy n=$count
    shift 2
    rm -f "$work"/progress.*
    compacted
    [ "$name" != alone ] || n=0
    for ((i = 1; i <= n; i++)); do
        files+=("$work/progress.$i")
        commands+=(--scavenger "$work/$scavenger $mib 0 $work/progress.$i")
    done
    if [ "$name" = harvested ]; then
        set -- "$gleaner" harvest --ring "$count" --home-cpus "$other" "$@" "${commands[@]}" --
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
    sleep 1.5
    from=$(steps "${files[@]}") began=$EPOCHREALTIME
    line=$("$work/answers" "$seconds" "$work/progress.0")
    to=$(steps "${files[@]}") ended=$EPOCHREALTIME
    word 3
    wait "$primary"
    kill "$busy" "${children[@]}"
    wait "$busy" "${children[@]}" 2>/dev/null || true
    awk -v l="$line" -v a="$from" -v b="$to" -v s="$began" -v t="$ended" 'BEGIN { split(l, w); print w[3], w[4], w[5], (b - a) / (t - s), w[2] / w[1] }'
}

most=$(way alone 0 | awk '{ print int($5) }')
rate=$((most / 2))
for round in $(seq "$rounds"); do
    echo "$round alone - $(way alone "$rate")"
    echo "$round SCHED_IDLE - $(way idle "$rate")"
    for slowdown in 5% 10% 20%; do
        echo "$round harvested $slowdown $(way harvested "$rate" --max-slowdown "$slowdown")"
        echo "$round waits-only $slowdown $(way harvested "$rate" --max-slowdown "$slowdown" --most-sites 0)"
    done
done >"$work/store.tsv"
work_alone "$scavenger" >"$work/alone"
[ -z "$out" ] || { mkdir -p "$out"; cp "$work/store.tsv" "$out/store.tsv"; }
{
    echo "| way | slowdown asked | p50, µs | p95, µs | p99, µs | p95 ÷ alone | scavengers' work |"
    echo "|---|---|---|---|---|---|---|"
    awk -v one="$(cat "$work/alone")" '
        function median(key, k,  n, i, j, t, v) {
            n = split(all[key, k], v, " ")
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            least = v[1]; greatest = v[n]
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        { key = $2 " | " $3; if (!(key in seen)) { seen[key] = 1; order[++keys] = key }
          for (k = 4; k <= 7; k++) all[key, k] = all[key, k] " " $k
          if ($2 == "alone") quiet[$1] = $5
          all[key, 9] = all[key, 9] " " $5 / quiet[$1] }
        END { for (i = 1; i <= keys; i++) { key = order[i]
            printf "| %s", key
            for (k = 4; k <= 6; k++) { m = median(key, k); printf " | %.3g [%.3g, %.3g]", m, least, greatest }
            m = median(key, 9); printf " | %.2f [%.2f, %.2f]", m, least, greatest
            m = median(key, 7); printf " | %.3f [%.3f, %.3f] |\n", m / one, least / one, greatest / one } }' "$work/store.tsv"
    echo
    echo "$count scavengers ($scavenger), areas of $mib MiB, $rate requests a second of $keys keys each (half of what it answers one after the other);"
    echo "medians of $rounds rounds [least, greatest]; work over that of one scavenger alone on that core; the percentiles are of all requests."
} | keep store.md
