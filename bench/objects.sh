#!/usr/bin/env bash
# Are the memory objects right that a profile says cost most? Ten lists that are made at ten places
# in ten ways are walked, each for a part of the time that a seed chooses (programs/sites.c, which
# says at its end how long each took); a profile of the same run must name the five that took most.
# Parts fall by a fifth from one to the next, so the fifth and the sixth are close. Then the
# programs of programs/sharing: each says in its head which data its threads disturb, which must
# cost most. Variables: RUNS (seeds), SECONDS_EACH.
set -euo pipefail
. "$(dirname "$0")/common.sh"
runs=${RUNS:-40}
cc -O2 -fno-optimize-sibling-calls -g -Wall -Wno-unused-function -o "$work/sites" "$root/bench/programs/sites.c"
for run in $(seq "$runs"); do
    "$gleaner" profile -q --no-stacks -o "$work/sites$run.json" -- \
        "$work/sites" "$run" "${SECONDS_EACH:-5}" >"$work/took$run"
done

# What the heads say: "Found: false_sharing of the allocation in `new_key`, written in ...".
for source in "$root"/programs/sharing/*.c "$root"/programs/sharing/*.cpp; do
    object=$(sed -nE 's/.*Found: [a-z]+_sharing of (what |the allocation in )?["`]?([A-Za-z_ ]+).*/\2/p' "$source" | sed 's/ allocates$//')
    [ -n "$object" ] || continue
    name=$(basename "$source")
    compiler=cc
    [ "${name##*.}" = c ] || compiler=c++
    "$compiler" -O1 -g -pthread -o "$work/program" "$source"
    "$gleaner" profile -q --no-stacks -o "$work/sharing.$name.json" -- "$work/program" >/dev/null
    echo "$name $object"
done >"$work/disturbed"
python3 - "$work" "$runs" <<'PY' | keep objects.md
import json
import re
import sys

FIVE = 5
work, runs = sys.argv[1], int(sys.argv[2])
right, order, wrong, off = 0, 0, [], []
for run in range(1, runs + 1):
    took = {line.split()[0]: float(line.split()[1]) for line in open(f"{work}/took{run}")}
    true = sorted(took, key=took.get, reverse=True)
    objects = json.load(open(f"{work}/sites{run}.json"))["objects"]
    named, shares = [], []
    for entry in objects:
        # The longest name first: one is a part of another's. What its start waits for is not timed.
        says = entry["name"]
        found = [name for name in sorted(took, key=len, reverse=True) if name in says]
        if found or "main" not in says:
            named.append(found[0] if found else says)
            shares.append(entry["stall"]["value"])
    first = named[:FIVE]
    right += set(first) == set(true[:FIVE])
    order += first == true[:FIVE]
    if set(first) != set(true[:FIVE]):
        wrong.append((run, first, true[:FIVE]))
    everything = sum(took.values())
    off += [abs(share - took[name] / everything) for name, share in zip(named, shares) if name in took]
print(f"{right} of {runs} runs name the five lists that took most ({order} in their order)\n")
if off:
    print(f"shares of stall are off by {100 * sum(off) / len(off):.1f} points in the mean, {100 * max(off):.1f} at most\n")
for run, first, true in wrong:
    print(f"seed {run}: named {', '.join(first)}; true {', '.join(true)}\n")
print("| program | data that its threads disturb | first object | |\n|---|---|---|---|")
for line in open(f"{work}/disturbed"):
    program, _, object = line.strip().partition(" ")
    objects = json.load(open(f"{work}/sharing.{program}.json"))["objects"]
    first = objects[0]["name"] if objects else "-"
    shown = re.sub(r" \(\S+:\d+\)", "", first)  # files of the system's are none of this repository
    print(f"| {program} | {object} | {shown} | {'' if object in first else 'another'} |")
PY
