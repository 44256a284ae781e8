# What the benchmark scripts share: where things are, and how a record is kept. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
gleaner=${GLEANER:-${CARGO_TARGET_DIR:-$root/target}/release/gleaner}
[ -x "$gleaner" ] || { echo "no $gleaner: run 'make build' first" >&2; exit 2; }
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

# keep NAME: shows standard input; with -o, also leaves it in DIR/NAME with what machine and which Gleaner it was
keep() {
    if [ -n "$out" ]; then
        mkdir -p "$out"
        "$gleaner" doctor >"$out/machine.txt"
        { echo "<!-- $("$gleaner" --version), $(date -u +%Y-%m-%d), machine in machine.txt -->"; cat; } | tee "$out/$1"
    else
        cat
    fi
}
