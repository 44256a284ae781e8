"""The table of coverage.sh: how much of the stall the loads carry that a profile names first.

usage: coverage.py DIRECTORY PROGRAM...
"""
import json
import os
import re
import statistics
import sys

NAMED = 10
# What a read takes that hits: the core hides no more of it than all.
HIT_NS = 1.5
# A program with a smaller part of its time beyond hits computes.
COMPUTES = 0.05
# One with more than this is one with many misses.
MANY = 0.2


def loads(path):
    with open(path) as file:
        profile = json.load(file)
    return profile, {(os.path.realpath(load["module"]), load["address"]): load for load in profile["loads"]}


def executed(path):
    """Executions, and misses of the first and of the last cache when reading, of each instruction."""
    counts, module, address, skip = {}, "", 0, False
    names = {}
    cost = re.compile(r"^(0x[0-9a-f]+|[+-]\d+|\*) (\S+) ?(.*)$")
    with open(path) as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith(("ob=", "cob=")):
                number, _, name = line[line.index("=") + 1:].partition(" ")
                # Named where it is met first, be that as the object of what is called.
                if name:
                    names[number] = os.path.realpath(name)
                if line.startswith("ob="):
                    module = names.get(number, "")
            elif line.startswith("calls="):
                skip = True
            elif found := cost.match(line):
                at = found[1]
                if at.startswith("0x"):
                    address = int(at, 16)
                elif at != "*":
                    address += int(at)
                if skip:
                    # What is called costs: counted where it is spent.
                    skip = False
                    continue
                figures = [int(n) for n in found[3].split()] + [0] * 9
                before = counts.get((module, address), (0, 0, 0))
                counts[module, address] = (
                    before[0] + figures[0], before[1] + figures[4], before[2] + figures[7],
                )
    return counts


def first(figures):
    return set(sorted(figures, key=figures.get, reverse=True)[:NAMED])


def covered(named, truth):
    everything = sum(truth.values())
    return sum(truth.get(load, 0) for load in named) / everything if everything else None


def seconds(path):
    return float(open(path + ".seconds").read())


def shown(part):
    return "-" if part is None else f"{part:.0%}"


rows, at_all = [], []
for program in sys.argv[2:]:
    here = f"{sys.argv[1]}/{program}"
    profile, found = loads(f"{here}/profile.json")
    counts = executed(f"{here}/callgrind")
    named = [key for key, load in list(found.items())[:NAMED]]
    runs = [name for name in sorted(os.listdir(here)) if re.fullmatch(r"clock\d+\.json", name)]
    clock, by_run = {}, []
    for run in runs:
        reference, seen = loads(f"{here}/{run}")
        cpu_ns = reference["summary"]["cpu_time"]["value"] * 1e9
        by_run.append(cpu_ns)
        for key, load in seen.items():
            waited = load["stall"]["value"] * cpu_ns - counts.get(key, (0,))[0] * HIT_NS
            clock[key] = clock.get(key, 0) + waited / len(runs)
    clock = {key: waited for key, waited in clock.items() if waited > 0}
    part = sum(clock.values()) / statistics.mean(by_run)
    _, probed = loads(f"{here}/probes.json")
    probes = {}
    for key, load in probed.items():
        latency = load["latency"].get("value")
        if latency is not None and key in counts:
            probes[key] = counts[key][0] * max(latency - HIT_NS, 0)
    misses = {key: last for key, (_, _, last) in counts.items() if last}
    row = {
        "program": program,
        "beyond hits": part,
        "ten, by clock": covered(named, clock),
        "best ten": covered(first(clock), clock),
        "ten, by probes": covered(named, probes),
        "cg ten": covered(first(misses), clock),
        "named": len(named),
        "alone": seconds(f"{here}/alone"),
        "profiled": seconds(f"{here}/profile.json"),
        "callgrind": seconds(f"{here}/callgrind"),
    }
    rows.append(row)

print("| program | seconds | time beyond hits | ten named, by clock | best ten | ten named, by probes | "
      "callgrind's ten, by clock | profiled, times as long | callgrind, times as long |")
print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
for row in rows:
    print(f"| {row['program']} | {row['alone']:.2f} | {row['beyond hits']:.1%} | {shown(row['ten, by clock'])} | "
          f"{shown(row['best ten'])} | {shown(row['ten, by probes'])} | {shown(row['cg ten'])} | "
          f"{row['profiled'] / row['alone']:.2f} | {row['callgrind'] / row['alone']:.0f} |")


def mean(rows, column):
    figures = [row[column] for row in rows if row[column] is not None]
    return shown(statistics.mean(figures)) if figures else "-"


many = [row for row in rows if row["beyond hits"] >= MANY]
some = [row for row in rows if row["beyond hits"] >= COMPUTES]
for what, group in [(f"{len(many)} with many misses", many), (f"all {len(some)} that wait", some)]:
    print(f"\nmean over {what}: clock {mean(group, 'ten, by clock')}, probes {mean(group, 'ten, by probes')}, "
          f"callgrind's ten {mean(group, 'cg ten')}")
for row in rows:
    if row["beyond hits"] < COMPUTES:
        print(f"\n{row['program']} computes: {row['named']} loads named")
