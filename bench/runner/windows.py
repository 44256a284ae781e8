"""Primaries that run until they are stopped, watched over windows: `pace = "steps"`, by the steps
that they tell, and `pace = "load"`, by the answers that a client counts on the other CPU."""
import shlex
import subprocess
import time

from . import host, record, ways
from .beside import Beside, on
from .build import Failed
from .cases import PROGRAMS
from .progress import counts, percentile


def _steps(running, seconds):
    """Pace of the primary, and how long its answers took where it counts them."""
    own = running.progress[0]
    answers = PROGRAMS[running.primary_name].get("answers")
    began, before, first = time.monotonic(), own.steps(), own.answers()
    time.sleep(seconds)
    found = {"pace": (own.steps() - before) / (time.monotonic() - began)}
    if answers:
        lengths = [b - a for a, b in zip(counts(first), counts(own.answers()))]
        found |= {f"p{share}": percentile(lengths, share / 100) for share in (50, 95, 99)}
    return found


def _asked(running, case, rate, seconds):
    """What the client of a server tells: answers a second and percentiles of their times."""
    entry = PROGRAMS[running.primary_name]
    told = entry["load"].format(rate=rate, keys=case.keys, seconds=seconds)
    done = subprocess.run(on(case.other, *shlex.split(told)), cwd=host.WORK, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip())
    figures = [float(word) for word in done.stdout.split()]
    return dict(zip(("pace", "p50", "p95", "p99"), figures))


def _with_work(running, watch):
    before, began = running.done(), time.monotonic()
    found = watch()
    if running.count:
        found["work"] = (running.done() - before) / (time.monotonic() - began)
    return found


def _watched(running, case, watch):
    """One window, or turns of windows with scavengers and without: lists of figures, and lists of
    those while the scavengers slept."""
    if not case.turns or not running.count:
        return [_with_work(running, watch)], []
    beside, asleep = [], []
    short = min(0.1, case.seconds / 4)
    for _ in range(case.turns):
        running.sleep(False)
        time.sleep(short)
        beside.append(_with_work(running, watch))
        running.sleep(True)
        time.sleep(short)
        asleep.append(watch())
    return beside, asleep


def steps(case, way, primary, scavenger, count, rate=0):
    """One run; what was seen, by load (there is one: none)."""
    with Beside(case, way, primary, scavenger, count, rate) as running:
        running.ready()
        seen = _watched(running, case, lambda: _steps(running, case.seconds))
        running.sleep(False)
    for figures in seen[0]:
        figures |= record.told()
    return {None: seen}


def _wait_for(running):
    """Until the server is filled, or answers."""
    command = PROGRAMS[running.primary_name]["ready"].format(keys=running.case.keys)
    end = time.monotonic() + 120
    while time.monotonic() < end and running.process.poll() is None:
        if subprocess.run(shlex.split(command), cwd=host.WORK, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    raise Failed(f"{running.primary_name} does not answer\n{running.errors()}")


def load(case, way, primary, scavenger, count, most):
    """One run of a server; what was seen, by load."""
    with Beside(case, way, primary, scavenger, count) as running:
        _wait_for(running)
        running.ready()
        seen = {}
        for share in case.loads:
            rate = "most" if share == "most" else share * most
            _asked(running, case, rate, 1)
            seen[share] = _watched(running, case, lambda rate=rate: _asked(running, case, rate, case.seconds))
        running.sleep(False)
    return seen


def most_answers(case, primary):
    """Answers a second of the server alone, asked as fast as it answers."""
    with Beside(case, ways.Way("alone", "alone"), primary, None, 1) as running:
        _wait_for(running)
        return _asked(running, case, "most", 3)["pace"]
