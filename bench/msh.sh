#!/usr/bin/env bash
# A pair like that of the artifact of MSH, all on one CPU, both as `cc -O0` makes them: a pointer
# chase, and beside it a loop whose tasks are ten additions. How much of its pace alone each has,
# harvested at several limits, and by the kernel under SCHED_IDLE; all ways in turns.
# Variables: ROUNDS, SECONDS_EACH (of a run), SLOWDOWNS (what is asked for, a list).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-5} each=${SECONDS_EACH:-8} slowdowns=${SLOWDOWNS:-5% 20%}
cc -O0 -o "$work/clocked" "$root/bench/programs/clocked.c"
cc -O0 -o "$work/tasks" "$root/bench/programs/tasks.c"
cd "$work"
python3 - "$root/bench" "$gleaner" "$rounds" "$each" $slowdowns <<'PY' | keep msh.md
import json
import statistics
import subprocess
import sys
sys.path.append(sys.argv.pop(1))
from progress import CPU, forget, pace_alone, steps
gleaner, rounds, each, limits = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
PRIMARY, TASKS = ["./clocked", "64", str(each)], "./tasks 0 0 progress"

def chase(prefix=()):
    text = subprocess.run(CPU + list(prefix) + PRIMARY, capture_output=True, text=True, check=True).stdout
    return float(text.split()[0])

def beside_idle():
    forget()
    process = subprocess.Popen(CPU + ["chrt", "-i", "0"] + TASKS.split(), stdout=subprocess.DEVNULL)
    pace = chase()
    done = steps() / each
    process.kill()
    process.wait()
    return pace, done, None

def harvested(limit):
    forget()
    pace = chase([gleaner, "harvest", "-q", "--max-slowdown", limit, "--record", "run.json",
                  "--scavenger", TASKS, "--"])
    told = json.load(open("run.json"))["slowdown"]
    return pace, steps() / each, told

harvested("5%")  # twins are made
ways = {f"harvested, {limit}": lambda limit=limit: harvested(limit) for limit in limits}
ways["SCHED_IDLE"] = beside_idle
rows = {way: [] for way in ways}
for _ in range(rounds):
    first = chase(), pace_alone(TASKS, each / 4, each / 4)
    got = {way: run() for way, run in ways.items()}
    last = chase(), pace_alone(TASKS, each / 4, each / 4)
    alone = [(a + b) / 2 for a, b in zip(first, last)]
    for way, (pace, done, told) in got.items():
        rows[way].append((pace / alone[0], done / alone[1], told))

def spread(values):
    return f"{statistics.median(values):.3f} [{min(values):.3f}, {max(values):.3f}]"

print(f"One CPU, both programs made with -O0; {rounds} rounds of runs of {each:g} s; median [least, most] of the "
      "shares of the paces alone, which were measured before and after in each round.\n")
print("| way | chase | tasks |\n|---|--:|--:|")
for way, runs in rows.items():
    print(f"| {way} | {spread([run[0] for run in runs])} | {spread([run[1] for run in runs])} |")
PY
