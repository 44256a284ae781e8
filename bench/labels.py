"""The table of labels.sh: what profiles say of loads, beside what is true of them.

usage: labels.py MACHINE-RECORD DIRECTORY-OF-PROFILES LIST
"""
import json
import math
import re
import sys

NEAR = 0.15  # how far a latency may be from what `measure` says
ROOT = json.load(open(sys.argv[1]))


def value(quantity):
    return (quantity or {}).get("value")


def result(experiment):
    return (ROOT["experiments"].get(experiment) or {}).get("result") or {}


def random_reads(size, pages):
    """The latency of random reads in an area of this size, between the sizes that were measured."""
    for curve in result("latency").get("curves", []):
        if (curve["pattern"], curve["access"], curve["pages"]["asked"]) == ("random", "read", pages):
            at = sorted((p["size"], value(p["latency"]["ns"])) for p in curve["points"])
            at = [(s, ns) for s, ns in at if ns]
            for (low, low_ns), (high, high_ns) in zip(at, at[1:]):
                if low <= size <= high:
                    part = math.log(size / low) / math.log(high / low)
                    return low_ns * (high_ns / low_ns) ** part
            return at[-1][1] if at and size > at[-1][0] else None
    return None


def figure(name, size):
    if name == "random":
        return random_reads(size, "thp")
    if name == "random_4K":
        return random_reads(size, "4K")
    if name == "walk":
        # What misses of all TLBs take, one after the other, on top of what the line takes.
        for kind in result("tlb").get("kinds", []):
            if kind["pages"]["asked"].startswith("4K"):
                misses = [value(level["miss"]["ns"]) for level in kind["levels"]]
                near = random_reads(size, "thp")
                return near + sum(misses) if near and all(misses) else None
    return None


def brief(quantity):
    if value(quantity) is None:
        return "-"
    return f"{quantity['value']:.1f} [{quantity['lo']:.1f}, {quantity['hi']:.1f}]"


def own_clock(name, pattern):
    """Time by reads, as the program prints it."""
    try:
        text = open(f"{sys.argv[2]}/{name}.txt").read()
    except OSError:
        return ""
    found = re.search(r": ([\d.]+) ns for each read", text)
    # Reads of several chains overlap.
    is_latency = pattern == "chain" and not name.startswith("eight")
    return found[1] if found and is_latency else ""


rows = [line.split() for line in open(sys.argv[3])]
right, near, compared = 0, 0, 0
print("| load | is | said | latency, ns | basis | `measure` | off | own clock | |")
print("|---|---|---|---|---|---:|---:|---:|---|")
for name, function, level, pattern, figure_name, size in rows:
    profile = json.load(open(f"{sys.argv[2]}/{name}.json"))
    found = [load for load in profile["loads"] if load.get("function") == function]
    expected = figure(figure_name, float(size))
    is_it = level if pattern == "-" else f"{level}, {pattern}"
    if not found:
        print(f"| {name} | {is_it} | no such load | - | | | | | wrong |")
        continue
    load = found[0]
    said = load["level"] if pattern == "-" else f"{load['level']}, {load['pattern']}"
    is_right = said == is_it
    right += is_right
    latency, off = load["latency"], ""
    if expected:
        compared += 1
        if value(latency) is not None:
            by = latency["value"] / expected - 1
            near += abs(by) <= NEAR
            off = f"{by:+.0%}"
    shown = f"{expected:.1f}" if expected else ""
    mark = "" if is_right else f"wrong: {load['level_because']}"
    basis = latency.get("basis", "-")
    own = own_clock(name, pattern)
    print(f"| {name} | {is_it} | {said} | {brief(latency)} | {basis} | {shown} | {off} | {own} | {mark} |")
print(f"\n{right} of {len(rows)} right in level and pattern; {near} of {compared} latencies within {NEAR:.0%}")
