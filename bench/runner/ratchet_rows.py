"""The rows of the ratchet: what is measured with both builds, and what a build needs for it.

chases-N              a chase, and N more in its stalls; the slowdown is not bounded
chases-5%, chases-20% the same with 2 and 4 guests and this slowdown allowed
msh                   a chase and a loop of ten additions, made as the artifact of MSH does
yields-NAME           a primary that never meets a guest, compared with the original program
profile               a hash join under `gleaner profile`
rewrite               the rewriting of a large program, proof included

To add a row: a function here that measures it in a round, and an entry in ROWS. It gives, by the
name of each figure, a list of pairs: old and new.
"""
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import typing

from . import build, cases, host, rounds, whole, windows
from .beside import Beside, on
from .build import Failed
from .progress import STOP, Progress
from .ways import Way

UNBOUNDED = "1000000%"
CHASES = {"mib": 128, "settle": 1, "options": "--home-cpus {other} --ring {count}"}
# Windows of the turns of three programs, and their seconds.
TURNS, WINDOW = 20, 0.1
PROFILED_SECONDS = 3
LONGEST = 300  # seconds until a command has failed
ALL_CPUS = f"0-{os.cpu_count() - 1}"


class SideFailed(Exception):
    """One of the builds came to nothing."""

    def __init__(self, side, failure):
        super().__init__(str(failure).strip() or type(failure).__name__)
        self.side = side


class Side:
    """One of the two builds, with a cache of its own."""

    def __init__(self, name, binary):
        self.name, self.binary = name, os.path.abspath(binary)
        self.cache = host.WORK / f"cache.{name}"

    @functools.cache
    def _help(self, verb):
        done = subprocess.run([self.binary, verb, "--help"], capture_output=True, text=True, check=False)
        return "" if done.returncode else done.stdout

    def lacks(self, verb, options=()):
        """What is missing of a verb and its options; nothing if all is there."""
        if not self._help(verb):
            return f"'{verb}'"
        gone = [option for option in options if not re.search(rf"{option}\b", self._help(verb))]
        return f"'{verb} {' '.join(gone)}'" if gone else ""

    def use(self):
        """Harvests are by this build from now on."""
        host.GLEANER = self.binary
        os.environ["XDG_CACHE_HOME"] = str(self.cache)

    def forget(self):
        shutil.rmtree(self.cache, ignore_errors=True)


class Round:
    """One round: both builds, in its order, and what is the same for both."""

    def __init__(self, sides, seconds):
        self.sides, self.seconds = sides, seconds
        for side in sides:
            side.forget()

    def pairs(self, one):
        """What `one` tells of each build, which is run after the other: a dictionary of figures
        each; as pairs."""
        told = {}
        for side in self.sides:
            side.use()
            try:
                told[side.name] = one(side)
            except (Failed, ArithmeticError, OSError, ValueError, KeyError, subprocess.SubprocessError) as failure:
                raise SideFailed(side, failure) from failure
        return {figure: [(old, told["new"][figure])] for figure, old in told["old"].items()}

    def chases(self):
        return cases.Case("ratchet", CHASES | {"seconds": self.seconds})

    @functools.cached_property
    def chase_alone(self):
        return windows.steps(self.chases(), rounds.ALONE, "chase", None, 1)[None][0][0]["pace"]

    @functools.cached_property
    def plans(self):
        """Costs are measured and programs rewritten before anything is timed, once a round: these
        measurements vary, too."""
        def one(side):
            way = Way(side.name, "harvested")
            with Beside(self.chases(), way, "chase", "chase", 1, dry=True) as planned:
                if planned.process.wait(LONGEST):
                    raise Failed(planned.errors())
            return {}
        return self.pairs(one)


def _chases(this, guests, allowed):
    alone, _ = this.chase_alone, this.plans

    def one(side):
        stays = "" if side.lacks("harvest", ["--stay-aboard"]) else "--stay-aboard"
        way = Way(side.name, "harvested", f"--max-slowdown {allowed} {stays}")
        [seen], _ = windows.steps(this.chases(), way, "chase", "chase", guests)[None]
        return {"the primary": seen["pace"] / alone, "all together": (seen["pace"] + seen["work"]) / alone}
    return this.pairs(one)


def _msh(this):
    case = cases.Case("ratchet", cases.all_cases()["msh"] | {"seconds": 2 * this.seconds})
    primary, scavenger = case.primaries[0], case.scavengers[0]
    alone = whole.one(case, rounds.ALONE, primary, None, 1)[None][0][0]["pace"]
    solo = whole.scavenger_alone(case, scavenger, 1)

    def one(side):
        way = Way(side.name, "harvested", "--max-slowdown 10%")
        [seen], _ = whole.one(case, way, primary, scavenger, 1)[None]
        return {"the primary": seen["pace"] / alone, "the scavenger": seen["work"] / solo}
    return this.pairs(one)


def _yields(this, name):
    """The original and both primaries at once, in turns of WINDOW seconds."""
    _ = this.plans
    case = this.chases()
    build.program(name)
    turns = build.peer("turns")
    host.compact_memory()
    files = [f"progress.{number}" for number in range(3)]
    told = [Progress(host.WORK / file) for file in files]
    commands = [[f"./{name}", str(case.mib), "0", file] for file in files]
    # A failure of `turns` is that of the build whose program ended, or of the second one.
    with contextlib.ExitStack() as stack:
        stack.callback(_stop, told)
        started = [_start(stack, on(case.cpu, *commands[0]))]
        for side, command in zip(this.sides, commands[1:]):
            side.use()
            harvest = [side.binary, "harvest", "-q", "--scavenger", "sleep 1000", "--"]
            started.append(_start(stack, on(case.cpu, *harvest, *command)))
        done = subprocess.run([turns, str(TURNS), str(WINDOW), *files], cwd=host.WORK,
                              capture_output=True, text=True, check=False)
        ended = [side for side, process in zip(this.sides, started[1:]) if process.poll() is not None]
    lines = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    paces = [line for line in lines if len(line) == len(files) and min(line) > 0]
    if not paces or done.returncode or ended:
        raise SideFailed((ended or this.sides)[-1], f"not all programs made progress {done.stderr}")
    first = 1 + [side.name for side in this.sides].index("old")
    return {"the primary": [(line[first] / line[0], line[3 - first] / line[0]) for line in paces]}


def _start(stack, command):
    process = subprocess.Popen(command, cwd=host.WORK, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    stack.callback(_end, process, command)
    return process


def _stop(progresses):
    for progress in progresses:
        progress.close()


def _end(process, command):
    """Tells a program through its file to stop, so that a harvest ends by itself."""
    with open(host.WORK / command[-1], "r+b") as file:
        file.seek(8 * STOP)
        file.write((1).to_bytes(8, "little"))
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _timed(command):
    """Seconds that a command takes, on any CPU."""
    began = time.monotonic()
    done = subprocess.run(on(ALL_CPUS, *command), cwd=host.WORK, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=LONGEST)
    took = time.monotonic() - began
    if done.returncode:
        raise Failed(done.stderr or done.stdout)
    return took


@functools.cache
def _join():
    """A hash join of some seconds; each round has the same work."""
    case = cases.Case("ratchet", {"mib": 64})
    pace = windows.steps(case, rounds.ALONE, "join", None, 1)[None][0][0]["pace"]
    return [build.built("programs/join.c", "join"), str(case.mib), str(int(pace * PROFILED_SECONDS))]


def _profile(this):
    """Wall time of the program, as the profile tells it: what is done after its end is not in it."""
    alone = _timed(_join())

    def one(side):
        (host.WORK / "profile.json").unlink(missing_ok=True)
        _timed([side.binary, "profile", "-q", "--output", "profile.json", "--", *_join()])
        told = json.loads((host.WORK / "profile.json").read_text())
        return {"the program": alone / told["summary"]["elapsed"]["value"]}
    return this.pairs(one)


@functools.cache
def _large_program():
    """node, else python3, else the largest program of /usr/bin."""
    found = [pathlib.Path(shutil.which(name) or "").resolve() for name in ("node", "python3")]
    for path in found:
        if _is_elf(path):
            return path
    programs = [path for path in pathlib.Path("/usr/bin").iterdir() if _is_elf(path)]
    return max(programs, key=lambda path: path.stat().st_size)


def _is_elf(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _rewrite(this):
    program = _large_program()
    program.read_bytes()  # from memory, also the first time

    def one(side):
        took = _timed([side.binary, "twin", "--identity", "-q", "-o", "rewritten", str(program)])
        (host.WORK / "rewritten").unlink()
        return {f"{program.name}, seconds": took}
    return this.pairs(one)


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    title: str
    verb: str
    options: tuple
    measure: typing.Callable  # of a round
    form: str = "{:.3f}"
    more_is_better: bool = True

    def lacks(self, sides):
        """Why it is not measured; nothing if it is."""
        gone = [f"{side.name} has no {lack}" for side in sides if (lack := side.lacks(self.verb, self.options))]
        return " and ".join(gone)


def _row_of_chases(name, guests, allowed):
    title = f"a chase, {guests} guests" if guests > 1 else "a chase, 1 guest"
    title += f", {allowed} allowed" if allowed != UNBOUNDED else ""
    measure = functools.partial(_chases, guests=guests, allowed=allowed)
    return Row(f"chases-{name}", title, "harvest", ("--home-cpus", "--ring", "--max-slowdown", "--scavenger"), measure)


def _row_of_yields(name):
    measure = functools.partial(_yields, name=name)
    return Row(f"yields-{name}", f"{name} with yields, no guest", "harvest", ("--scavenger",), measure)


ROWS = [
    *(_row_of_chases(guests, guests, UNBOUNDED) for guests in (1, 2, 4, 8)),
    _row_of_chases("5%", 2, "5%"),
    _row_of_chases("20%", 4, "20%"),
    Row("msh", "MSH's pair, 10% allowed", "harvest", ("--max-slowdown", "--scavenger"), _msh),
    _row_of_yields("chase"),
    _row_of_yields("hot"),
    Row("profile", "a profiled join", "profile", ("--output",), _profile),
    Row("rewrite", "rewriting", "twin", ("--identity", "--output"), _rewrite, "{:.2f}", more_is_better=False),
]


def chosen(names):
    """Rows by name or by the part before its dash; all of them without names."""
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if not any(name in (row.name, row.name.split("-")[0]) for row in ROWS):
            raise SystemExit(f"no row {name}: {', '.join(row.name for row in ROWS)}")
    return [row for row in ROWS if not wanted or {row.name, row.name.split("-")[0]} & set(wanted)]
