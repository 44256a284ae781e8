#!/usr/bin/env bash
# What padding saves where threads share cache lines, predicted and measured: linear_regression of
# programs/sharing as it is and with lines of its own for each thread, one after the other in
# rounds, and in each round a profile of the first, whose finding predicts the gain. Both are shares
# of the CPU time; the table shows medians, and the least and the largest. What two CPUs are to one
# another decides: threads of one core share its caches, and a line costs little there.
# Variables: ROUNDS (how many).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-9}
source=$root/programs/sharing/linear_regression.c
cc -O1 -g -pthread -o "$work/plain" "$source"
cc -O1 -g -pthread -DPAD=128 -o "$work/padded" "$source"

# seconds PROGRAM: its CPU time and the time from start to end
seconds() { { TIMEFORMAT='%U %S %R'; time "$1" >/dev/null; } 2>&1 | awk '{ print $1 + $2, $3 }'; }
# predicted: the gain of the first finding of false sharing of a profile: value, least, most; what
# wrote no such finding is nothing
predicted() {
    "$gleaner" profile -q --no-stacks -o "$work/profile.json" -- "$work/plain" >/dev/null
    "$gleaner" show "$work/profile.json" .findings --json |
        python3 -c 'import json, sys
found = [f["gain"] for f in json.load(sys.stdin) if f["kind"] == "false_sharing"]
print(*([found[0][end] for end in ("value", "lo", "hi")] if found else ["-", "-", "-"]))'
}

raw=$work/sharing.tsv
for round in $(seq "$rounds"); do
    if [ $((round % 2)) = 1 ]; then
        plain=$(seconds "$work/plain") padded=$(seconds "$work/padded")
    else
        padded=$(seconds "$work/padded") plain=$(seconds "$work/plain")
    fi
    echo "$plain $padded $(predicted)"
done >"$raw"
python3 - "$raw" <<'PY' | keep sharing.md
import statistics
import sys
rows = [line.split() for line in open(sys.argv[1])]
def row(name, figures):
    if figures:
        print(f"| {name} | {statistics.median(figures):.1%} | {min(figures):.1%} | {max(figures):.1%} |")
    else:
        print(f"| {name} | - | - | - |")
print(f"linear_regression, {len(rows)} rounds\n")
print("| gain of padding | median | least | most |\n|---|---:|---:|---:|")
row("measured, CPU time", [1 - float(r[2]) / float(r[0]) for r in rows])
row("measured, elapsed time", [1 - float(r[3]) / float(r[1]) for r in rows])
row("predicted, CPU time", [float(r[4]) for r in rows if r[4] != "-"])
row("predicted, its lower ends", [float(r[5]) for r in rows if r[4] != "-"])
row("predicted, its upper ends", [float(r[6]) for r in rows if r[4] != "-"])
print(f"\nprofiles without the finding: {sum(r[4] == '-' for r in rows)}")
PY
