"""Primaries that run to their end. How their pace is known:

told      they print it
wall      one over the time from start to end (in a harvest: by its run record)
client    a client asks a fixed number of requests, on another CPU; one over its time
fed       one over the time from when a pipe is filled, once all others are ready, to the end
"""
import os
import shlex
import subprocess
import threading
import time

from . import build, host, progress, record
from .beside import Beside, moved, on, words
from .build import Failed
from .cases import PROGRAMS


def _client(running, entry):
    """How long the client took; it begins once the server answers."""
    for _ in range(600):
        if subprocess.run(shlex.split(entry["ready"]), cwd=host.WORK, capture_output=True, check=False).returncode == 0:
            break
        time.sleep(0.05)
    began = time.monotonic()
    command = on(running.case.other, *shlex.split(entry["client"]))
    done = subprocess.run(command, cwd=host.WORK, capture_output=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.decode(errors="replace"))
    return time.monotonic() - began


def _pipe(running, entry):
    """The pipe that the primary reads, once it does: it is ready then."""
    path = host.WORK / entry["feed"][1]
    while running.process.poll() is None:
        try:
            return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb")
        except OSError:  # nothing reads it yet
            time.sleep(0.02)
    raise Failed(running.errors())


def _feed(out, entry):
    os.set_blocking(out.fileno(), True)
    with out:
        out.write((host.WORK / entry["feed"][0]).read_bytes())


def _until_end(running, entry):
    """How long the primary's work took; looks at the scavengers meanwhile."""
    began, running.before = time.monotonic(), running.done()
    if entry["pace"] == "client":
        took, failed = [], []
        def ask():
            try:
                took.append(_client(running, entry))
            except Failed as failure:
                failed.append(failure)
        asking = threading.Thread(target=ask)
        asking.start()
        while asking.is_alive():
            running.look()
            time.sleep(0.01)
        if failed:
            raise failed[0]
        return took[0]
    if entry["pace"] == "fed":
        out = _pipe(running, entry)
        running.ready()
        began, running.before = time.monotonic(), running.done()
        threading.Thread(target=_feed, args=(out, entry), daemon=True).start()
    while running.process.poll() is None:
        running.look()
        time.sleep(0.01)
    return time.monotonic() - began


def _pace(running, entry, took):
    printed = (host.WORK / "primary.out").read_text(errors="replace")
    if entry["pace"] == "told":
        return float(printed.split()[0])
    if entry["pace"] == "wall" and running.way.harvests:
        return 1 / record.value(record.read()["wall"])
    return 1 / took


def one(case, way, primary, scavenger, count):
    """One run; what was seen, by load (there is one: none)."""
    entry = PROGRAMS[primary]
    if way.harvests:
        # Files are rewritten before anything is timed.
        with Beside(case, way, primary, scavenger, count, dry=True) as planned:
            planned.process.wait()
    with Beside(case, way, primary, scavenger, count) as running:
        took = _until_end(running, entry)
        ended = time.monotonic()
        # A solver tells by its exit code what it found, which a profiler takes for a failure.
        if running.process.poll() not in (None, 0, 10, 20) and way.kind != "profiled":
            raise Failed(f"{primary}: exit code {running.process.returncode}\n{running.errors()}")
        found = {"pace": _pace(running, entry, took)}
        if running.count:
            steps = running.counts == "steps"
            span = case.seconds if entry["pace"] == "told" else took
            # A scavenger that counts bytes may have ended before.
            span = span if steps else max(running.until - (running.begin or ended), 1e-3)
            found["work"] = (running.done() - running.before) / span
    found |= record.told()
    if running.count == 1 and running.counts != "steps":
        found["output"] = _same(host.WORK / "scavenger.out", host.WORK / f"scavenger.{scavenger}.expected")
    return {None: ([found], [])}


def _same(path, expected):
    """Whether one output is the begin of the other; the first one is what others are held against."""
    output = path.read_bytes() if path.exists() else b""
    if not expected.exists():
        expected.write_bytes(output)
    first = expected.read_bytes()
    shorter = min(len(output), len(first))
    return "the same" if output[:shorter] == first[:shorter] else "DIFFERS"


def scavenger_alone(case, name, count):
    """The pace of one scavenger alone on the primary's CPU. What it writes is kept."""
    build.program(name)
    counts = PROGRAMS[name]["counts"]
    own = progress.Progress(host.WORK / "progress.1")
    host.compact_memory()
    with open(host.WORK / f"scavenger.{name}.expected", "wb") as out:
        process = subprocess.Popen(on(case.cpu, *words(case, name, 1, count, 0)), cwd=host.WORK,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
    try:
        if counts == "steps":
            if not progress.all_work([own], lambda: process.poll() is None):
                raise Failed(f"{name} made no progress")
            time.sleep(0.3)
            began, before = time.monotonic(), own.steps()
            time.sleep(min(case.solo, max(case.seconds, 0.5)))
            return (own.steps() - before) / (time.monotonic() - began)
        began, done, until = time.monotonic(), 0, time.monotonic()
        while process.poll() is None and time.monotonic() - began < case.solo:
            now = moved(process.pid, counts)
            if now:
                done, until = now, time.monotonic()
            time.sleep(0.01)
        return done / max(until - began, 1e-3)
    finally:
        process.kill()
        process.wait()
        own.close()
