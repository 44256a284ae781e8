#!/usr/bin/env bash
# Pointer chases in the stalls of a pointer chase, all unmodified, on one core: how much work they
# do together, and how much the primary loses; compared with the same chases interleaved by hand
# (peers/limit.c) and with the primary alone, in turn, in one run.
#   harvest.sh [-o DIR] [COUNT...]     numbers of scavengers; default: 1 2 4 8 12 16 20 24 32
# The slowdown is reported, not bounded: contract.sh measures the bound.
# AREA=own (default): each reads an area of its own. AREA=one: all read one area, a file that each
# maps; by hand once with one mapping for all, and once with a mapping each (peers/mapped.c), as
# separate programs have it.
# Variables: MIB (size of each area), SECONDS_EACH, ROUNDS, CPU, HOME_CPUS. With -o, raw figures are
# added to DIR/harvest.tsv, and table and picture show all figures in that file.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
counts=("$@")
[ ${#counts[@]} -gt 0 ] || counts=(1 2 4 8 12 16 20 24 32)
mib=${MIB:-256} seconds=${SECONDS_EACH:-1} rounds=${ROUNDS:-3} cpu=${CPU:-1}
home=${HOME_CPUS:-0-$(($(nproc) - 1))} # scavengers set up here and come back here; nothing else runs here

. "$(dirname "$0")/programs.sh"
area=${AREA:-own}
case $area in
own) ways=(alone by_hand harvested) ;;
one) ways=(alone by_hand mapped harvested) ;;
*) echo "AREA must be own or one, not '$area'" >&2; exit 2 ;;
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
    taskset -c "$cpu" "$gleaner" harvest --stay-aboard --max-slowdown 1000000% --ring "$1" --home-cpus "$home" --choose chases "${scavengers[@]}" -- $(one 0)
}
by_hand() { taskset -c "$cpu" "$work/limit" "$area" "$mib" $(($1 + 1)) $(files "$1"); }
mapped() { taskset -c "$cpu" "$work/mapped" "$mib" $(($1 + 1)) "$shared" $(files "$1"); }
alone() { taskset -c "$cpu" $(one 0); }

raw=$work/harvest.tsv
: >"$raw"
for round in $(seq "$rounds"); do
    for count in "${counts[@]}"; do
        for way in "${ways[@]}"; do
            if [ "$way" = alone ]; then line=$(watched 0 alone); else line=$(watched "$count" "$way" "$count"); fi
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
