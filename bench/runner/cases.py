"""Cases and programs: what bench/cases says.

A case is a file NAME.toml, or a table `variants.VARIANT` in it, which takes all keys above it that
it does not set itself. `bench/beside NAME` runs the case, or all its variants; `NAME.VARIANT` one.

question, time        what it is for, and how long it takes
primaries, scavengers names of programs; without scavengers the ways are about the primary alone
counts                numbers of scavengers (of threads, without scavengers)
ways                  how they run beside each other: the names in `ways`
allowed               percentages: each harvested way once with each of them as --max-slowdown
settings              options: each harvested way once with each of these strings, and with `allowed`
options               further options of `gleaner harvest`
loads                 shares of the most that a server can answer, or "most"
rounds                how often all ways run, in turns; ratios are taken within a round
turns                 if there are, windows within one run: each beside scavengers, and then one
                      while they sleep, with which it is compared
seconds, settle       the length of a window or of a run; what is waited ahead of it
solo                  for how long a scavenger's own pace is measured
mib, sizes            the size of each program's memory, and of some by name
cpu, other            the primary's CPU, and one for all else
pin_homes             scavengers at home run on the primary's CPU once all have started
columns, wide         the figures shown (`figures`), and whether ways are columns, too
note                  a sentence beneath the table

A program has a `command`, and maybe the `source` that it is built from, `needs` (commands that must
be installed), `inputs` (files that bench/inputs.py writes), `prepare` (a command that is run once).
As a primary: `pace`, which is how its pace is known (`windows`, `whole`). As a scavenger: `counts`:
steps (its progress file), written (bytes), moved (bytes read and written).
"""
import re
import shlex
import shutil
import tomllib

from . import host

CASES = host.BENCH / "cases"


def _programs():
    """By name; an `each` of the file stands for several."""
    programs = tomllib.loads((CASES / "programs.toml").read_text())
    for group in programs.pop("each"):
        called = group.pop("as", "{name}")
        for name in group.pop("names"):
            parts = {"{name}": name, "{first}": name.split()[0], "{last}": re.search(r"\d*$", name)[0]}
            def filled(text, parts=parts):
                for part, word in parts.items():
                    text = text.replace(part, word)
                return text
            programs[filled(called)] = {key: filled(value) if isinstance(value, str) else value for key, value in group.items()}
    return programs


PROGRAMS = _programs()
DEFAULTS = {
    "primaries": [], "scavengers": [], "counts": [1], "ways": ["SCHED_IDLE", "harvested"],
    "allowed": [], "settings": [], "options": "", "loads": [], "rounds": 3, "turns": 0, "seconds": 1.0,
    "settle": 0.3, "solo": 3.0, "mib": 256, "sizes": {}, "cpu": 1, "other": 0, "keys": 4, "rate": 0,
    "pin_homes": False, "columns": ["pace", "work"], "wide": False, "note": "",
}
KEYS = {*DEFAULTS, "question", "time"}


class Case:
    """The keys of a case as attributes."""

    def __init__(self, name, keys):
        unknown = set(keys) - KEYS
        if unknown:
            raise SystemExit(f"{name}: no such key: {', '.join(sorted(unknown))}")
        self.name = name
        self.__dict__.update(DEFAULTS | keys)

    def size_of(self, program):
        return self.sizes.get(program, self.mib)


def _file(path):
    keys = tomllib.loads(path.read_text())
    variants = keys.pop("variants", {})
    if not variants:
        return {path.stem: keys}
    return {f"{path.stem}.{name}": keys | more for name, more in variants.items()}


def all_cases():
    """Names and keys of all cases."""
    files = sorted(path for path in CASES.glob("*.toml") if path.stem != "programs")
    return {name: keys for path in files for name, keys in _file(path).items()}


def _value(key, text):
    """A value from the command line, of the kind that the key has."""
    like = DEFAULTS.get(key)
    if isinstance(like, list):
        return [_number(word) for word in (text.split(";") if ";" in text else text.split(","))]
    return type(like)(text) if isinstance(like, (int, float, str)) and not isinstance(like, bool) else text == "true"


def _number(word):
    try:
        return int(word)
    except ValueError:
        try:
            return float(word)
        except ValueError:
            return word


def chosen(name, changes):
    """The cases of this name, with changes by the command line: pairs of key and text."""
    found = {full: keys for full, keys in all_cases().items() if name in (full, full.split(".")[0])}
    if not found:
        raise SystemExit(f"no case {name}: 'bench/beside --list' lists them")
    for key, _ in changes:
        if key not in DEFAULTS:
            raise SystemExit(f"no key {key}: bench/runner/cases.py lists them")
    given = {key: _value(key, text) for key, text in changes}
    return [Case(full, keys | given) for full, keys in found.items()]


def is_here(name):
    """Whether what the program needs is installed."""
    entry = PROGRAMS[name]
    first = shlex.split(entry["command"])[0]
    needs = entry.get("needs", [] if first.startswith(("./", "{")) else [first])
    return all(shutil.which(command) for command in needs)
