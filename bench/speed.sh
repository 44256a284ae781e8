#!/usr/bin/env bash
# How much faster 'gleaner speed' makes programs: kernels, beside the same with prefetches written
# by hand, and ordinary programs as distributions have them. Each answer is that of the verb, by
# fresh runs; what is left as it is counts as 1.00.
# Variables: BUDGET (for each program), ONLY (a pattern of names), PAIRS (by hand against plain).
# Ordinary programs that are not installed are left out, and said: ordinary.sh lists them.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$root/bench/ordinary.sh"
budget=${BUDGET:-3min}
only=${ONLY:-.}
pairs=${PAIRS:-7}
export XDG_CACHE_HOME=$work/cache
cd "$work"

cat >rows.py <<'PY'
import json
import math
import os
import subprocess
import sys
import time

def ends(q):
    return "{value:.2f} [{lo:.2f}, {hi:.2f}]".format(**q) if "value" in q else "1.00"

def took(command):
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began

def by_hand(name, pairs):
    """The median of the ratios, least and greatest."""
    if not os.path.exists(f"./{name}.hand"):
        return "", None
    ratios = sorted(took([f"./{name}"]) / took([f"./{name}.hand"]) for _ in range(pairs))
    return f"{ratios[pairs // 2]:.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]", ratios[pairs // 2]

name, pairs = sys.argv[1], int(sys.argv[2])
recipe = json.load(open("recipe.json"))
kept = [t["says"] + (": " + t["form"] if t.get("form") else "") for t in recipe["tried"] if t["outcome"]["is"] == "kept"]
verdict = recipe["verdict"]
hand, ratio = by_hand(name, pairs)
is_faster = verdict["is"] == "faster"
faster = recipe["faster"]["value"] if is_faster else 1.0
with open("figures", "a") as figures:
    print(faster, ratio or "-", file=figures)
why = "; ".join(kept) if is_faster else verdict.get("why", "")
print("|", " | ".join([name, hand, ends(recipe["faster"]) if is_faster else "1.00", why,
                       str(recipe["runs"]), f"{recipe['seconds']:.0f} s"]), "|")
PY

cat >mean.py <<'PY'
import math

rows = [line.split() for line in open("figures")]
mean = lambda all: math.exp(sum(map(math.log, all)) / len(all)) if all else 1.0
print(f"\nGeometric mean over {len(rows)}: {mean([float(r[0]) for r in rows]):.2f}", end="")
hands = [float(r[1]) for r in rows if r[1] != "-"]
print(f"; by hand {mean(hands):.2f}." if hands else ".")
PY

# tried NAME [OPTION... --] COMMAND...: one row
tried() {
    local name=$1
    shift
    [[ $name =~ $only ]] || return 0
    [[ $1 == --* ]] || set -- -- "$@"
    "$gleaner" speed -q --budget "$budget" -o recipe.json "$@" </dev/null >/dev/null 2>errors || true
    if [ -s recipe.json ]; then python3 rows.py "$name" "$pairs"; else echo "| $name | | - | $(tail -n 1 errors) | | |"; fi
    rm -f recipe.json
}

missing() { echo "| $1 | | - | $2 is not installed | | |"; }

kernels() {
    local source name
    for source in "$root"/bench/programs/speed/*.c; do
        name=$(basename "$source" .c)
        cc -O2 -g -o "$name" "$source"
        cc -O2 -g -DBY_HAND -o "$name.hand" "$source"
        tried "$name" "./$name"
    done
}

{
    headline
    echo
    echo "Times as fast: by hand is the median of $pairs pairs, with least and greatest; 'gleaner speed' has a 97.5% interval."
    echo
    echo "| program | by hand | gleaner speed | what is kept, or why nothing | runs | took |"
    echo "|---|---|---|---|--:|--:|"
    kernels
    [ -s figures ] && { python3 mean.py; rm figures; }
    echo
    echo "| ordinary program | | gleaner speed | what is kept, or why nothing | runs | took |"
    echo "|---|---|---|---|--:|--:|"
    inputs
    ordinary
    if [ -s figures ]; then python3 mean.py; fi
} | keep speed.md
