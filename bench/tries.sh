#!/usr/bin/env bash
# What changes without source gain, as 'gleaner profile --try' finds it: programs in which threads
# count side by side, loads are indexed by others, or memory is mapped by the program itself, and
# Debian's python3. Each change is judged by pairs of whole runs and a permutation test; a program
# that does not gain is shown as well.
# Variables: PAIRS (how many pairs of runs for each change), PYTHON (which python3).
set -euo pipefail
. "$(dirname "$0")/common.sh"
pairs=${PAIRS:-10}
python=${PYTHON:-/usr/bin/python3}
for name in string_match linear_regression spinlocks; do
    cc -O1 -g -pthread -o "$work/$name" "$root/programs/sharing/$name.c"
done
cc -O2 -g -o "$work/gather" "$root/programs/tries/gather.c"

cat >"$work/rows.py" <<'PY'
import json
import sys

def ends(q):
    return "{value:.3g} [{lo:.3g}, {hi:.3g}]".format(**q) if "value" in q else "-"

OUTPUT = {True: "same", False: "another", None: "not compared"}
for trial in json.load(sys.stdin):
    form, outcome = trial.get("form"), trial["outcome"]
    what = trial["says"] + (": " + form if form else "")
    result = " ".join([outcome["is"], outcome.get("why", "")]).strip()
    figures = [ends(trial["faster"]), format(trial["by_chance"], ".2%"), OUTPUT[trial.get("same_output")]]
    print("|", " | ".join([sys.argv[1], what, result, *figures]), "|")
PY

# tried NAME COMMAND…: the trials of one program as rows of a table
tried() {
    local name=$1
    shift
    "$gleaner" profile -q --budget 10 --try --pairs "$pairs" -o "$work/profile.json" -- "$@" >/dev/null || true
    "$gleaner" show "$work/profile.json" .trials --json | python3 "$work/rows.py" "$name"
}

{
    echo "$pairs pairs of runs for each change"
    echo
    echo "| program | change | outcome | times as fast | by chance | output |"
    echo "|---|---|---|---|---:|---|"
    tried string_match "$work/string_match"
    tried linear_regression "$work/linear_regression"
    tried spinlocks "$work/spinlocks"
    tried gather "$work/gather"
    tried "python3, objects" "$python" "$root/programs/tries/objects.py"
} | keep tries.md
