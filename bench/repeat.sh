#!/usr/bin/env bash
# Five full runs of `gleaner measure`: the levels that each finds, how long it takes, how much
# memory it needs, and its grade.
set -euo pipefail
. "$(dirname "$0")/common.sh"
effort=${EFFORT:-} # --quick for a trial

level() { # RECORD INDEX
    for path in name latency.cycles.value latency.cycles.lo latency.cycles.hi; do
        "$gleaner" show --json "$1" ".levels[$2].$path" 2>/dev/null || echo -
    done | tr -d '"' | awk '{ v[NR] = $1 } END { if (v[1] != "-") printf "%s %.2f [%.2f, %.2f]", v[1], v[2], v[3], v[4] }'
}

{
    echo "| run | levels, cycles [95%] | | | | seconds | peak memory | largest area | grade |"
    echo "|---|---|---|---|---|---|---|---|---|"
    for run in 1 2 3 4 5; do
        record=$work/machine-$run.json
        # shellcheck disable=SC2086
        "$gleaner" measure $effort -q -o "$record" >/dev/null
        mib() { echo $(($("$gleaner" show --json "$record" ".run.memory.$1") >> 20)); }
        grade=$("$gleaner" show --json "$record" .run.grade.verdict | tr -d '"')
        seconds=$("$gleaner" show --json "$record" .run.seconds)
        printf '| %d | %s | %s | %s | %s | %.0f | %d MiB | %d MiB | %s |\n' "$run" "$(level "$record" 0)" "$(level "$record" 1)" \
            "$(level "$record" 2)" "$(level "$record" 3)" "$seconds" "$(mib peak)" "$(mib largest_area)" "$grade"
    done
} | keep repeat.md
