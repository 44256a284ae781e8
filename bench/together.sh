#!/usr/bin/env bash
# Sets of batch jobs on one CPU: one after the other, and together (`gleaner harvest --together`),
# by turns. A ratio above 1 says that together they are done sooner. Variables: ROUNDS (how often),
# SETS (which).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-3}
sets=${SETS:-chases mixed computing searches maps databases aligners solvers}
cc -O2 -o "$work/chase" "$root/bench/programs/chase.c"
cc -O2 -o "$work/join" "$root/bench/programs/join.c"
c++ -O2 -o "$work/search" "$root/bench/programs/search.cpp"
c++ -O2 -o "$work/map" "$root/bench/programs/map.cpp"
python3 "$root/bench/inputs.py" "$work"
sed '80,$d' "$work/joins.sql" >"$work/few.sql"
awk 'BEGIN { srand(7); for (i = 0; i < 600000; i++) printf "%d %x line %d of the text\n", int(rand() * 1e9), int(rand() * 1e9), i }' >"$work/text"
cd "$work"
case " $sets " in *" aligners "*) bwa index genome.fa 2>/dev/null ;; esac
python3 - "$gleaner" "$rounds" $sets <<'PY' | keep together.md
import json
import subprocess
import sys
import time
gleaner, rounds, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
SETS = {
    "chases": ["./chase 64 30000000"] * 4,
    "mixed": ["./chase 64 30000000", "./join 64 60000000", "gzip -c text", "sort text"],
    "computing": ["gzip -c text", "sha256sum text text text", "xz -1 -T1 -c text", "bzip2 -c text"],
    "searches": ["./search graph 1000 400"] * 4,
    "maps": ["./map 64 2"] * 4,
    "databases": ["sqlite3 -init few.sql :memory: .quit"] * 4,
    "aligners": ["bwa mem -t 1 genome.fa reads.fq", "minimap2 -t 1 -a genome.fa reads.fq"] * 2,
    "solvers": ["minisat -verb=0 large.cnf"] * 4,
}
CPU = ["taskset", "-c", "0"]
# A solver says by its exit code whether there is a solution.
SAYS = [0, 10, 20]

def timed(run):
    begin = time.monotonic()
    run()
    return time.monotonic() - begin

def one_by_one(commands):
    for command in commands:
        subprocess.run(CPU + command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def together(commands, *options):
    ended = subprocess.run(CPU + [gleaner, "harvest", "-q", "--together", "--record", "run.json", *options] + commands,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if ended.returncode not in SAYS:
        sys.exit(f"{commands}: exit code {ended.returncode}")

print(f"One CPU, {rounds} rounds each.\n")
print("| set | one after the other | together | ratio | apart | work as told |")
print("|---|--:|--:|--:|--:|--:|")
for name in names:
    commands = SETS[name]
    subprocess.run(CPU + [gleaner, "harvest", "--dry-run", "--together"] + commands, capture_output=True)
    ratios = []
    for number in range(rounds):
        first, second = timed(lambda: one_by_one(commands)), timed(lambda: together(commands))
        ratios.append((first / second, first, second))
    ratios.sort()
    ratio, first, second = ratios[len(ratios) // 2]
    record = json.load(open("run.json"))
    work, apart = record["work"], record["apart"]
    told = f"{work['value']:.2f} [{work['lo']:.2f}, {work['hi']:.2f}]" if work.get("value") is not None else "not resolved"
    print(f"| {name} | {first:.2f} s | {second:.2f} s | {ratio:.2f} ({ratios[0][0]:.2f} to {ratios[-1][0]:.2f}) "
          f"| {apart.get('value', 0):.1f} s | {told} |", flush=True)
PY
