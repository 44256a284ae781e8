#!/usr/bin/env bash
# How much faster 'gleaner speed' makes programs: kernels, beside the same with prefetches written
# by hand, and ordinary programs as distributions have them. Each answer is that of the verb, by
# fresh runs; what is left as it is counts as 1.00.
# Variables: BUDGET (for each program), ONLY (a pattern of names), PAIRS (by hand against plain).
set -euo pipefail
. "$(dirname "$0")/common.sh"
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

# tried NAME COMMAND...: one row
tried() {
    local name=$1
    shift
    [[ $name =~ $only ]] || return 0
    "$gleaner" speed -q --budget "$budget" -o recipe.json -- "$@" </dev/null >/dev/null 2>errors || true
    if [ -s recipe.json ]; then python3 rows.py "$name" "$pairs"; else echo "| $name | | - | $(tail -n 1 errors) | | |"; fi
    rm -f recipe.json
}

kernels() {
    local source name
    for source in "$root"/bench/programs/speed/*.c; do
        name=$(basename "$source" .c)
        cc -O2 -g -o "$name" "$source"
        cc -O2 -g -DBY_HAND -o "$name.hand" "$source"
        tried "$name" "./$name"
    done
}

inputs() {
    python3 "$root/bench/inputs.py" "$work" >/dev/null
    python3 - <<'PY'
with open("join.sql", "w") as out:
    print("pragma cache_size=-2000000; create table a(k integer primary key, v integer); create table b(k integer, w integer);", file=out)
    for table, factor in (("a", 7919), ("b", 104729)):
        print(f"with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000) insert into {table} select i * {factor} % 15000017, i from n;", file=out)
    print("select count(*), sum(v + w) from a join b using (k);", file=out)
with open("words.py", "w") as out:
    out.write("counts = {}\nfor line in open('data', 'rb'):\n    for word in line.split():\n        counts[word] = counts.get(word, 0) + 1\nprint(len(counts))\n")
with open("objects.js", "w") as out:
    out.write("const m = new Map();\nfor (let i = 0; i < 2e6; i++) m.set((i * 7919) % 15000017, {v: i});\nlet s = 0;\nfor (let i = 0; i < 4e6; i++) { const o = m.get((i * 104729) % 15000017); if (o) s += o.v; }\nconsole.log(s);\n")
with open("Walk.java", "w") as out:
    out.write("import java.util.*;\npublic class Walk { public static void main(String[] a) { HashMap<Integer,Integer> m = new HashMap<>();\nfor (int i = 0; i < 2000000; i++) m.put((int)((long) i * 7919 % 15000017), i);\nlong s = 0; for (int i = 0; i < 6000000; i++) { Integer v = m.get((int)((long) i * 104729 % 15000017)); if (v != null) s += v; }\nSystem.out.println(s); } }\n")
with open("unit.c", "w") as out:
    for i in range(2000):
        print(f"int f{i}(int a, int b) {{ int s = 0; for (int i = 0; i < a; i++) s += i * b ^ {i}; return s + (a > {i} ? b / (a + 1) : a); }}", file=out)
PY
}

has() { command -v "$1" >/dev/null; }

ordinary() {
    inputs
    if has sqlite3; then tried "sqlite3, a join" sqlite3 :memory: ".read join.sql"; fi
    if has minisat; then tried minisat minisat -verb=0 hard.cnf; fi
    if has bwa; then tried "bwa, an index" bwa index -p genome.index genome.fa; fi
    if has minimap2; then tried minimap2 minimap2 -t 1 -a genome.fa reads.fq; fi
    if has xz; then tried xz xz -k -c -6 text; fi
    if has sort; then tried "sort, one thread" sort --parallel=1 -S 1G text; fi
    tried "python3, a dictionary" /usr/bin/python3 words.py
    tried "python3, a table" /usr/bin/python3 dict.py
    if has node; then tried "node, a map" node objects.js; fi
    if has java; then tried "java, a map" java Walk.java; fi
    if has gcc; then tried "gcc -O2" gcc -O2 -c -o unit.o unit.c; fi
    if has clang; then tried "clang -O2" clang -O2 -c -o unit.o unit.c; fi
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
    ordinary
    if [ -s figures ]; then python3 mean.py; fi
} | keep speed.md
