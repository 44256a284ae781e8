#!/usr/bin/env bash
# How long a harvest takes to begin: of programs that were never rewritten before (an empty cache:
# all files are analysed, rewritten and proven), and once they were. The scavenger and its primary
# do next to nothing, so the time is all preparation, and what the launcher takes to begin and to
# end. Variables: PROGRAMS (which), ROUNDS (how many).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-3}

# harvested DIRECTORY COMMAND…: "wall CPU MiB" of a harvest whose cache is in a directory
harvested() {
    XDG_CACHE_HOME=$1 /usr/bin/time -o "$work/time" -f '%e %U %S %M' \
        "$gleaner" harvest -q --assume-costs --record "$work/run.json" --scavenger "${*:2}" -- true >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; return 1; }
    tail -1 "$work/time" | awk '{ printf "%s %.2f %.0f\n", $1, $2 + $3, $4 / 1024 }'
}

# column KIND FIELD: "median [least, greatest]" of one kind's figures
column() {
    awk -v kind="$1" -v field="$2" '$1 == kind { print $field }' "$work/raw" | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) printf "%s [%s, %s]", v[int((NR + 1) / 2)], v[1], v[NR]; else printf "-" }'
}

{
    echo "| program | files | MiB | first time, s | its CPU time, s | peak, MiB | again, s |"
    echo "|---|--:|--:|--:|--:|--:|--:|"
    for program in ${PROGRAMS:-octave-cli z3 node gdb python3 sqlite3}; do
        file=$(realpath "$(command -v "$program")") || continue
        : >"$work/raw"
        for round in $(seq "$rounds"); do
            rm -rf "$work/cache"
            mkdir -m 700 "$work/cache"
            echo "cold $(harvested "$work/cache" "$program --version")" >>"$work/raw"
            for again in 1 2 3; do echo "warm $(harvested "$work/cache" "$program --version")" >>"$work/raw"; done
        done
        files=$(ldd "$file" 2>/dev/null | awk '$3 ~ "^/" { print $3 }' || true)
        size=$(stat -Lc %s "$file" $files | awk '{ n++; s += $1 } END { printf "%d | %.0f", n, s / 1048576 }')
        echo "| $program | $size | $(column cold 2) | $(column cold 3) | $(column cold 4) | $(column warm 2) |"
    done
    echo
    echo "Median of $rounds rounds [least, greatest], each in an empty cache, then three times more with what it left there; wall time on $(nproc) CPUs. \"files\": the program with the libraries that it is linked to."
} | keep cold.md
