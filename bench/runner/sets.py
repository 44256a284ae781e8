"""Sets of commands that are all done: one after the other, and together, by turns."""
import shlex
import subprocess
import time

from . import build, cases, host, record
from .beside import on, words

# A solver says by its exit code whether there is a solution.
SAYS = (0, 10, 20)


def _timed(commands):
    began = time.monotonic()
    for command in commands:
        ended = subprocess.run(command, cwd=host.WORK, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
        if ended.returncode not in SAYS:
            raise build.Failed(f"{shlex.join(command)}: exit code {ended.returncode}")
    return time.monotonic() - began


def run(case, results, say):
    results.ways = ["together"]
    for name in case.sets:
        try:
            _set(case, name, results, say)
        except build.Failed as failure:
            say(f"{name}: failed: {failure}")
            results.failed = True
    return results


def _set(case, name, results, say):
    programs = cases.SETS[name]
    missing = [program for program in programs if not cases.is_here(program)]
    if missing:
        say(f"{name}: {missing[0]} is not installed: left out")
        return
    for program in programs:
        build.program(program)
    commands = [words(case, program, 0, 1, 0) for program in programs]
    joined = [shlex.join(command) for command in commands]
    harvest = on(case.cpu, host.GLEANER, "harvest", "-q", "--together", "--record", "run.json")
    subprocess.run([*harvest, "--dry-run", *joined], cwd=host.WORK, capture_output=True, check=False)
    for number in range(1, case.rounds + 1):
        say(f"round {number} of {case.rounds}: {name}")
        apart = _timed([on(case.cpu, *command) for command in commands])
        together = _timed([harvest + joined])
        told = record.read()
        results.add((name, None, 1, None), "together", number, [{
            "one by one": apart, "together": together, "sooner": apart / together,
            "time apart": record.value(told["apart"]), "work as told": record.value(told["work"]),
        }])
