#!/usr/bin/env bash
# How often 'gleaner compare' calls the same different, and how often it finds a change that is
# there, by runs on this machine: quick machine records and profiles of a pointer chase, taken in
# turns. Changes: huge pages off, a neighbour that writes memory on another CPU, a figure of the
# records of one side 10% dearer, and a chase of 12% more loads, which takes 10% more CPU time.
# Each comparison draws the runs of both sides from those that were taken: of the same, half in
# turns (ABBA) and half at random.
# Variables: ROUNDS (each four runs as the machine is, two without huge pages, one beside the
# neighbour, and four profiles: 70 s), SIDE (runs a side), COMPARISONS (of the same; of each change
# a fifth), EXPERIMENTS (what is measured).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-11}
side=${SIDE:-5}
comparisons=${COMPARISONS:-100}
experiments=${EXPERIMENTS:-clock latency}
hammer=$(peer hammer)
program chase
cpus=($(awk '/^Cpus_allowed_list/ { n = split($2, part, /[,-]/); print part[1]; if (n > 1) print part[n] }' /proc/self/status))
mkdir "$work"/{same,small,neighbour,chase,longer}

one() { # DIRECTORY NUMBER: one quick run
    # shellcheck disable=SC2086 # several words
    "$gleaner" measure $experiments --quick --cpu "${cpus[-1]}" -q -o "$work/$1/$2.json" >/dev/null
}

profiled() { # DIRECTORY NUMBER LOADS
    "$gleaner" profile -q -o "$work/$1/$2.json" -- "$work/chase" 64 "$3" >/dev/null
}

began=$SECONDS
for round in $(seq -w "$rounds"); do
    # shellcheck disable=SC2086 # several words
    "$gleaner" compare -q --ab "$experiments --quick --cpu ${cpus[-1]}" \
        "$experiments --quick --cpu ${cpus[-1]} thp=never" --repeat 2 -o "$work/turns" >/dev/null
    for n in 1 2; do
        mv "$work/turns/a/"*"$n.json" "$work/same/$round-$n.json"
        mv "$work/turns/b/"*"$n.json" "$work/small/$round-$n.json"
    done
    one same "$round-3"
    "$hammer" 268435456 "${cpus[0]}" &
    neighbour=$!
    one neighbour "$round-1" || true
    kill "$neighbour"
    wait "$neighbour" 2>/dev/null || true
    one same "$round-4"
    for turn in "chase $round-1 10000000" "longer $round-1 11200000" "longer $round-2 11200000" "chase $round-2 10000000"; do
        # shellcheck disable=SC2086 # three words
        profiled $turn
    done
    echo "round $round of $rounds, $((SECONDS - began)) s" >&2
done
measured=$((SECONDS - began))

cat >"$work/draw.py" <<'PY'
"""Draws sides, compares them, and prints a row of the table for each change."""
import json
import pathlib
import random
import subprocess
import sys

gleaner, work, side, comparisons = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(1)
runs = lambda name: sorted((work / name).glob("*.json"))

def compared(base, new):
    """The exit code, and the verdicts of headline figures."""
    sides = [",".join(map(str, side)) for side in (base, new)]
    made = subprocess.run([gleaner, "compare", "-q", "--json", "--fail-on", "regression", *sides],
                          stdout=subprocess.PIPE, check=False)
    if made.returncode not in (0, 4, 5):
        sys.exit(f"gleaner compare: exit code {made.returncode}")
    headline = [f for f in json.loads(made.stdout)["against"][0]["figures"] if f["headline"]]
    return made.returncode, headline

def row(what, pairs):
    failed = changed = 0
    names = {}
    for base, new in pairs:
        code, headline = compared(base, new)
        failed += code == 4
        different = [f["name"] for f in headline if f["gate"] in ("regressed", "improved")]
        changed += bool(different)
        for name in different:
            names[name] = names.get(name, 0) + 1
    often = sorted(names, key=lambda name: -names[name])[:3]
    told = ", ".join(f"{name} ({names[name]})" for name in often) or "-"
    print(f"| {what} | {side} | {failed} of {len(pairs)} | {changed} of {len(pairs)} | {told} |", flush=True)

def in_turns(all):
    start = rng.randrange(len(all) - 2 * side + 1)
    window = all[start:start + 2 * side]
    a = [run for n, run in enumerate(window) if n % 4 in (0, 3)]
    b = [run for n, run in enumerate(window) if n % 4 in (1, 2)]
    return a[:side], b[:side]

def at_random(all):
    drawn = rng.sample(all, 2 * side)
    return drawn[:side], drawn[side:]

def dearer(path, level, factor):
    """The record with the latency of one level dearer, as a file."""
    record = json.loads(path.read_text())
    for found in record["levels"]:
        if found["name"] == level:
            for quantity in found["latency"].values():
                for key in ("value", "lo", "hi"):
                    if key in quantity:
                        quantity[key] *= factor
    changed = work / "dearer" / path.name
    changed.parent.mkdir(exist_ok=True)
    changed.write_text(json.dumps(record))
    return changed

same, fifth = runs("same"), max(comparisons // 5, 1)
print("| what | runs a side | gates failed | some headline figure different | which, most often |")
print("|---|--:|--:|--:|---|")
row("the same, in turns", [in_turns(same) for _ in range(comparisons // 2)])
row("the same, drawn at random", [at_random(same) for _ in range(comparisons - comparisons // 2)])
profiles = runs("chase")
row("the same chase, drawn at random", [at_random(profiles) for _ in range(fifth)])
for name, what in (("small", "without huge pages"), ("neighbour", "a neighbour on another CPU")):
    changed = runs(name)
    if len(changed) < side:
        print(f"| {what} | {side} | not measured: {len(changed)} runs | | |")
        continue
    row(what, [(rng.sample(same, side), rng.sample(changed, side)) for _ in range(fifth)])
for level in ("L2", "DRAM"):
    pairs = [at_random(same) for _ in range(fifth)]
    row(f"{level} 10% dearer in the records of one side",
        [(base, [dearer(run, level, 1.1) for run in new]) for base, new in pairs])
longer = runs("longer")
row("a chase of 12% more loads", [(rng.sample(profiles, side), rng.sample(longer, side)) for _ in range(fifth)])
PY

{
    echo "$rounds rounds in $measured s: $(ls "$work/same" | wc -l) runs of '$experiments --quick' as the machine is"
    echo
    python3 "$work/draw.py" "$gleaner" "$work" "$side" "$comparisons"
} | keep compare.md
