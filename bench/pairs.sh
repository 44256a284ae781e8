#!/usr/bin/env bash
# Primaries beside scavengers, all unmodified, in four ways: how much of its pace the primary keeps,
# what happens to its 95th percentile where it has one, and how much work is done in all. Pace and
# percentile are compared with those while the scavengers sleep.
#   pairs.sh [-o DIR] [PRIMARY [SCAVENGER...]]     default: every primary with every scavenger
# A program's work is counted as a share of what it does alone on the primary's core (scavengers: in
# the same round), so that work can be added: two cores whose programs do not disturb each other do
# 2. Variables: COUNT (scavengers), ROUNDS, and those of beside.sh. With -o, further rounds are
# added to DIR/pairs.tsv.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
. "$(dirname "$0")/beside.sh"
primaries=(${1:-chase tree redis pocketsphinx})
shift || true
scavengers=("$@")
[ ${#scavengers[@]} -gt 0 ] || scavengers=(scan chase dfs cc join)
rounds=${ROUNDS:-3} count=${COUNT:-8}

raw=$work/pairs.tsv
: >"$raw"
# row ROUND PRIMARY SCAVENGER WAY LINE...: one row for each turn
row() { printf '%s\n' "${@:5}" | awk -v OFS='\t' -v a="$1" -v b="$2" -v c="$3" -v d="$4" '{ print a, b, c, d, $0 }' >>"$raw"; }
for round in $(seq "$rounds"); do
    for scavenger in "${scavengers[@]}"; do row "$round" - "$scavenger" alone "- - $(work_alone "$scavenger")"; done
    for name in "${primaries[@]}"; do
        can "$name" || { echo "$name is not installed: skipped" >&2; continue; }
        [ "$name" != tree ] || half_the_load
        for scavenger in "${scavengers[@]}"; do
            for way in idle harvested harvested+ two; do
                if line=$(beside "$way" "$name" "$scavenger" "$count"); then
                    row "$round" "$name" "$scavenger" "$way" "$line"
                else
                    echo "$name with $scavenger, $way: failed" >&2
                fi
            done
        done
    done
done
further pairs "round, primary, scavenger, way, then pace, 95th percentile (us), steps of all scavengers a second, and pace and percentile while they sleep; $count scavengers, areas of $mib MiB"
shown pairs pairs "$raw"
drawn pairs pairs "$raw"
