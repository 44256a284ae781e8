"""The cells of bench/table.sh, run in a directory with the programs and their inputs."""
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

gleaner = sys.argv[1]
# What is called python3 may be a script that looks for it.
PYTHON = os.path.realpath(sys.executable)
PRIMARIES = {
    "join": "./join 64 72000000", "map": "./map 64 2", "sqlite3": "sqlite3 -init fewer.sql :memory: .quit",
    "minisat": "minisat -verb=0 large.cnf", "minimap2": "minimap2 -t 1 -a genome.fa reads.fq reads.fq",
    "bwa": "bwa mem -t 1 genome.fa reads.fq", "python3": f"{PYTHON} dict.py 12000000",
    "redis": "redis-server --port 7381 --save  --appendonly no --daemonize no",
}
SCAVENGERS = {
    "gzip": "gzip -c data", "xz": "xz -1 -c data", "bzip2": "bzip2 -c data",
    "sha256sum": "sha256sum " + " ".join(["data"] * 40), "sort": "sort -S 200M data",
    "sqlite3": "sqlite3 -init joins.sql :memory: .quit", "python3": f"{PYTHON} dict.py 100000000",
    "search": "./search graph 1000",
}
# These print a line as they go on; what they read is their own files, at the start.
PRINTS = ["sqlite3", "python3", "search"]
CPU = ["taskset", "-c", "0"]
ALLOWED = [float(percent) for percent in os.environ["ALLOWED"].split()]

def words(command):
    return ["" if word == "''" else word for word in command.replace("--save  ", "--save '' ").split(" ")]

def moved(pid, name):
    """Bytes that a scavenger has got through."""
    try:
        fields = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
        return int(fields["wchar"]) + (0 if name in PRINTS else int(fields["rchar"]))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None

def descendants(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found + [below for child in found for below in descendants(child)]

class Progress:
    """Of a process, looked at again and again."""
    def __init__(self, name):
        self.name = name
        self.begin, self.bytes, self.until = time.monotonic(), 0, time.monotonic()
    def look(self, pid):
        now = moved(pid, self.name) if pid else None
        if now is not None:
            self.bytes, self.until = max(now, self.bytes), time.monotonic()
    def rate(self):
        return self.bytes / max(self.until - self.begin, 1e-3)

def scavenger_of(pid, name):
    """The process below a harvest that runs the scavenger; its name may be cut."""
    for child in descendants(pid):
        try:
            line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            status = pathlib.Path(f"/proc/{child}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name in status.splitlines()[0] or any(name.encode() in word for word in line[:1]):
            yield child

def client():
    """Works with redis until it has had its answers; how long that took."""
    for _ in range(300):
        if subprocess.run(["redis-cli", "-p", "7381", "ping"], capture_output=True).stdout == b"PONG\n":
            break
        time.sleep(0.05)
    begin = time.monotonic()
    subprocess.run(["taskset", "-c", "1", "redis-benchmark", "-p", "7381", "-q", "-t", "set,get", "-n", "200000", "-c", "8",
                    "-r", "1000000", "-d", "100"], capture_output=True, check=True)
    took = time.monotonic() - begin
    subprocess.run(["redis-cli", "-p", "7381", "shutdown", "nosave"], capture_output=True)
    return took

def watched(process, of_client, look):
    """How long the primary's work took."""
    begin = time.monotonic()
    if of_client:
        result = []
        thread = threading.Thread(target=lambda: result.append(client()))
        thread.start()
        while thread.is_alive():
            look()
            time.sleep(0.02)
        process.wait()
        return result[0]
    while process.poll() is None:
        look()
        time.sleep(0.01)
    return time.monotonic() - begin

def beside(prefix, primary, scavenger):
    with open("beside", "wb") as out, open(os.devnull, "wb") as none:
        other = subprocess.Popen(CPU + prefix + words(SCAVENGERS[scavenger]), stdout=out, stderr=none)
        process = subprocess.Popen(CPU + words(PRIMARIES[primary]), stdout=none, stderr=none)
        progress = Progress(scavenger)
        took = watched(process, primary == "redis", lambda: progress.look(other.pid))
        other.kill()
        other.wait()
    return took, progress.rate()

def harvested(primary, scavenger, percent):
    command = CPU + [gleaner, "harvest", "-q", "--max-slowdown", f"{percent:g}%", "--record", "run.json",
                     "--scavenger-out", "harvested", "--scavenger", SCAVENGERS[scavenger], "--"]
    progress, seen = Progress(scavenger), []
    def look():
        if not seen:
            seen.extend(scavenger_of(process.pid, SCAVENGERS[scavenger].split()[0].split("/")[-1]))
            if not seen:
                progress.begin = time.monotonic()
                return
        for pid in seen:
            progress.look(pid)
    with open(os.devnull, "wb") as none:
        process = subprocess.Popen(command + words(PRIMARIES[primary]), stdout=none, stderr=none)
        took = watched(process, primary == "redis", look)
    if primary != "redis":
        took = json.load(open("run.json"))["wall"]["value"]
    return took, progress.rate()

def pace_alone(name, seconds):
    with open("alone", "wb") as out, open(os.devnull, "wb") as none:
        process = subprocess.Popen(CPU + words(SCAVENGERS[name]), stdout=out, stderr=none)
        progress = Progress(name)
        while process.poll() is None and time.monotonic() - progress.begin < seconds:
            progress.look(process.pid)
            time.sleep(0.01)
        process.kill()
        process.wait()
    return progress.rate()

def time_alone(primary):
    with open(os.devnull, "wb") as none:
        process = subprocess.Popen(CPU + words(PRIMARIES[primary]), stdout=none, stderr=none)
        return watched(process, primary == "redis", lambda: None)

def waits(primary):
    """The share of its time that a primary waits for memory."""
    with open(os.devnull, "wb") as none:
        process = subprocess.Popen(CPU + [gleaner, "profile", "-q", "--output", "profile.json", "--"] + words(PRIMARIES[primary]),
                                   stdout=none, stderr=none)
        watched(process, primary == "redis", lambda: None)
    share = json.load(open("profile.json"))["summary"]["memory_bound"]
    return share.get("value")

def main():
    primaries, scavengers = os.environ["PRIMARIES"].split(), os.environ["SCAVENGERS"].split()
    rates = {name: pace_alone(name, 3) for name in scavengers}
    ways = [f"{percent:g}%" for percent in ALLOWED] + ["SCHED_IDLE", "nice 19"]
    print("Wall time of the primary over that alone, and the scavenger's pace as a share of that alone.\n")
    print("| primary | scavenger | " + " | ".join(f"{way}, primary | scavenger" for way in ways) + " |")
    print("|---|---|" + "--:|--:|" * len(ways))
    kept = cells = no_worse = compared = 0
    for primary in primaries:
        subprocess.run(CPU + [gleaner, "harvest", "--dry-run", "-q", "--"] + words(PRIMARIES[primary]), capture_output=True)
        waiting = waits(primary)
        before = time_alone(primary)
        for scavenger in scavengers:
            times, paces = [], []
            for percent in ALLOWED:
                took, rate = harvested(primary, scavenger, percent)
                times.append(took)
                paces.append(rate / rates[scavenger])
            for prefix in (["chrt", "-i", "0"], ["nice", "-n", "19"]):
                took, rate = beside(prefix, primary, scavenger)
                times.append(took)
                paces.append(rate / rates[scavenger])
            after = time_alone(primary)
            base, spread = (before + after) / 2, abs(before - after) / min(before, after)
            before = after
            for took, percent in zip(times, ALLOWED):
                cells += 1
                kept += took / base <= 1 + percent / 100 + spread
            compared += 1
            no_worse += max(paces[:len(ALLOWED)]) + 0.01 >= max(paces[len(ALLOWED):])
            row = " | ".join(f"{took / base:.3f} | {pace:.3f}" for took, pace in zip(times, paces))
            waits_for = "?" if waiting is None else f"{waiting:.0%}"
            print(f"| {primary} ({base:.2f} s, {spread:.1%}; waits {waits_for}) | {scavenger} | {row} |", flush=True)
    print(f"\nThe slowdown is what was allowed, and the difference of the runs alone, in {kept} of {cells} cells. "
          f"The pace is at least that by the kernel's priorities, to 0.01, in {no_worse} of {compared}.")

main()
