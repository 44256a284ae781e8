#!/usr/bin/env bash
# What scavengers do to the answers of redis and memcached, and how far they come, on the server's
# CPU: with the server alone, harvested, and under SCHED_IDLE, at 30, 50 and 70 % of the requests
# that it can answer. Requests come at random times, whether or not it keeps up, from another CPU.
#   served.sh [-o DIR] [SERVER...]     default: redis memcached
# Variables: SCAVENGERS (chase, tasks), SLOWDOWN (what is asked for), KEYS, SECONDS_EACH.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
servers=("$@")
[ ${#servers[@]} -gt 0 ] || servers=(redis memcached)
scavengers=${SCAVENGERS:-chase tasks} slowdown=${SLOWDOWN:-10%} keys=${KEYS:-300000} each=${SECONDS_EACH:-5}
for name in chase tasks; do cc -O2 -w -o "$work/$name" "$root/bench/programs/$name.c"; done
cc -O2 -w -o "$work/open_load" "$root/bench/programs/open_load.c" -lm
cd "$work"
python3 - "$root/bench" "$gleaner" "$slowdown" "$keys" "$each" "$scavengers" "${servers[@]}" <<'PY' | keep served.md
import signal
import subprocess
import sys
import time
sys.path.append(sys.argv.pop(1))
from progress import CPU, forget, pace_alone, steps
gleaner, slowdown, keys, each, scavengers, servers = *sys.argv[1:4], float(sys.argv[4]), sys.argv[5].split(), sys.argv[6:]
PORT = {"redis": "17379", "memcached": "17211"}
SERVER = {
    "redis": ["redis-server", "--port", PORT["redis"], "--save", "", "--appendonly", "no", "--loglevel", "warning"],
    "memcached": ["memcached", "-u", "nobody", "-p", PORT["memcached"], "-t", "1", "-m", "1024"],
}
SCAVENGER = {"chase": "./chase 64 0 progress", "tasks": "./tasks 0 0 progress"}

def load(server, what, seconds):
    command = ["taskset", "-c", "1", "./open_load", server, PORT[server], str(what), keys, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None
    return [float(word) for word in done.stdout.split()]

def started(server, way, scavenger):
    """The server, filled, and what runs beside it."""
    forget()
    command, beside = CPU + SERVER[server], None
    if way == "harvested":
        command = CPU + [gleaner, "harvest", "-q", "--max-slowdown", slowdown, "--scavenger", SCAVENGER[scavenger], "--"]
        command += SERVER[server]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open("errors", "w"))
    for _ in range(600):
        filled = subprocess.run(["./open_load", server, PORT[server], "fill", keys], capture_output=True)
        if filled.returncode == 0:
            break
        time.sleep(0.1)
    else:
        sys.exit(f"{server} {way}: {open('errors').read()}")
    if way == "SCHED_IDLE":
        beside = subprocess.Popen(CPU + ["chrt", "-i", "0"] + SCAVENGER[scavenger].split(), stdout=subprocess.DEVNULL)
    time.sleep(2)
    return process, beside

def end(process, beside):
    if beside:
        beside.kill()
        beside.wait()
    process.send_signal(signal.SIGTERM)
    process.wait()

print(f"A server on one CPU, a scavenger beside it ({slowdown} allowed), requests for {keys} keys from another CPU, at random times; "
      f"{each:g} s each. Times are from when a request was due to its answer. Work is a share of what the scavenger does alone.\n")
print("| server | scavenger | of the most | way | answered a second | median, us | 95 % | 99 % | work |")
print("|---|---|--:|---|--:|--:|--:|--:|--:|")
for server in servers:
    for scavenger in scavengers:
        pace, most = pace_alone(SCAVENGER[scavenger], 2.5, 2), None
        rows = []
        for way in ["alone", "harvested", "SCHED_IDLE"]:
            process, beside = started(server, way, scavenger)
            most = most or load(server, "most", 3)[0]
            for share in (0.3, 0.5, 0.7):
                load(server, share * most, 1)
                before, at = steps(), time.monotonic()
                told = load(server, share * most, each)
                done = (steps() - before) / (time.monotonic() - at) / pace
                rows.append((share, way, told, done if way != "alone" else None))
            end(process, beside)
        for share, way, told, done in sorted(rows, key=lambda row: row[0]):
            figures = " | ".join(f"{figure:.0f}" for figure in told) if told else "it fell behind | | |"
            print(f"| {server} | {scavenger} | {share:.0%} | {way} | {figures} | {'' if done is None else f'{done:.3f}'} |", flush=True)
PY
