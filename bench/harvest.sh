#!/usr/bin/env bash
# Pointer chases in the stalls of a pointer chase, all of them unmodified, on one core: how much they do together, and how
# much the first one loses; beside the same by hand (peers/limit.c) and the chase alone, in turn, in one run.
#   harvest.sh [-o DIR] [COUNT...]     numbers of scavengers; else 1 2 4 8 12 16 20 24 32
# The slowdown is told, not bounded: that is contract.sh's.
# AREA=one: all of them through one area, a file's that each has mapped, by hand once with one mapping for all and once with a mapping
# for each (peers/mapped.c), as programs have it; else each through an area of its own.
# MIB (size of each area), SECONDS_EACH, ROUNDS, CPU and HOME_CPUS may be set in the environment. With -o, raw figures of further
# counts are added to DIR/harvest.tsv, and table and picture are of all that is there.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
counts=("$@")
[ ${#counts[@]} -gt 0 ] || counts=(1 2 4 8 12 16 20 24 32)
mib=${MIB:-256} seconds=${SECONDS_EACH:-1} rounds=${ROUNDS:-3} cpu=${CPU:-1}
home=${HOME_CPUS:-0-$(($(nproc) - 1))} # where scavengers set up and go when they leave; nothing else runs there

. "$(dirname "$0")/seen.sh"
area=${AREA:-own}
case $area in
own) ways=(alone by_hand harvested) ;;
one) ways=(alone by_hand mapped harvested) ;;
*) echo "AREA is own or one, not '$area'" >&2; exit 2 ;;
esac
built programs chase walk
built peers limit mapped window
shared=$(mktemp /dev/shm/gleaner-area.XXXXXX)
trap 'rm -rf "$work" "$shared"' EXIT

# one NUMBER: the command of one of them
one() {
    case $area in
    own) echo "$work/chase $mib 0 $work/progress.$1" ;;
    one) echo "$work/walk $mib 0 $work/progress.$1 $shared $1" ;;
    esac
}

harvested() {
    local scavengers=()
    for number in $(seq "$1"); do scavengers+=(--scavenger "$(one "$number")"); done
    taskset -c "$cpu" "$gleaner" harvest --max-slowdown 1000000% --ring "$1" --home-cpus "$home" --choose chases "${scavengers[@]}" -- $(one 0)
}
by_hand() { taskset -c "$cpu" "$work/limit" "$area" "$mib" $(($1 + 1)) $(files "$1"); }
mapped() { taskset -c "$cpu" "$work/mapped" "$mib" $(($1 + 1)) "$shared" $(files "$1"); }
alone() { taskset -c "$cpu" $(one 0); }

raw=$work/harvest.tsv
: >"$raw"
for round in $(seq "$rounds"); do
    for count in "${counts[@]}"; do
        for way in "${ways[@]}"; do
            if [ "$way" = alone ]; then line=$(seen 0 alone); else line=$(seen "$count" "$way" "$count"); fi
            printf '%s\t%s\t%s\t%s\n' "$round" "$count" "$way" "$line" >>"$raw"
        done
    done
done
if [ -n "$out" ]; then
    mkdir -p "$out"
    { [ -s "$out/harvest.tsv" ] && grep -v '^#' "$out/harvest.tsv" || true; } >"$work/before.tsv"
    { echo "# round, scavengers, way, seconds and steps of each; areas of $mib MiB ($area)"; cat "$work/before.tsv" "$raw"; } >"$out/harvest.tsv"
    raw=$out/harvest.tsv
fi
shown harvest harvest "$raw"
drawn harvest harvest "$raw"
