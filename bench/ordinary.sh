#!/usr/bin/env bash
# What ordinary programs get done beside a chase that never sleeps, all on one CPU: harvested, and
# under SCHED_IDLE and at nice 19, by the kernel alone. The C++ search is counted in its lines, the
# others in how much of what they write is there when the chase ends, or when they ended. Outputs
# are compared with those of the programs alone.
# Variables: SECONDS_EACH (of a run), SLOWDOWN (what is asked for), PROGRAMS (a list of names).
set -euo pipefail
. "$(dirname "$0")/common.sh"
each=${SECONDS_EACH:-20} slowdown=${SLOWDOWN:-10%}
programs=${PROGRAMS:-search static-search xz gzip bzip2 sha256sum sqlite3 sort python3}
cc -O2 -o "$work/clocked" "$root/bench/programs/clocked.c"
c++ -O2 -o "$work/search" "$root/bench/programs/search.cpp"
c++ -O2 -static-pie -o "$work/static-search" "$root/bench/programs/search.cpp"
python3 "$root/bench/inputs.py" "$work"
cd "$work"
python3 - "$gleaner" "$each" "$slowdown" $programs <<'PY' | keep ordinary.md
import json
import subprocess
import sys
import time
gleaner, each, slowdown, names = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:]
COMMANDS = {
    "search": "./search graph 1000", "static-search": "./static-search graph 1000",
    "xz": "xz -1 -c data", "gzip": "gzip -c data", "bzip2": "bzip2 -c data", "sha256sum": "sha256sum data data data",
    "sqlite3": "sqlite3 -init joins.sql :memory: .quit", "sort": "sort data",
    # What is called python3 may be a script that looks for it.
    "python3": f"{sys.executable} dict.py",
}
CPU = ["taskset", "-c", "0"]
PRIMARY = ["./clocked", "256", str(each)]

def alone(command, seconds):
    """What it writes, and how long that took, for `seconds` at most."""
    begin = time.monotonic()
    with open("alone", "wb") as out:
        process = subprocess.Popen(CPU + command.split(), stdout=out)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return open("alone", "rb").read(), time.monotonic() - begin

def beside(prefix, command):
    """The same beside the chase; and the pace of that."""
    with open("beside", "wb") as out:
        primary = subprocess.Popen(CPU + PRIMARY, stdout=subprocess.PIPE)
        begin = time.monotonic()
        process = subprocess.Popen(CPU + prefix + command.split(), stdout=out)
        took = None
        while primary.poll() is None:
            if took is None and process.poll() is not None:
                took = time.monotonic() - begin
            time.sleep(0.02)
        took = took or time.monotonic() - begin
        process.kill()
        process.wait()
    return open("beside", "rb").read(), took, float(primary.stdout.read().split()[0])

def harvested(command):
    run = CPU + [gleaner, "harvest", "-q", "--max-slowdown", slowdown, "--record", "run.json",
                 "--scavenger-out", "harvested", "--scavenger", command, "--"]
    subprocess.run(run[:-1] + ["--dry-run", "--"] + PRIMARY, capture_output=True)
    output = subprocess.run(run + PRIMARY, capture_output=True, text=True, check=True)
    record = json.load(open("run.json"))["scavengers"][0]
    times = record["times"]
    value = lambda quantity: quantity.get("value", float("nan"))
    took = value(times["aboard"]) + value(times["at_home"])
    trips = sum(trip["count"] for trip in record["trips_home"])
    details = (value(times["aboard"]), trips, value(record["visits_home"]), value(times["lent"]))
    return open("harvested", "rb").read(), took, float(output.stdout.split()[0]), details

paces = [float(subprocess.run(CPU + PRIMARY, capture_output=True, text=True).stdout.split()[0]) for _ in range(2)]
pace = sum(paces) / 2
print(f"One CPU, a chase through 256 MiB beside each program for {each:g} s, {slowdown} allowed; the chase alone: "
      f"{pace / 1e6:.2f} million loads a second, two runs {abs(paces[0] / paces[1] - 1):.1%} apart. "
      "Paces are shares of those alone.\n")
print("| program | harvested | chase | SCHED_IDLE | chase | nice 19 | chase | aboard | trips | visits | each | output |")
print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
for name in names:
    command = COMMANDS[name]
    expected, needed = alone(command, 10)
    rate = len(expected) / needed
    def share(output, took):
        return f"{min(len(output), len(expected) if 'search' not in name else len(output)) / took / rate:.3f}"
    out, took, chase, (aboard, trips, visits, lent) = harvested(command)
    same = expected[:len(out)] == out[:len(expected)]
    row = [name, share(out, took), f"{chase / pace:.3f}"]
    for prefix in (["chrt", "-i", "0"], ["nice", "-n", "19"]):
        other, its, pace_beside = beside(prefix, command)
        row += [share(other, its), f"{pace_beside / pace:.3f}"]
    each_visit = f"{lent / visits * 1e6:.1f} us" if visits else "-"
    row += [f"{aboard:.1f} s", str(trips), f"{visits:.0f}", each_visit, "the same" if same else "DIFFERS"]
    print("| " + " | ".join(row) + " |", flush=True)
PY
