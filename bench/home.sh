#!/usr/bin/env bash
# What a scavenger's twins cost at home, libraries included: the CPU time of ordinary programs as
# they are, and as scavengers of a primary that only sleeps, so that no guest comes aboard; in
# rounds, one after the other. The table shows medians of the ratios within rounds. What starting up
# under the launcher takes is in it. Variables: PROGRAMS (which), ROUNDS (how many).
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-5}
export PYTHONHASHSEED=0 PERL_HASH_SEED=0 LC_ALL=C

numbered 400000 >"$work/text"
cat "$work/text" "$work/text" "$work/text" >"$work/long"
cat >"$work/script.sql" <<'SQL'
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600000) INSERT INTO t SELECT i, 'row ' || i * 7919 % 600000, i / 7.0 FROM n;
CREATE INDEX tb ON t(b); SELECT count(*), sum(x.c) FROM t x JOIN t y ON y.b = 'row ' || x.a; SELECT b, c FROM t ORDER BY c * 31 % 101, b LIMIT 5;
SQL
cat >"$work/script.py" <<'PY'
d = {}
for i in range(2000000):
    k = i * 7919 % 1000003
    d[k] = d.get(k, 0) + i
print(sum(d.values()) % 1000007, len(d))
PY
echo '{ n[$1 % 100003] += NR; s += length($0) } END { for (k in n) t += n[k]; print s, t }' >"$work/script.awk"
echo 'my %h; $h{$_ * 7919 % 1000003} = $_ for 1..1000000; my $s = 0; $s += $h{$_} for sort keys %h; print $s' >"$work/script.pl"
awk -v n=100000 'BEGIN { srand(3); m = int(n * 2.7); print "p cnf", n, m; for (i = 0; i < m; i++) { for (j = 0; j < 3; j++) printf "%d ", (int(rand() * n) + 1) * (rand() < 0.5 ? 1 : -1); print 0 } }' >"$work/formula"
awk 'BEGIN { srand(4); split("A C G T", b, " "); print ">r"; for (i = 0; i < 50000; i++) { s = ""; for (j = 0; j < 80; j++) s = s b[int(rand() * 4) + 1]; print s } }' >"$work/genome"
awk 'BEGIN { srand(5); print "60000 400000"; for (i = 0; i < 400000; i++) print int(rand() * 60000), int(rand() * 60000) }' >"$work/graph"
awk 'BEGIN { for (i = 0; i < 40; i++) { printf "int sw%d(int x, int *p) { switch (x %% %d) {", i, 7 + i % 9; for (j = 0; j < 7 + i % 9; j++) printf " case %d: *p += x * %d; break;", j, i * j; printf " default: return *p; } return x ^ *p; }\ndouble fl%d(double *restrict a, const double *restrict b, int n) { double t = %d; for (int i = 0; i < n; i++) { a[i] = a[i] * b[i] + %d; t += a[i] > b[i] ? a[i] : -b[i]; } return t; }\n", i, i, i } }' >"$work/big.c"
cpp -P "$work/big.c" >"$work/big.i"
program search
cd "$work"

declare -A commands=(
    [gzip]="gzip -c long" [xz]="xz -1 -c long" [bzip2]="bzip2 -c text" [zstd]="zstd -q -9 -c long"
    [sha256sum]="sha256sum long long long long long long long long" [openssl]="openssl dgst -sha3-256 long" [sort]="sort --parallel=1 long"
    [awk]="mawk -f script.awk long" [sqlite3]="sqlite3 -init script.sql :memory: .quit" [python3]="/usr/bin/python3 -S script.py"
    [perl]="perl script.pl" [cc1]="$(gcc -print-prog-name=cc1) -quiet -O2 big.i -o big.s" [minisat]="minisat -verb=0 formula"
    [bwa]="bwa index -p index genome" [search]="./search graph 1000 200" [grep]="grep -c -E 9.*7.*line long"
)
programs=${PROGRAMS:-gzip xz bzip2 zstd sha256sum openssl sort awk sqlite3 python3 perl cc1 minisat bwa search grep}

# cpu COMMAND…: its CPU time in seconds, output to the file `expected`
cpu() { { TIMEFORMAT='%U %S'; time "$@" >expected 2>/dev/null || true; } 2>&1 | awk '{ print $1 + $2 }'; }

{
    echo "| program | alone, s | as a scavenger at home | least | most | output |"
    echo "|---|--:|--:|--:|--:|---|"
    for program in $programs; do
        read -r -a command <<<"${commands[$program]}"
        command -v "${command[0]}" >/dev/null || continue
        : >ratios
        same="the same"
        for round in $(seq "$rounds"); do
            rm -rf got
            begin=$EPOCHREALTIME
            alone=$(cpu "${command[@]}")
            wait=$(awk -v a="${begin/./}" -v b="${EPOCHREALTIME/./}" 'BEGIN { print 3 * (b - a) / 1e6 + 1 }')
            "$gleaner" harvest -q --library-time 60min --record run.json --scavenger-out got/ --scavenger "$(printf '%q ' "${command[@]}")" -- \
                sleep "$wait" >/dev/null 2>log || { cat log >&2; exit 1; }
            cmp -s expected got/1-*.out || same="DIFFERS"
            "$gleaner" show run.json .scavengers --json | python3 -c '
import json, sys
s = json.load(sys.stdin)[0]
print(sys.argv[1], s["times"]["at_home"]["value"], s.get("ended"))' "$alone" >>ratios
        done
        awk '{ print $2 / $1 }' ratios | sort -g | awk -v name="$program" -v alone="$alone" -v same="$same" '
            { r[NR] = $1 }
            END { printf "| %s | %.2f | %.2f | %.2f | %.2f | %s |\n", name, alone, (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2, r[1], r[NR], same }'
    done
} | keep home.md
