"""The tables of stored.sh.

usage: stored.py row NAME DIRECTORY | sum ROWS | files GLEANER MODULE FOLDER | gigabyte GLEANER
"""
import collections
import glob
import json
import math
import os
import random
import resource
import subprocess
import sys
import time

FIRST = 10


def interval(part, whole):
    """Wilson's, of a share, 95%."""
    z = 1.96
    p = part / whole
    middle = p + z * z / (2 * whole)
    half = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    return (middle - half) / (1 + z * z / whole), (middle + half) / (1 + z * z / whole)


class Side:
    """The profiles of some runs, added up."""

    def __init__(self, pattern):
        self.samples, self.waiting, self.loads, self.names = 0, 0.0, collections.Counter(), {}
        for path in glob.glob(glob.escape(os.path.dirname(pattern)) + "/" + os.path.basename(pattern)):
            with open(path) as file:
                profile = json.load(file)
            samples = profile["sampling"]["samples"]
            self.samples += samples
            self.waiting += samples * profile["summary"]["memory_bound"].get("value", 0.0)
            for load in profile["loads"]:
                if not load["module"].startswith("/"):
                    continue  # code that is made as it runs
                key = os.path.basename(os.path.realpath(load["module"])), load["address"]
                self.loads[key] += load["samples"]
                self.names[key] = load.get("function") or "?"
        # By samples, then by place.
        self.order = sorted(self.loads, key=lambda key: (-self.loads[key], key))

    def first(self):
        return self.order[:FIRST]

    def sure(self, samples):
        """Those of the first ten that would stand before the eleventh if there were that many samples."""
        eleventh = self.loads[self.order[FIRST]] if len(self.order) > FIRST else 0
        ends = lambda count: interval(count / self.samples * samples, samples)
        return [key for key in self.first() if ends(self.loads[key])[0] > ends(eleventh)[1]]

    def share(self, key):
        return f"{100 * self.loads[key] / self.samples:.1f}%"


def row(name, directory):
    own, stored = Side(directory + "/own.*.json"), Side(directory + "/stored.*.json")
    if not own.samples or not stored.samples:
        return f"| {name} | {own.samples} / {stored.samples} | no samples | | | | |"
    fewer = min(own.samples, stored.samples)
    both = set(own.first()) & set(stored.first())
    sure = list(dict.fromkeys(own.sure(fewer) + stored.sure(fewer)))
    differ = [key for key in sure if key not in both]
    shown = [
        f"{key[0]}:{key[1]:#x} ({(own.names | stored.names)[key][:60]}) {own.share(key)} / {stored.share(key)}"
        for key in differ
    ]
    waits = [f"{100 * side.waiting / side.samples:.0f}%" for side in (own, stored)]
    cells = [name, f"{own.samples} / {stored.samples}", " / ".join(waits), str(len(sure)), str(len(sure) - len(differ)),
             str(len(both)), ", ".join(shown).replace("|", "/")]
    return f"| {' | '.join(cells)} |"


def summed(path):
    with open(path) as file:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in file]
    rows = [cells for cells in rows if cells[3].isdigit()]
    sure, found = sum(int(cells[3]) for cells in rows), sum(int(cells[4]) for cells in rows)
    rows = [cells for cells in rows if cells[3] != "0"]
    same = sum(cells[3] == cells[4] for cells in rows)
    return (f"\nOf {len(rows)} programs with such loads, {same} have all of them in both first tens; of {sure} such loads, {found} are."
            " Sure: beyond chance (95%) before the eleventh, with as many samples as the profile has that has fewer.")


# Ends of names that files of pprof have.
ENDS = (".pb", ".pb.gz", ".pprof", ".pprof.gz", ".prof")


def said(gleaner, path):
    """What is said of a file, without its name: whether it is read, and what its samples name."""
    out = "of-file.json"
    done = subprocess.run([gleaner, "profile", "-q", "-o", out, "--pprof", path], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        with open(out) as file:
            profile = json.load(file)
        if not profile["sampling"]["samples"]:
            return "read: it has no samples"
        whys = [refusal["why"] for refusal in profile["refusals"]]
        only_names = any("name functions and no instructions: only" in why for why in whys)
        return "read, by function: it has no addresses" if only_names else "read, with addresses"
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1].replace(path, "FILE")
    # What its samples are instead differs from file to file.
    last = last.split(": its samples are ")[0].removeprefix("gleaner: ")
    return f"refused: {last}" if done.returncode == 2 else f"FAILED ({done.returncode}): {last}"


def files(gleaner, module, folder):
    found = collections.defaultdict(list)
    for place, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.endswith(ENDS):
                path = os.path.join(place, name)
                found[said(gleaner, path)].append(os.path.relpath(path, folder))
    return "\n".join(f"| {module} | {len(paths)} | {what.replace('|', '/')} | {paths[0]} |"
                     for what, paths in sorted(found.items(), key=lambda it: (-len(it[1]), it[0])))


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def gigabyte(gleaner, path="gigabyte.pb"):
    """Samples of 50,000 places, each with a stack that no other one has."""
    random.seed(9)
    places = [varint(1 + number) for number in range(50_000)]
    halves = [[b"".join(random.choices(places, k=14)) for _ in range(4000)] for _ in range(2)]
    size, samples = 0, 0
    with open(path, "wb") as out:
        out.write(field(1, b"\x08\x01\x10\x02") + field(11, b"\x08\x03\x10\x04") + b"\x60" + varint(10_000_000))
        for text in (b"", b"samples", b"count", b"cpu", b"nanoseconds"):
            out.write(field(6, text))
        for number in range(50_000):
            place = b"\x08" + varint(number + 1) + b"\x18" + varint(0x400000 + 16 * number)
            out.write(field(4, place + field(4, b"\x08" + varint(number // 20 + 1))))
        for number in range(2500):
            out.write(field(5, b"\x08" + varint(number + 1) + b"\x10" + varint(5 + number)))
            out.write(field(6, b"function %d" % number))
        for inner in halves[0]:
            chunk = b"".join(field(2, field(1, inner + outer) + b"\x12\x01\x01") for outer in halves[1])
            size += out.write(chunk)
            samples += len(halves[1])
            if size > 1 << 30:
                break
    began = time.monotonic()
    subprocess.run([gleaner, "profile", "-q", "-o", "gigabyte.json", "--pprof", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    os.remove(path)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (f"A gigabyte of pprof ({samples / 1e6:.1f} million samples, each with a stack of its own, 50,000 places) took"
            f" {took:.0f} s ({used.ru_utime + used.ru_stime:.0f} s of CPU time) and {used.ru_maxrss >> 10} MiB.")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print({"row": row, "sum": summed, "files": files, "gigabyte": gigabyte}[what](*rest))
