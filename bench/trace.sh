#!/usr/bin/env bash
# Whether the traffic that `gleaner profile --trace` models is that of programs whose traffic is
# known (bench/programs/traffic.c): streams, copies, column walks, a chase through memory. Beside it
# the misses that cachegrind finds for the same programs and the same caches, and how much slower
# each of both is. A program's passes are told from its setting up by a run with twice as many.
# Variables: KINDS (which), BYTES (of an array), PASSES.
set -euo pipefail
. "$(dirname "$0")/common.sh"
bytes=${BYTES:-134217728}
passes=${PASSES:-2}
cc -O2 -fno-tree-vectorize -o "$work/traffic" "$root/bench/programs/traffic.c"

# traced KIND PASSES: bytes read, bytes written, accesses, times as long
traced() {
    "$gleaner" profile --no-probes --no-stacks --trace -o "$work/p.json" -- "$work/traffic" "$1" "$bytes" "$2" >"$work/said" 2>"$work/log" ||
        { cat "$work/log" >&2; exit 1; }
    python3 - "$work/p.json" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))["trace"]
print(t["read"]["value"], t["written"]["value"], t["accesses"], t["slowdown"]["value"])
PY
}

{
    echo "| program | read, GB: known | modelled | off by | written, GB: known | modelled | off by | times as long |"
    echo "|---|---|---|---|---|---|---|---|"
    for kind in ${KINDS:-read write copy memcpy triad nt columns chase}; do
        read -r read1 written1 _ _ <<<"$(traced "$kind" "$passes")"
        read -r read2 written2 _ slower <<<"$(traced "$kind" $((2 * passes)))"
        "$work/traffic" "$kind" "$bytes" "$passes" >"$work/one"
        "$work/traffic" "$kind" "$bytes" $((2 * passes)) >"$work/two"
        paste -d ' ' "$work/one" "$work/two" | awk -v kind="$kind" -v r="$(awk "BEGIN { print $read2 - $read1 }")" \
            -v w="$(awk "BEGIN { print $written2 - $written1 }")" -v slower="$slower" '
            function off(known, got) { return known == 0 ? "-" : sprintf("%+.1f%%", 100 * (got / known - 1)) }
            { kr = $8 - $3; kw = $9 - $4
              printf "| %s | %.3f | %.3f | %s | %.3f | %.3f | %s | %.0f |\n", kind, kr / 1e9, r / 1e9, off(kr, r), kw / 1e9, w / 1e9, off(kw, w), slower }'
    done
} | keep trace.md
