#!/usr/bin/env bash
# One primary and one scavenger under several settings of the harvest: what each setting costs the
# primary and gives to the scavengers; beside them the scavengers under SCHED_IDLE, and one of them
# on a core of its own.
#   sweep.sh [-o DIR] WHAT PRIMARY SCAVENGER     WHAT: slowdown, absence, threshold, count, parts
# Variables: COUNT (scavengers), ROUNDS, and those of beside.sh. With -o, further rounds are added
# to DIR/sweep-WHAT-PRIMARY-SCAVENGER.tsv.
#
# To add a sweep: a line in the table below, its settings separated by semicolons; a bare number is
# a count of scavengers.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
[ $# = 3 ] || { echo "usage: $0 [-o DIR] WHAT PRIMARY SCAVENGER" >&2; exit 2; }
what=$1 name=$2 scavenger=$3
case $what in
slowdown) settings='--max-slowdown 5%;--max-slowdown 10%;--max-slowdown 20%;--max-slowdown 50%' ;;
absence) settings='--max-absence 1us;--max-absence 3us;--max-absence 10us;--max-absence 30us;--max-absence 100us' ;;
threshold) settings='--least-gain -50;--least-gain 0;--least-gain 50;--least-gain 100;--least-gain 200;--least-gain 400' ;;
count) settings='1;2;4;8;12;16;24' ;;
parts)
    settings='--choose paying;--choose every-load;--choose chases;--no-coalescing;--without load-store-balance;--without sunk-restores;--without hoisted-saves'
    settings+=';--without live-registers;--without bounds --max-absence 1s'
    ;;
*) echo "$0: unknown sweep '$what': slowdown, absence, threshold, count or parts" >&2; exit 2 ;;
esac
. "$(dirname "$0")/beside.sh"
rounds=${ROUNDS:-3} count=${COUNT:-8}
can "$name" || { echo "$name is not installed" >&2; exit 1; }

raw=$work/sweep.tsv
: >"$raw"
IFS=';' read -ra list <<<"$settings"
for round in $(seq "$rounds"); do
    row() { awk -v OFS='\t' -v a="$round" -v b="$name" -v c="$1" -v d="$2" '{ print a, b, c, d, $0 }' <<<"$3" >>"$raw"; }
    printf '%s\t-\t%s\talone\t- - %s\n' "$round" "$scavenger" "$(work_alone "$scavenger")" >>"$raw"
    [ "$name" != tree ] || half_the_load
    row "$scavenger" 'SCHED_IDLE' "$(beside idle "$name" "$scavenger" "$count")"
    row "$scavenger" 'two cores' "$(beside two "$name" "$scavenger" 1)"
    for setting in "${list[@]}"; do
        case $setting in
        [0-9]*) line=$(beside harvested "$name" "$scavenger" "$setting") ;;
        *) line=$(beside harvested "$name" "$scavenger" "$count" $setting) ;;
        esac || { echo "$setting: failed" >&2; continue; }
        row "$scavenger" "$setting" "$line"
    done
done
further "sweep-$what-$name-$scavenger" "round, primary, scavenger, way, then pace, 95th percentile (us), steps of all scavengers a second, and pace and percentile while they sleep; $count scavengers, areas of $mib MiB"
made=sweep-$what-$name-$scavenger
shown pairs "$made" "$raw"
pictured pairs "$made" "$raw" "$name beside ${scavenger}s: $what" "scavengers' work, in one alone" "$name's pace, in itself alone"
