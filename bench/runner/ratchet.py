"""The command line behind bench/ratchet.sh: an older build and a new one, in turns, as a table.

In each round each row is measured with both builds, one after the other; the next round begins
with the other one. A ratio is taken within its round. A row whose whole interval lies below LEAST
is worse, and the exit code is 1.
"""
import argparse
import collections
import os
import signal
import statistics
import sys
import time

from . import figures, host, ratchet_rows
from .build import Failed
from .tables import row_of

LEAST = 0.95
BUSY = 0.5


def _arguments():
    parser = argparse.ArgumentParser(prog="bench/ratchet.sh")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="")
    for option in ("--old", "--old-name", "--new-name"):
        parser.add_argument(option, required=True)
    return parser.parse_args()


def _busy_cpus(seconds=2):
    """How many CPUs are busy now. The kernel's average load would still have this bench's own
    build in it."""
    def ticks():
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _, _, irq, softirq, *_ = map(int, stat.readline().split()[1:])
        return user + nice + system + irq + softirq
    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def _say(text):
    print(text, file=sys.stderr, flush=True)


class Results:
    def __init__(self):
        # By row and figure, for each round: pairs of old and new.
        self.found = collections.defaultdict(list)
        self.skipped, self.failed, self.new_failed = [], [], False

    def fail(self, row, failure):
        """A row that came to nothing: by one of the builds, or already by a program alone."""
        side = failure.side.name if isinstance(failure, ratchet_rows.SideFailed) else "alone"
        self.failed.append(f"{row.name} ({side}: {(str(failure).splitlines() or ['?'])[0]})")
        self.new_failed |= side == "new"
        _say(f"{row.name}, {side}: failed: {failure}")


def _run(rows, sides, rounds, seconds):
    results, chosen = Results(), []
    for row in rows:
        lacks = row.lacks(sides)
        if lacks:
            results.skipped.append(f"{row.name} ({lacks})")
        else:
            chosen.append(row)
    for number in range(1, rounds + 1):
        order = sides if number % 2 else sides[::-1]
        of_round = ratchet_rows.Round(order, seconds)
        for row in list(chosen):
            _say(f"round {number} of {rounds}: {row.name}")
            try:
                for figure, pairs in row.measure(of_round).items():
                    results.found[row, figure].append(pairs)
            except (ratchet_rows.SideFailed, Failed) as failure:
                results.fail(row, failure)
                chosen.remove(row)  # what failed once may take two minutes to fail again
    return results


def _table(results):
    """Lines of the table, and the rows that are worse."""
    lines = [row_of(["row", "figure", "old", "new", "new ÷ old"]), "|---|---|--:|--:|--:|"]
    worse = []
    for (row, figure), rounds in results.found.items():
        old, new = ([pair[side] for pairs in rounds for pair in pairs] for side in (0, 1))
        ratios = [[(b / a if row.more_is_better else a / b) for a, b in pairs if a and b] for pairs in rounds]
        shown = [row.form.format(statistics.median(values)) for values in (old, new)]
        ratio, found = "", figures.interval(ratios)
        if found:
            middle, low, high = found
            ratio = f"{middle:.3f}"
            if low is not None:
                ratio += f" [{low:.3f}, {high:.3f}]"
                if high < LEAST:
                    worse.append(row.name)
                    ratio = f"**{ratio}**"
        lines.append(row_of([row.title, figure, *shown, ratio]))
    return lines, list(dict.fromkeys(worse))


def _beneath(arguments, results, busy, worse):
    rounds = f"Medians of {arguments.rounds} rounds [95%]" if arguments.rounds > 1 else "One round, so no intervals"
    lines = [
        f"Old: {arguments.old_name}. New: {arguments.new_name}.",
        f"{rounds}, old and new in turns. Figures are shares of the same program's pace alone, or seconds; "
        "the ratio is that of speeds: more than 1 is better.",
    ]
    if busy > BUSY:
        lines.append(f"The machine was not quiet: other programs kept {busy:.1f} CPUs busy before the first round.")
    for word, names in (("Skipped", results.skipped), ("Failed", results.failed), ("Worse", worse)):
        if names:
            lines.append(f"{word}: {', '.join(names)}.")
    return lines


def main():
    arguments = _arguments()
    host.check()
    rows = ratchet_rows.chosen(arguments.rows)
    sides = [ratchet_rows.Side("old", arguments.old), ratchet_rows.Side("new", host.GLEANER)]
    # So that the programs are ended, and files removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    busy = _busy_cpus()
    if busy > BUSY:
        _say(f"warning: other programs keep {busy:.1f} CPUs busy: nothing else should run")
    headline = host.headline()
    # What watches the programs does not run on the primary's CPU.
    os.sched_setaffinity(0, {0})
    results = _run(rows, sides, arguments.rounds, arguments.seconds)
    lines, worse = _table(results)
    print("\n".join([headline, *lines, "", *_beneath(arguments, results, busy, worse)]))
    sys.exit(1 if worse or results.new_failed else 0)


if __name__ == "__main__":
    main()
