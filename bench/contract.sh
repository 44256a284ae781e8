#!/usr/bin/env bash
# Compares the slowdown that --max-slowdown asks for with the one that happens: primaries beside
# guests, each alone before and after, on one CPU, in one run.
#   contract.sh [-o DIR] [PRIMARY...]     hot (hits L1), chase, tree (both 256 MiB); default: all
# Variables: GUESTS, ASKED, SECONDS_EACH, COPIES (of the guest), CPU, HOME_CPUS. With -o, the raw
# figures are added to DIR/contract.tsv, and the table shows all figures in that file.
#
# "had" compares the primary's steps with those of the runs alone before and after it; "told" is
# what the run record says; "guests" are the steps of all guests, over those of one guest alone.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
primaries=("$@")
[ ${#primaries[@]} -gt 0 ] || primaries=(hot chase tree)
guests=${GUESTS:-idle chase scan} asked=${ASKED:-5 10 20} seconds=${SECONDS_EACH:-1} copies=${COPIES:-2} cpu=${CPU:-1}
home=${HOME_CPUS:-0-$(($(nproc) - 1))}

. "$(dirname "$0")/programs.sh"
built programs hot chase tree idle scan
built peers window
command_of() { case $1 in hot | idle) echo "$work/$1 0 0" ;; scan) echo "$work/$1 64 0" ;; *) echo "$work/$1 256 0" ;; esac; }
alone() { watched 0 taskset -c "$cpu" $(command_of "$1") "$work/progress.0"; }
with() { # PRIMARY GUEST SHARE
    local scavengers=()
    for file in $(files "$copies" | tail -n +2); do scavengers+=(--scavenger "$(command_of "$2") $file"); done
    watched "$copies" taskset -c "$cpu" "$gleaner" harvest --stay-aboard --max-slowdown "$3%" --home-cpus "$home" --record "$work/run.json" \
        "${scavengers[@]}" -- $(command_of "$1") "$work/progress.0"
}
told() { "$gleaner" show "$work/run.json" ".slowdown.share" 2>/dev/null | tr '\t' ' ' | head -1; }

raw=$work/contract.tsv
: >"$raw"
guest_alone=()
for guest in $guests; do guest_alone[${#guest_alone[@]}]=$(alone "$guest"); done
for primary in "${primaries[@]}"; do
    at=0
    for guest in $guests; do
        before=$(alone "$primary")
        for share in $asked; do
            line=$(with "$primary" "$guest" "$share")
            after=$(alone "$primary")
            printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$primary" "$guest" "$share" "$before" "$line" "$after" "${guest_alone[$at]}" "$(told)" >>"$raw"
            before=$after
        done
        at=$((at + 1))
    done
done
if [ -n "$out" ]; then
    mkdir -p "$out"
    { [ -s "$out/contract.tsv" ] && grep -v '^#' "$out/contract.tsv" || true; } >"$work/before.tsv"
    { echo "# primary, guest, asked (%), alone before, harvested (seconds, steps of each), alone after, guest alone, told"; cat "$work/before.tsv" "$raw"; } >"$out/contract.tsv"
    raw=$out/contract.tsv
fi
awk -F'\t' -v copies="$copies" '
    function pace(line, which,  part) { split(line, part, " "); return part[1 + which] / part[1] }
    BEGIN { print "| primary | " "guests | asked | had | alone after to before | told | guests to one alone |"; print "|---|---|---|---|---|---|---|" }
    /^#/ { next }
    {
        a = pace($4, 1); b = pace($6, 1); h = pace($5, 1); g = 0
        n = split($5, part, " ")
        for (i = 3; i <= n; i++) g += part[i] / part[1]
        printf "| %s | %d × %s | %s %% | %+.1f %% | %+.1f %% | %s | %.2f |\n", $1, n - 2, $2, $3, 100 * ((a + b) / 2 / h - 1), 100 * (a / b - 1), $8, g / pace($7, 1)
    }' "$raw" | keep contract.md
