"""How scavengers run beside a primary: the names that a case lists as `ways`.

alone                     no scavenger
SCHED_IDLE, nice 19       on the primary's CPU, by the kernel's scheduler
two cores                 one scavenger, on the other CPU
harvested                 in the primary's stalls
harvested, homes on both  the same where a case has `pin_homes`, but not pinned
by hand                   chases interleaved by hand, each with its own area (bench/peers/limit.c)
by hand, one area         the same through one area
by hand, mapped           the same, with a mapping of that area for each (bench/peers/mapped.c)
"""
import dataclasses

NAMES = ["alone", "SCHED_IDLE", "nice 19", "two cores", "harvested", "harvested, homes on both", "by hand",
         "by hand, one area", "by hand, mapped"]


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    kind: str
    options: str = ""
    allowed: float | None = None

    @property
    def harvests(self):
        return self.kind.startswith("harvested")

    @property
    def by_hand(self):
        return self.kind.startswith("by hand")


def of(case):
    """The ways of a case; a harvested one once for each setting with each slowdown allowed."""
    ways = []
    for kind in case.ways:
        if kind not in NAMES:
            raise SystemExit(f"{case.name}: no way is called {kind}")
        if not kind.startswith("harvested"):
            ways.append(Way(kind, kind))
            continue
        for setting in case.settings or [""]:
            for percent in case.allowed or [None]:
                alone = setting and len(case.allowed) < 2
                name = setting or kind if percent is None or alone else f"{setting or kind}, {percent:g}%"
                asked = "" if percent is None else f"--max-slowdown {percent:g}%"
                ways.append(Way(name, kind, f"{asked} {setting}", percent))
    return ways
