"""The table of fresh.sh: what profiles say of programs, beside what the programs' heads say.

usage: fresh.py DIRECTORY-OF-PROFILES LIST-OF-SOURCES
"""
import json
import os
import re
import sys

# L3 serves what takes less than this part of what memory takes, by the yardstick.
L3_PART = 0.5
HIGH = 0.2  # from here on a profile calls the waiting high
MADE = (".java", ".js", ".py", ".rb")  # the program's own code is made or read at run time
# What holds the data of a runtime that asks the kernel for its memory itself.
KINDS = {
    "go": r"Go|runtime\.|anonymous memory",
    "java": r"Java heap",
    "v8": r"V8 heap",
    "buffer": r"BackingStore|ArrayBuffer",
    "python": r"Py|python|anonymous memory|heap",
}


def value(quantity):
    return (quantity or {}).get("value")


class Expected:
    def __init__(self, path, beside):
        self.file = os.path.basename(path)
        self.name, self.extension = os.path.splitext(self.file)
        lines = open(path).read().splitlines()
        self.says = dict(re.findall(r"(\w+)=(\S+)", lines[0]))
        marked = lambda mark: {n for n, line in enumerate(lines, 1) if re.search(rf"(//|#) {mark}\b", line)}
        self.hot, self.data = marked("HOT"), marked("DATA")
        self.levels = self.says.get("level", "").split("|")
        if beside and float(beside[0]) > L3_PART * float(beside[1]):
            self.levels = ["L3", "DRAM"]
        self.is_problem = self.says["memory"] == "yes"

    def is_own(self, file):
        return os.path.basename(file or "") == self.file

    def is_line(self, load, scripts):
        """Where a line is asked for, it is that of a script, or of code that was made of one."""
        if self.extension == ".js":
            return bool(re.search(self.says["line"], load.get("function") or "")) and self.is_marked(load)
        first = scripts[0] if scripts else {}
        return bool(re.search(self.says["line"], first.get("function") or "")) and self.is_marked(first)

    def is_marked(self, place):
        return self.is_own(place.get("file")) and place.get("line") in self.hot

    def is_load(self, load):
        names = [load.get("function") or "", *load.get("inlined", [])]
        if not any(re.search(self.says["load"], name) for name in names):
            return False
        # What a library's header has inlined has a line of its own there.
        return load.get("line") in self.hot if self.is_own(load.get("file")) else True

    def is_data(self, load, profile):
        name, objects = load.get("object"), profile["objects"]
        kind, _, what = self.says["data"].partition(":")
        if kind == "script":
            first = profile["scripts"][0] if profile.get("scripts") else {}
            return bool(re.search(what, first.get("data") or ""))
        if not name:
            return False
        if kind == "site":
            site = next((o.get("site") or {} for o in objects if o["name"] == name), {})
            return self.is_own(site.get("file")) and site.get("line") in self.data
        pattern = {"global": rf"^{what} \(", "file": rf"file .*{what}", "kind": KINDS.get(what, what)}
        return bool(re.search(pattern[kind], name))

    def is_level(self, load):
        ambiguous = len(self.levels) > 1 and load["level"] == "unresolved" and load.get("beyond_l2")
        return load["level"] in self.levels or ambiguous


def shown(load):
    where = f"{os.path.basename(load['file'])}:{load.get('line')}" if load.get("file") else "-"
    # V8 tells a script's place behind its functions' names.
    return f"{(load.get('function') or '-').split(' /')[0][:50]} ({where})"


def as_text(text):
    return str(text).replace("|", "/")


rows, counts = [], {"load": 0, "data": 0, "level": 0, "all": 0, "quiet": 0}
problems, quiet = 0, 0
for line in open(sys.argv[2]).read().splitlines():
    path, *beside = line.split()
    expected = Expected(path, beside)
    mark = " *" if expected.extension in MADE else ""
    try:
        profile = json.load(open(f"{sys.argv[1]}/{expected.name}.json"))
    except OSError:
        profile = None
    bound = value(profile["summary"]["memory_bound"]) if profile else None
    bound_text = "-" if bound is None else f"{bound:.0%}"
    loads = profile["loads"] if profile else []
    if not expected.is_problem:
        quiet += 1
        findings = [f"{f['kind']} {value(f['gain']) or 0:.0%}" for f in profile["findings"]] if profile else ["-"]
        is_quiet = profile is not None and (bound or 0) < HIGH and not findings
        counts["quiet"] += is_quiet
        first = shown(loads[0]) if loads and not is_quiet else ""
        rows.append((expected.name + mark, "no problem", bound_text, first, ", ".join(findings), "", "" if is_quiet else "wrong"))
        continue
    problems += 1
    if not loads:
        rows.append((expected.name + mark, "", bound_text, "none", "", "", "wrong: load, data, level"))
        continue
    load, scripts = loads[0], profile.get("scripts", [])
    right = {
        "load": expected.is_line(load, scripts) if "line" in expected.says else expected.is_load(load),
        "data": expected.is_data(load, profile),
        "level": expected.is_level(load),
    }
    for what, is_right in right.items():
        counts[what] += is_right
    counts["all"] += all(right.values())
    wrong = ", ".join(what for what, is_right in right.items() if not is_right)
    level = load["level"] + ("" if right["level"] else f": {load['level_because']}")
    share = f"{value(load['stall']):.0%} of {bound_text}"
    where, data = shown(load), load.get("object") or "-"
    if scripts and "line" in expected.says:
        where = f"{shown(scripts[0])} in {load.get('function') or '-'}"
        data = scripts[0].get("data") or data
    rows.append((expected.name + mark, "/".join(expected.levels), share, where, data, level, f"wrong: {wrong}" if wrong else ""))

print("| program | is | stall | load | data | level | |\n|---|---|---:|---|---|---|---|")
for row in rows:
    print("| " + " | ".join(as_text(field) for field in row) + " |")
print(f"\nof {problems} programs with a problem: load right in {counts['load']}, data in {counts['data']}, "
      f"level in {counts['level']}, all three in {counts['all']}")
print(f"of {quiet} programs without one: {counts['quiet']} are said to have none")
if any(" *" in row[0] for row in rows):
    print("\\* the program's code is made or read at run time: of scripts, the line counts")
