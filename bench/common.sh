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
    cc -O2 -Wall -o "$work/$1" "$root/bench/peers/$1.c" && echo "$work/$1"
}

# keep NAME: prints standard input; with -o, also writes it to DIR/NAME, with machine and version
keep() {
    if [ -n "$out" ]; then
        mkdir -p "$out"
        "$gleaner" doctor >"$out/machine.txt"
        { echo "<!-- $("$gleaner" --version), $(date -u +%Y-%m-%d), machine in machine.txt -->"; cat; } | tee "$out/$1"
    else
        cat
    fi
}

# by KIND RAW WHAT [OPTION...]: prints what bench/KIND.awk makes of raw figures
by() { awk -f "$root/bench/ranks.awk" -f "$root/bench/$1.awk" -v what="$3" "${@:4}" "$2"; }
# shown KIND NAME RAW [OPTION...]: its table; with -o, also as JSON
shown() {
    by "$1" "$3" table "${@:4}" | keep "$2.md"
    [ -z "$out" ] || by "$1" "$3" json "${@:4}" >"$out/$2.json"
}
# drawn KIND NAME RAW [OPTION...]: with -o, its own picture
drawn() { [ -z "$out" ] || by "$1" "$3" picture "${@:4}" >"$out/$2.svg"; }
# pictured KIND NAME RAW TITLE X Y [OPTION...]: with -o, a picture of its points
pictured() {
    [ -z "$out" ] || by "$1" "$3" points "${@:7}" | awk -f "$root/bench/points.awk" -v title="$4" -v x="$5" -v y="$6" >"$out/$2.svg"
}
