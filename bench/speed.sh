#!/usr/bin/env bash
# How much faster 'gleaner speed' makes programs: kernels, beside the same with prefetches written
# by hand, and ordinary programs as distributions have them. Each answer is that of the verb, by
# fresh runs; what is left as it is counts as 1.00.
# Variables: BUDGET (for each program), ONLY (a pattern of names), PAIRS (by hand against plain).
# Ordinary programs that are not installed are left out, and said. On Debian: sqlite3 postgresql
# redis-server memcached python3-numpy python3-pandas nodejs default-jdk-headless ruby php-cli
# luajit pypy3 r-base-core ocaml golang minisat cadical z3 bwa minimap2 samtools povray;
# pip install duckdb.
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
    python3 "$root/bench/programs/ordinary/inputs.py" "$work"
    cp "$root"/bench/programs/ordinary/*.* "$work"
    if has javac; then javac Walk.java; fi
    if has go; then go build -o go-map map.go; fi
    if has ocamlfind || has ocamlopt; then ocamlopt -o ocaml-table table.ml; fi
    if has gcc; then for part in 1 2 3 4 5 6; do gcc -O0 -g -ffunction-sections -DPART=$part -c -o part$part.o unit.c; done; fi
    if has samtools; then samtools view -b -o reads.bam reads.sam; fi
}

has() { command -v "$1" >/dev/null; }
can() { "$1" -c "import $2" 2>/dev/null; }

# one NAME COMMAND ARGUMENTS...: one row, if the command is there
one() {
    if has "$2"; then tried "$@"; else echo "| $1 | | - | $2 is not installed | | |"; fi
}

# served NAME LOAD COMMAND...: one row, of a server
served() {
    if has "$3"; then tried "$1" --load "$2" -- "${@:3}"; else echo "| $1 | | - | $3 is not installed | | |"; fi
}

ordinary() {
    inputs
    # Databases, and what is looked up in tables.
    one "sqlite3, a join" sqlite3 :memory: ".read join.sql"
    if can python3 duckdb; then tried "DuckDB, a hash join" python3 join_duckdb.py; fi
    postgres
    served "redis, gets" "python3 $work/redis_load.py 7401" redis-server --port 7401 --save "" --appendonly no
    served "memcached, gets" "python3 $work/memcached_load.py 7402" memcached -u nobody -m 2048 -p 7402
    # Interpreters.
    tried "python3, a dictionary" /usr/bin/python3 words.py
    tried "python3, a table" /usr/bin/python3 dict.py
    if can /usr/bin/python3 numpy; then tried "numpy, a gather" /usr/bin/python3 gather.py; fi
    if can /usr/bin/python3 pandas; then tried "pandas, a merge" /usr/bin/python3 merge.py; fi
    one "node, a map" node objects.js
    one "java, a map" java -cp . Walk
    one "ruby, a hash" ruby table.rb
    one "php, an array" php table.php
    one "perl, a hash" perl words.pl
    one "luajit, a table" luajit table.lua
    one "pypy3, a dictionary" pypy3 words.py
    one "R, sort and match" Rscript sorted.R
    one "OCaml, a table" ./ocaml-table
    one "Go, a map" ./go-map
    # Solvers, genomes.
    one minisat sh -c 'minisat -verb=0 large.cnf | grep -v CPU; true'
    one cadical cadical -q random.cnf
    one z3 z3 product.smt2
    one "bwa, an index" bwa index -p genome.index genome.fa
    one minimap2 minimap2 -t 1 -a genome.fa reads.fq
    one "samtools sort" samtools sort -@ 0 -O sam --no-PG reads.bam
    # What is on every machine.
    one "sort, one thread" sort --parallel=1 -S 1G text
    one xz xz -k -c -2 text
    one zstd zstd -q -k -c -9 text
    one gzip gzip -k -c text
    one "gcc -O2" gcc -O2 -c -o unit.o unit.c
    one "clang -O2" clang -O2 -c -o unit.o unit.c
    one "ld, six objects" ld -shared -o parts.so part1.o part2.o part3.o part4.o part5.o part6.o
    one "POV-Ray" povray -D +A +W400 +H300 -GA +Opicture.png spheres.pov
}

# A cluster of its own, which only its user may start.
postgres() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
    [ -n "$bin" ] && [[ "PostgreSQL, a hash join" =~ $only ]] || return 0
    chmod 755 "$work"
    mkdir "$work/cluster" && chown postgres "$work/cluster"
    setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/initdb" -A trust -D "$work/cluster" >/dev/null
    served "PostgreSQL, a hash join" "psql -q -h $work/cluster -U postgres -p 7403 -f $work/postgres.sql" \
        setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$work/cluster" -p 7403 -k "$work/cluster" \
        -c max_parallel_workers_per_gather=0 -c work_mem=1GB -c shared_buffers=1GB -c listen_addresses=
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
