"""All ways of a case, in turns within each round.

What comes of it is a table of tables: by cell (primary, scavenger, count, load) and way, for each
round a list of figures (one for each turn).
"""
import collections
import json
import statistics
import sys

from . import cases, figures, host, ways, whole, windows
from .build import Failed
from .cases import PROGRAMS

ALONE = ways.Way("alone", "alone")


class Results:
    def __init__(self, case):
        self.case, self.ways = case, [way.name for way in ways.of(case)]
        self.found = collections.defaultdict(lambda: collections.defaultdict(list))
        self.failed = False

    def add(self, cell, way, round_number, values):
        of_way = self.found[cell][way]
        of_way += [[] for _ in range(round_number - len(of_way))]
        of_way[round_number - 1] = values


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(case):
    """Runs a case; what is not installed is left out."""
    results = Results(case)
    for name in {*case.primaries, *case.scavengers} - {"same"}:
        if not cases.is_here(name):
            say(f"{name} is not installed: left out")
    primaries = [name for name in case.primaries if cases.is_here(name)]
    scavengers = [name for name in case.scavengers if name == "same" or cases.is_here(name)]
    solos, waits = {}, {}
    for number in range(1, case.rounds + 1):
        solos.clear()
        for primary in primaries:
            if "waits" in case.columns and primary not in waits:
                waits[primary] = _waits(case, primary)
            _Primary(case, primary, number, results, solos, waits.get(primary)).run(scavengers or [None])
    return results


def _waits(case, primary):
    """The share of its time that a primary waits for memory, by its profile."""
    try:
        whole.one(case, ways.Way("profiled", "profiled"), primary, None, 1)
    except Failed:
        return None
    told = json.loads((host.WORK / "profile.json").read_text())["summary"]["memory_bound"]
    return told.get("value")


class _Primary:
    """One primary in one round."""

    def __init__(self, case, name, number, results, solos, waits):
        self.case, self.name, self.number, self.results = case, name, number, results
        self.solos, self.waits = solos, waits
        self.kind = PROGRAMS[name]["pace"]
        self.rate = 0
        self.last = {}  # what it did alone, last, by count

    def run(self, scavengers):
        case = self.case
        try:
            if self.kind == "load":
                self.rate = windows.most_answers(case, self.name)
            elif "loaded" in PROGRAMS[self.name]:
                self.rate = PROGRAMS[self.name]["loaded"] * self._once(ALONE, None, 1)[None][0][0]["pace"]
        except Failed as failure:
            self._failed("alone", failure)
            return
        for scavenger in scavengers:
            scavenger = self.name if scavenger == "same" else scavenger
            for count in case.counts:
                try:
                    self._cell(scavenger, count)
                except Failed as failure:
                    self._failed(f"beside {count} x {scavenger}", failure)

    def _failed(self, what, failure):
        say(f"{self.name} {what}: failed: {failure}")
        self.results.failed = True

    def _once(self, way, scavenger, count):
        if self.kind == "steps":
            return windows.steps(self.case, way, self.name, scavenger, count, self.rate)
        if self.kind == "load":
            return windows.load(self.case, way, self.name, scavenger, count, self.rate)
        return whole.one(self.case, way, self.name, scavenger, count)

    def _alone(self, count):
        """By load; `count` only matters to programs of that number of threads."""
        seen = self._once(ALONE, None, count)
        return {load: beside[0] for load, (beside, _) in seen.items()}

    def _solo(self, scavenger, count):
        if scavenger is None:
            return None
        if scavenger not in self.solos:
            self.solos[scavenger] = whole.scavenger_alone(self.case, scavenger, count)
        return self.solos[scavenger]

    def _cell(self, scavenger, count):
        case = self.case
        key = count if scavenger is None else None
        solo = self._solo(scavenger, count)
        before = {} if case.turns and self.kind in ("steps", "load") else self.last.get(key) or self._alone(count)
        listed = ways.of(case)
        turned = listed[self.number % len(listed):] + listed[:self.number % len(listed)]
        runs = {}
        for way in turned:
            say(f"round {self.number} of {case.rounds}: {self.name}"
                + (f" beside {count} x {scavenger}" if scavenger else f", {count}") + f": {way.name}")
            try:
                runs[way] = self._once(way, scavenger, count)
            except Failed as failure:
                self._failed(f"beside {count} x {scavenger}, {way.name}", failure)
        # What it did alone: between what it did before and what it does after, and how far these
        # are apart. Servers take long to fill, so theirs is from before only.
        after = before if not before or self.kind == "load" else self._alone(count)
        self.last[key] = after
        base = {load: _mean(before[load], after[load]) for load in before}
        for way, seen in runs.items():
            for load, (beside, asleep) in seen.items():
                own = asleep or [base[load]] * len(beside)
                cell = (self.name, scavenger, count, load)
                self.results.add(cell, way.name, self.number, [
                    self._figures(one, alone, solo, runs, way) for one, alone in zip(beside, own)])

    def _figures(self, seen, alone, solo, runs, way):
        alone = dict(alone)
        if "cycles" in self.case.columns:
            self.solos.setdefault("hertz", host.core_clock(self.case.cpu))
            alone["hertz"] = self.solos["hertz"]
        alone["waits"] = self.waits
        # Compared with what is done by hand, where this is not by hand itself.
        by_hand = {} if way.by_hand else {
            other.name.removesuffix(", one area"): sum(found[None][0][0].get(name, 0) for name in ("pace", "work"))
            for other, found in runs.items() if other.by_hand}
        return figures.derived(seen, alone, solo, by_hand)


def _mean(before, after):
    found = {}
    for name, value in before.items():
        both = [each for each in (value, after.get(name)) if isinstance(each, (int, float))]
        if both:
            found[name] = statistics.mean(both)
    low, high = sorted((before["pace"], after["pace"]))
    found["apart"] = None if before is after else 100 * (high / low - 1)
    return found
