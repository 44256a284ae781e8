#!/usr/bin/env bash
# Whether the traffic that `gleaner profile --trace` models is that of programs whose traffic is
# known (bench/programs/traffic.c): streams, copies, column walks, a chase through memory. Beside it
# the lines that cachegrind finds missing for the same programs and a last cache of the same size,
# and how many times as long each of both takes. Setting up is left out: figures are those of a run
# with twice as many passes less those of a run. Variables: KINDS (which), BYTES (of an array),
# PASSES, L3 (the size of the last cache).
set -euo pipefail
. "$(dirname "$0")/common.sh"
bytes=${BYTES:-134217728}
passes=${PASSES:-2}
l3=${L3:-33554432}
cc -O2 -fno-tree-vectorize -o "$work/traffic" "$root/bench/programs/traffic.c"

# traced KIND PASSES: bytes read, bytes written, times as long
traced() {
    "$gleaner" profile --no-probes --no-stacks --trace --if "l3=$l3" -o "$work/p.json" -- "$work/traffic" "$1" "$bytes" "$2" \
        >"$work/said" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    python3 - "$work/p.json" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))["trace"]
print(t["read"]["value"], t["written"]["value"], t["slowdown"]["value"])
PY
}

# cachegrind KIND PASSES: bytes that miss the last cache, seconds
cachegrind() {
    local begin=${EPOCHREALTIME/./}
    valgrind --tool=cachegrind --cache-sim=yes --D1=32768,8,64 --LL="$l3",16,64 --cachegrind-out-file=/dev/null \
        "$work/traffic" "$1" "$bytes" "$2" >/dev/null 2>"$work/grind"
    awk -v took=$((${EPOCHREALTIME/./} - begin)) '/LLd misses/ { gsub(",", ""); print 64 * $4, took / 1e6 }' "$work/grind"
}

# alone KIND PASSES: seconds
alone() {
    local begin=${EPOCHREALTIME/./}
    "$work/traffic" "$1" "$bytes" "$2" >"$work/$2"
    awk -v took=$((${EPOCHREALTIME/./} - begin)) 'BEGIN { print took / 1e6 }'
}

{
    echo "| program | reads, GB | modelled | off by | cachegrind | writes, GB | modelled | off by | times as long | cachegrind |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    twice=$((2 * passes))
    for kind in ${KINDS:-read write copy memcpy triad nt columns chase}; do
        once=$(traced "$kind" "$passes") double=$(traced "$kind" "$twice")
        grind=$(cachegrind "$kind" "$passes") grinds=$(cachegrind "$kind" "$twice")
        alone "$kind" "$passes" >"$work/seconds"
        seconds=$(alone "$kind" "$twice")
        echo "$once $double $grind $grinds $seconds $(cut -d ' ' -f 3,4 "$work/$passes") $(cut -d ' ' -f 3,4 "$work/$twice")" | awk -v kind="$kind" '
            function off(known, got) { return known == 0 ? "-" : sprintf("%+.1f%%", 100 * (got / known - 1)) }
            { r = $4 - $1; w = $5 - $2; kr = $14 - $12; kw = $15 - $13
              printf "| %s | %.3f | %.3f | %s | %.3f | %.3f | %.3f | %s | %.0f | %.0f |\n",
                  kind, kr / 1e9, r / 1e9, off(kr, r), ($9 - $7) / 1e9, kw / 1e9, w / 1e9, off(kw, w), $6, $10 / $11 }'
    done
} | keep trace.md
