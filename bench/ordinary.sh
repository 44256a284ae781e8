# Ordinary programs as distributions have them, with what they work on. Sourced, not run: behind
# common.sh, in $work, by a script that has a function `tried NAME [--load LOAD --] COMMAND...`,
# which makes one row of its table, and `missing NAME PROGRAM`, which makes one of what is not
# installed; with $only, a pattern of names. On Debian: sqlite3 postgresql redis-server memcached
# python3-numpy python3-pandas nodejs default-jdk-headless ruby php-cli luajit pypy3 r-base-core
# ocaml golang minisat cadical z3 bwa minimap2 samtools povray; pip install duckdb.
set -euo pipefail

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
    if has "$2"; then tried "$@"; else missing "$1" "$2"; fi
}

# served NAME LOAD COMMAND...: one row, of a server
served() {
    if has "$3"; then tried "$1" --load "$2" -- "${@:3}"; else missing "$1" "$3"; fi
}

ordinary() {
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
