#!/usr/bin/env bash
# How long a harvest takes to begin: of programs that were never rewritten before (an empty cache:
# all files are analysed, rewritten and proven), by default and with time for all libraries; and
# once they were. The scavenger and its primary do next to nothing, so the time is all preparation,
# and what the launcher takes to begin and to end. Variables: PROGRAMS (which), ROUNDS (how many).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-3}

# harvested KIND PROGRAM [OPTION…]: adds "KIND wall CPU MiB" of a harvest to the raw figures
harvested() {
    XDG_CACHE_HOME=$work/cache /usr/bin/time -o "$work/time" -f '%e %U %S %M' \
        "$gleaner" harvest -q --assume-costs --record "$work/run.json" "${@:3}" --scavenger "$2 --version" -- true >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; return 1; }
    tail -1 "$work/time" | awk -v kind="$1" '{ printf "%s %s %.2f %.0f\n", kind, $1, $2 + $3, $4 / 1024 }' >>"$work/raw"
}
emptied() {
    rm -rf "$work/cache"
    mkdir -m 700 "$work/cache"
}
# How many libraries the last harvest left for later.
left() { "$gleaner" show "$work/run.json" .refusals --json | awk 'match($0, /[0-9]+ librar/) { n = substr($0, RSTART, RLENGTH) + 0 } END { print n + 0 }'; }

{
    echo "| program | files | MiB | first time, s | libraries left | with all libraries, s | its CPU time, s | peak, MiB | again, s |"
    echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for program in ${PROGRAMS:-octave-cli z3 node gdb python3 sqlite3}; do
        file=$(realpath "$(command -v "$program")") || continue
        : >"$work/raw"
        for round in $(seq "$rounds"); do
            emptied
            harvested first "$program"
            left=$(left)
            emptied
            harvested all "$program" --library-time 60min
            for again in 1 2 3; do harvested again "$program"; done
        done
        files=$(ldd "$file" 2>/dev/null | awk '$3 ~ "^/" { print $3 }' || true)
        size=$(stat -Lc %s "$file" $files | awk '{ n++; s += $1 } END { printf "%d | %.0f", n, s / 1048576 }')
        echo "| $program | $size | $(column first 2) | $left | $(column all 2) | $(column all 3) | $(column all 4) | $(column again 2) |"
    done
    echo
    echo "Median of $rounds rounds [least, greatest], each time in an empty cache, then three times more with all that is in it; wall time on $(nproc) CPUs. \"files\": the program with the libraries that it is linked to."
} | keep cold.md
