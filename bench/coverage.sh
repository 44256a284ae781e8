#!/usr/bin/env bash
# Do the ten loads that a profile names first carry the stall? Each program is profiled once as
# anybody would, `gleaner profile`; that is what is judged, by two truths that share no run with it:
#
# - clock: runs with a high frequency and no limit on what profiling may take. The truth is the time
#   behind each load beyond what it takes where it hits: samples.
# - probes: a run in which every load that the clock sees is probed at a high budget, times how
#   often
#   callgrind says that it is executed: latency beyond a hit, whether the core waits for it or not.
#   Reads that overlap or are fetched ahead count in full here, so this is an upper end.
#
# Beside it, the ten loads with most misses of the last cache by callgrind's model, and its time.
# Programs whose data fits into the caches are the control: no load of theirs should be named.
# Variables: PROGRAMS (which), REFERENCES (runs of the clock truth), KEEP (a directory for all that
# was recorded; what is there is not run again).
#
# To add a program: a function that runs it by "$@" in front of it and prints nothing; its name
# without `_run` is found by itself.
set -euo pipefail
. "$(dirname "$0")/common.sh"
references=${REFERENCES:-3}
kept=${KEEP:-$work/kept}
mkdir -p "$kept"

numbered 400000 >"$work/text"
head -c 8M "$work/text" >"$work/part"
for name in chase join cc dfs hot; do
    cc -O2 -g -Wno-unused-function -o "$work/$name" "$root/bench/programs/$name.c"
done
cat >"$work/script.sql" <<'SQL'
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) INSERT INTO t SELECT i, 'row ' || i * 7919 % 200000, i / 7.0 FROM n;
CREATE INDEX tb ON t(b); SELECT count(*), sum(x.c) FROM t x JOIN t y ON y.b = 'row ' || x.a; SELECT b, c FROM t ORDER BY c * 31 % 101, b LIMIT 5;
SQL
cat >"$work/script.py" <<'PY'
import random
random.seed(1)
d = {i * 7919: [i] for i in range(400000)}
keys = list(d)
random.shuffle(keys)
print(sum(d[k][0] for _ in range(4) for k in keys))
PY
awk -v n=100000 'BEGIN { srand(3); m = int(n * 2.7); print "p cnf", n, m; for (i = 0; i < m; i++) { for (j = 0; j < 3; j++) printf "%d ", (int(rand() * n) + 1) * (rand() < 0.5 ? 1 : -1); print 0 } }' >"$work/formula"
awk 'BEGIN { srand(4); split("A C G T", b, " "); print ">r"; for (i = 0; i < 150000; i++) { s = ""; for (j = 0; j < 80; j++) s = s b[int(rand() * 4) + 1]; print s } }' >"$work/genome"
awk 'NR > 1 { s = s $0 } END { srand(5); for (i = 0; i < 20000; i++) { print ">q" i; print substr(s, int(rand() * (length(s) - 150)) + 1, 100) } }' "$work/genome" >"$work/reads"
head -c 4M "$work/genome" >"$work/chromosome"
awk 'BEGIN { srand(6); for (i = 0; i < 400000; i++) { k = "key:" int(rand() * 300000); v = "value" i; printf "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", length(k), k, length(v), v, length(k), k } }' >"$work/commands"

sqlite3_run() { "$@" /usr/bin/sqlite3 :memory: ".read $work/script.sql"; }
python3_run() { PYTHONHASHSEED=0 "$@" /usr/bin/python3 "$work/script.py"; }
perl_run() { PERL_HASH_SEED=0 "$@" /usr/bin/perl -e 'srand(1); my %h; $h{int(rand(1e9))} = $_ for 1..400000; my $s = 0; for my $k (sort keys %h) { $s += $h{$k} } print $s'; }
redis_run() {
    rm -f "$work/socket"
    { until redis-cli -s "$work/socket" ping; do sleep 0.2; done
    redis-cli -s "$work/socket" --pipe <"$work/commands"
    redis-cli -s "$work/socket" shutdown nosave; } >/dev/null 2>&1 &
    "$@" /usr/bin/redis-server --port 0 --unixsocket "$work/socket" --save '' --dir "$work"
}
# It exits with 10 where a formula can be satisfied; a profiler tells that by 1.
minisat_run() { "$@" /usr/bin/minisat -verb=0 "$work/formula" || case $? in 1 | 10) ;; *) return 1 ;; esac; }
minimap2_run() { "$@" /usr/bin/minimap2 -t 1 -x sr "$work/genome" "$work/reads"; }
bwa_run() { "$@" /usr/bin/bwa index -p "$work/index" "$work/chromosome"; }
xz_run() { "$@" /usr/bin/xz -2 -k -c "$work/part"; }
gzip_run() { "$@" /usr/bin/gzip -6 -k -c "$work/part"; }
sort_run() { LC_ALL=C "$@" /usr/bin/sort --parallel=1 -S 500M "$work/text"; }
awk_run() { "$@" /usr/bin/mawk '{ n[$1 % 100003] += NR; s += length($0) } END { for (k in n) t += n[k]; print s, t }' "$work/text"; }
chase_run() { "$@" "$work/chase" 64 12000000; }
join_run() { "$@" "$work/join" 64 12000000; }
cc_run() { "$@" "$work/cc" 64 20000000; }
dfs_run() { "$@" "$work/dfs" 64 4000000; }
# The control: data that the caches hold.
hot_run() { "$@" "$work/hot" 1 600000000; }
openssl_run() { "$@" /usr/bin/openssl dgst -sha256 "$work/text" "$work/text" "$work/text" "$work/text" "$work/text" "$work/text" "$work/text" "$work/text" "$work/text" "$work/text"; }
programs=${PROGRAMS:-sqlite3 python3 perl redis minisat minimap2 bwa xz gzip sort awk chase join cc dfs hot openssl}

# recorded FILE PROGRAM COMMAND...: runs the program by the command, which leaves FILE there, and
# its seconds in FILE.seconds
recorded() {
    local file=$1 program=$2 begin
    shift 2
    [ ! -e "$file" ] || return 0
    begin=${EPOCHREALTIME/./}
    "${program}_run" "$@" >/dev/null 2>"$file.errors" || { cat "$file.errors" >&2; return 1; }
    awk -v took=$((${EPOCHREALTIME/./} - begin)) 'BEGIN { print took / 1e6 }' >"$file.seconds"
}

# The last cache for callgrind's model: as large as the kernel says, in powers of two.
last=$(awk 'BEGIN { for (i = 4; i >= 2; i--) { file = "/sys/devices/system/cpu/cpu0/cache/index" i "/size"; if ((getline size <file) > 0) { for (b = 1024; 2 * b <= size * 1024; b *= 2); print b ",16,64"; exit } } }')

for program in $programs; do
    at=$kept/$program
    mkdir -p "$at"
    recorded "$at/alone" "$program" env
    : >"$at/alone"
    recorded "$at/profile.json" "$program" "$gleaner" profile -q -o "$at/profile.json" --
    for run in $(seq "$references"); do
        recorded "$at/clock$run.json" "$program" \
            "$gleaner" profile -q --no-stacks --no-allocations --frequency 16000 -o "$at/clock$run.json" --
    done
    recorded "$at/probes.json" "$program" "$gleaner" profile -q --no-stacks --budget 90 -o "$at/probes.json" --
    recorded "$at/callgrind" "$program" valgrind -q --tool=callgrind --cache-sim=yes --dump-instr=yes --LL="$last" \
        --callgrind-out-file="$at/callgrind"
done
"$gleaner" doctor --json >"$kept/host.json"
# shellcheck disable=SC2086
python3 "$root/bench/coverage.py" "$kept" $programs | keep coverage.md
