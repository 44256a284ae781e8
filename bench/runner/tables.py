"""Results as a table in Markdown."""
from . import figures

# Headings and formats. Of figures that are not here there is no table.
SHOWN = {
    "pace": ("primary's pace", "{:.3f}"), "times as long": ("primary, times as long", "{:.3f}"),
    "slower": ("slower by, %", "{:+.1f}"), "told": ("told, %", "{:+.1f}"),
    "work": ("scavengers' work", "{:.3f}"), "all": ("all", "×{:.2f}"), "all work": ("all work", "{:.2f}"),
    "by hand": ("of by hand", "{:.2f}"), "by hand, mapped": ("of by hand, mapped", "{:.2f}"),
    "p50": ("median, µs", "{:.1f}"), "p95": ("P95, µs", "{:.1f}"), "p99": ("P99, µs", "{:.1f}"),
    "p50 ratio": ("median ÷ alone", "{:.2f}"), "p95 ratio": ("P95 ÷ alone", "{:.2f}"),
    "answered": ("answered a second", "{:.0f}"), "aboard": ("aboard, s", "{:.1f}"), "trips": ("trips home", "{:.0f}"),
    "visits": ("visits", "{:.0f}"), "output": ("output", "{}"), "cycles": ("core cycles", "{:.1f}"),
    "own time": ("alone, s", "{:.3f}"), "apart": ("alone after to before, %", "{:.1f}"),
    "waits": ("waits for memory", "{:.0%}"),
}
# They are the same for all ways of a cell.
OF_CELL = ("own time", "apart", "waits")
BY_KERNEL = ("SCHED_IDLE", "nice 19")


def _shown(name, rounds):
    """Median and interval of one figure, or the words that it is."""
    values = [[one[name] for one in turns if one.get(name) is not None] for turns in rounds]
    flat = [value for turns in values for value in turns]
    if not flat:
        return ""
    form = SHOWN[name][1]
    if isinstance(flat[0], str):
        return max(set(flat), key=lambda word: (word != "the same", word))
    middle, low, high = figures.interval(values)
    whole = form.format(middle)
    if low is None:
        return whole
    bare = form.replace("×", "")
    return f"{whole} [{bare.format(low)}, {bare.format(high)}]"


def row_of(cells):
    return "| " + " | ".join(cells) + " |"


def _keys(case, cells):
    """What tells a cell from the others: headings, and the words of one."""
    with_scavenger = any(cell[1] for cell in cells)
    number = "scavengers" if with_scavenger else "threads"
    parts = [("primary", lambda cell: cell[0])]
    if with_scavenger:
        parts.append(("scavenger", lambda cell: cell[1]))
    if len(case.counts) > 1 or case.counts[0] > 1:
        parts.append((number, lambda cell: str(cell[2])))
    if any(cell[3] is not None for cell in cells):
        parts.append(("of the most", lambda cell: cell[3] if isinstance(cell[3], str) else f"{cell[3]:.0%}" if cell[3] else ""))
    return [heading for heading, _ in parts], lambda cell: [of(cell) for _, of in parts]


def _long(case, results, headings, words):
    columns = [name for name in case.columns
               if any(_shown(name, rounds) for by_way in results.found.values() for rounds in by_way.values())]
    ways = ["way"] if len(results.ways) > 1 else []
    lines = [row_of([*headings, *ways, *(SHOWN[name][0] for name in columns)])]
    for cell, by_way in results.found.items():
        for way in (way for way in results.ways if way in by_way):
            lines.append(row_of([*words(cell), *([way] if ways else []), *(_shown(name, by_way[way]) for name in columns)]))
    return lines, len(headings) + len(ways)


def _wide(case, results, headings, words):
    of_cell = [name for name in case.columns if name in OF_CELL]
    pairs = [(way, name) for way in results.ways for name in case.columns if name not in OF_CELL
             and any(_shown(name, by_way.get(way, [])) for by_way in results.found.values())]
    lines = [row_of([*headings, *(SHOWN[name][0] for name in of_cell), *(f"{way}: {SHOWN[name][0]}" for way, name in pairs)])]
    for cell, by_way in results.found.items():
        some = next(iter(by_way.values()))
        lines.append(row_of([*words(cell), *(_shown(name, some) for name in of_cell),
                           *(_shown(name, by_way.get(way, [])) for way, name in pairs)]))
    return lines, len(headings)


def _verdicts(results, listed):
    """Of all cells: how often the slowdown was what is allowed, and how far scavengers came."""
    def middle(rounds, name):
        found = figures.interval([[one[name] for one in turns if one.get(name) is not None] for turns in rounds])
        return found[0] if found else None
    allowed = {way.name: way.allowed for way in listed if way.allowed is not None}
    kept = cells = further = compared = 0
    for by_way in results.found.values():
        for way, percent in allowed.items():
            slower = middle(by_way.get(way, []), "slower")
            if slower is not None and not results.case.loads:
                cells += 1
                kept += slower <= percent + (middle(by_way[way], "apart") or 0)
        works = {way: middle(rounds, "work") for way, rounds in by_way.items()}
        own = [works[way] for way in allowed if works.get(way) is not None]
        others = [works[way] for way in BY_KERNEL if works.get(way) is not None]
        if own and others:
            compared += 1
            further += max(own) + 0.01 >= max(others)
    told = []
    if cells:
        told.append(f"The slowdown is what was allowed, and the difference of the runs alone, in {kept} of {cells} cells.")
    if compared:
        told.append(f"Scavengers come as far as by the kernel's priorities, to 0.01, in {further} of {compared}.")
    return told


def markdown(case, results, listed):
    if not results.found:
        return "Nothing was measured.\n"
    headings, words = _keys(case, results.found)
    lines, first = (_wide if case.wide else _long)(case, results, headings, words)
    columns = lines[0].count(" | ") + 1
    lines.insert(1, "|" + "---|" * first + "--:|" * (columns - first))
    rounds = f"Medians of {case.rounds} rounds [95%]" if case.rounds > 1 else "One round"
    turns = f" of {case.turns} turns" if case.turns else ""
    beneath = [f"{rounds}{turns}; a pace is a share of that alone in the same round.", *_verdicts(results, listed), case.note]
    return "\n".join(lines) + "\n\n" + " ".join(filter(None, beneath)) + "\n"
