# Shared by the benchmark scripts: where things are, and how a record is kept. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
gleaner=${GLEANER:-${CARGO_TARGET_DIR:-$root/target}/release/gleaner}
[ -x "$gleaner" ] || { echo "$gleaner does not exist: run 'make build' first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

out=
while getopts o: option; do
    case $option in
    o) out=$OPTARG ;;
    *) echo "usage: $0 [-o DIR]" >&2; exit 2 ;;
    esac
done

# peer NAME: builds bench/peers/NAME.c, prints the program's path
peer() {
    cc -O2 -Wall -Wno-unused-function -o "$work/$1" "$root/bench/peers/$1.c" && echo "$work/$1"
}

# program NAME...: bench/programs/NAME.c or .cpp as $work/NAME
program() {
    local name
    for name in "$@"; do
        if [ -e "$root/bench/programs/$name.cpp" ]; then
            c++ -O2 -o "$work/$name" "$root/bench/programs/$name.cpp"
        else
            cc -O2 -Wall -Wno-unused-function -o "$work/$name" "$root/bench/programs/$name.c"
        fi
    done
}

# numbered LINES: that number of lines of text, always the same
numbered() { awk -v n="$1" 'BEGIN { srand(7); for (i = 0; i < n; i++) printf "%d %x line %d of the text\n", int(rand() * 1e9), int(rand() * 1e9), i }'; }

# ranked FORMAT: of the figures on standard input, "median [low, high]", an interval that holds the
# true median with 95%, by rank
ranked() {
    sort -g | awk -v f="$1" '
        { r[NR] = $1 }
        END { k = int((NR - 1.96 * sqrt(NR)) / 2); if (k < 1) k = 1; printf f " [" f ", " f "]", (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2, r[k], r[NR + 1 - k] }'
}

# ratio COLUMN: the same of that column over the first, in the lines of $work/rounds
ratio() { awk -v column="$1" '{ print $column / $1 }' "$work/rounds" | ranked %.4f; }

# spread [FORMAT]: of the figures on standard input, "median [least, greatest]"
spread() {
    sort -g | awk -v f="${1:-%s}" '{ v[NR] = $1 } END { if (NR) printf f " [" f ", " f "]", v[int((NR + 1) / 2)], v[1], v[NR]; else printf "-" }'
}

# column KIND FIELD: the same, of one kind's figures in the lines of $work/raw, which begin with
# their kind
column() { awk -v kind="$1" -v field="$2" '$1 == kind { print $field }' "$work/raw" | spread; }

# headline: version, date and machine
headline() {
    local about=$work/doctor
    "$gleaner" doctor >"$about"
    found() { sed -nE "s/^[^a-z]* $1 +//p" "$about" | sed -E 's/ *(\(family|\[).*//' | head -1; }
    echo "<!-- $("$gleaner" --version), $(date -u +%Y-%m-%d), $(found processor), $(nproc) CPUs, $(found hypervisor) -->"
}

# keep NAME: prints standard input; with -o, also writes it to DIR/NAME, beneath the headline
keep() {
    if [ -n "$out" ]; then
        mkdir -p "$out"
        { headline; cat; } | tee "$out/$1"
    else
        cat
    fi
}
