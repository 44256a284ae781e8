"""Figures of a run, and their medians with 95% intervals over the rounds."""
import random
import statistics

RESAMPLES = 2000


def _over(a, b):
    return a / b if a is not None and b else None


def derived(seen, base, solo, hand):
    """Figures of one run beside what it is compared with: the primary alone (`base`), one scavenger
    alone (`solo`), and the same by hand (`hand`: all work, by way)."""
    pace, work, own = seen.get("pace"), seen.get("work"), base.get("pace")
    found = dict(seen)
    everything = None if pace is None else pace + (work or 0)
    found |= {
        "pace": _over(pace, own), "times as long": _over(own, pace), "work": _over(work, solo),
        "answered": pace, "own time": _over(1, own), "all": _over(everything, own),
    }
    if found["times as long"] is not None:
        found["slower"] = 100 * (found["times as long"] - 1)
    if seen.get("told") is not None:
        found["told"] = 100 * seen["told"]
    if None not in (found["pace"], found["work"]):
        found["all work"] = found["pace"] + found["work"]
    for name in ("p50", "p95", "p99"):
        found[f"{name} alone"] = base.get(name)
        found[f"{name} ratio"] = _over(seen.get(name), base.get(name))
    for name, total in hand.items():
        found[name] = _over(everything, total)
    if base.get("hertz") and everything and own:
        found["cycles"] = base["hertz"] * (1 / everything - 1 / own)
    for name in ("apart", "waits"):
        found[name] = base.get(name)
    return found


def interval(rounds):
    """Median and its interval; `rounds` are lists of what was seen in each. The rounds are drawn
    anew, since what is seen within one has the same neighbours; without at least two there is no
    interval."""
    kept = [values for values in rounds if values]
    if not kept:
        return None
    middle = statistics.median([value for values in kept for value in values])
    if len(kept) < 2:
        return middle, None, None
    chance = random.Random(1)
    drawn = sorted(
        statistics.median([value for values in chance.choices(kept, k=len(kept)) for value in values])
        for _ in range(RESAMPLES))
    return middle, drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES) - 1]
