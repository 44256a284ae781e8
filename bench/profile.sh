#!/usr/bin/env bash
# What profiling costs: each program as it is, the same again, under `gleaner profile --no-stacks
# --no-allocations` (the clock alone), and under `gleaner profile` (all), one after the other in
# rounds whose order changes. Each round gives ratios of the time from the program's start to its
# end; the table shows their medians and an interval that holds the true median with 95 %. The
# column "again" compares a program with itself: what this machine shows where there is no
# difference. Neighbours make rounds slower and never faster, so the fastest rounds of each way are
# compared, too; the last line has the medians over all programs. The profiler's own CPU time is
# beside it. Variables: PROGRAMS (which), ROUNDS (how many).
#
# To add a program: a function that runs it by "$@" in front of it and prints nothing; its name
# without `_run` is found by itself.
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-15}

numbered 1200000 >"$work/text"
gzip -1 -c "$work/text" >"$work/text.gz"
head -c 24M "$work/text" >"$work/part"
program chase join
cat >"$work/script.sql" <<'SQL'
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) INSERT INTO t SELECT i, 'row ' || i * 7919 % 300000, i / 7.0 FROM n;
CREATE INDEX tb ON t(b); SELECT count(*), sum(x.c) FROM t x JOIN t y ON y.b = 'row ' || x.a; SELECT b, c FROM t ORDER BY c * 31 % 101, b LIMIT 5;
SQL
cat >"$work/script.py" <<'PY'
import random
random.seed(1)
d = {i * 7919: [i] for i in range(600000)}
keys = list(d)
random.shuffle(keys)
print(sum(d[k][0] for _ in range(4) for k in keys))
PY
awk 'BEGIN { for (i = 0; i < 120; i++) printf "double fl%d(double *restrict a, const double *restrict b, int n) { double t = %d; for (int i = 0; i < n; i++) { a[i] = a[i] * b[i] + %d; t += a[i] > b[i] ? a[i] : -b[i]; } return t; }\nunsigned h%d(const char *s, double *a, double *b) { unsigned h = %d; while (*s) h = (h ^ (unsigned char)*s++) * 16777619u; switch (h %% 9) { case 1: h += 7; break; case 3: h ^= 9; break; case 5: return h; } return h / %d + (int)fl%d(a, b, 64); }\n", i, i, i + 1, i, i, 3 + i, i }' >"$work/big.c"

chase_run() { "$@" "$work/chase" 64 12000000; }
join_run() { "$@" "$work/join" 64 30000000; }
python3_run() { "$@" /usr/bin/python3 "$work/script.py"; }
sqlite3_run() { "$@" /usr/bin/sqlite3 :memory: ".read $work/script.sql"; }
perl_run() { "$@" /usr/bin/perl -e 'srand(1); my %h; $h{int(rand(1e9))} = $_ for 1..700000; my $s = 0; for my $k (sort keys %h) { $s += $h{$k} } print $s'; }
gcc_run() { "$@" gcc -O2 -c -o "$work/big.o" "$work/big.c"; }
xz_run() { "$@" xz -2 -k -c "$work/part"; }
gzip_run() { "$@" gzip -6 -k -c "$work/part"; }
gunzip_run() { "$@" sh -c "for i in 1 2 3; do gzip -d -c $work/text.gz; done"; }
bzip2_run() { "$@" bzip2 -k -c "$work/part"; }
sort_run() { "$@" env LC_ALL=C sort --parallel=1 -S 500M "$work/text"; }
awk_run() { "$@" awk '{ n[$1 % 100003] += NR; s += length($0) } END { for (k in n) t += n[k]; print s, t }' "$work/text"; }
openssl_run() { "$@" sh -c "for i in 1 2 3 4 5 6; do openssl dgst -sha256 $work/text; done"; }
programs=${PROGRAMS:-chase join python3 sqlite3 perl gcc xz gzip gunzip bzip2 sort awk openssl}

# once PROGRAM WAY: seconds; with a profiler, its CPU time and memory in $work/used
once() {
    local begin end
    case $2 in
    alone | again)
        begin=${EPOCHREALTIME/./}
        "$1_run" >/dev/null 2>&1
        end=${EPOCHREALTIME/./}
        awk -v took=$((end - begin)) 'BEGIN { print took / 1e6 }'
        ;;
    *)
        local options=()
        [ "$2" = clock ] && options=(--no-stacks --no-allocations)
        "$1_run" "$gleaner" profile -q "${options[@]}" -o "$work/profile.json" -- >/dev/null 2>&1
        "$gleaner" show "$work/profile.json" .summary.elapsed.value
        "$gleaner" show "$work/profile.json" .summary.overhead_beside.value >"$work/used.$2"
        ;;
    esac
}

# fastest COLUMN: the fastest round of that column over that of the first
fastest() {
    awk -v column="$1" '{ for (c = 1; c <= 4; c++) if (!least[c] || $c < least[c]) least[c] = $c } END { printf "%.4f", least[column] / least[1] }' "$work/rounds"
}

measure() {
    local round at way order=(alone again clock all alone again clock all)
    : >"$work/rounds"
    once "$1" alone >/dev/null
    for round in $(seq "$rounds"); do
        declare -A seconds=()
        for at in 0 1 2 3; do
            way=${order[round % 4 + at]}
            seconds[$way]=$(once "$1" "$way")
        done
        echo "${seconds[alone]} ${seconds[again]} ${seconds[clock]} ${seconds[all]} $(cat "$work/used.clock") $(cat "$work/used.all")" >>"$work/rounds"
    done
    awk -v name="$1" -v again="$(ratio 2)" -v clock="$(ratio 3)" -v all="$(ratio 4)" \
        -v least="$(fastest 2) | $(fastest 3) | $(fastest 4)" '
        { s += $1; c += $5; a += $6 }
        END { printf "| %s | %.2f | %s | %s | %s | %s | %.2f%% | %.2f%% |\n", name, s / NR, again, clock, all, least, 100 * c / NR, 100 * a / NR }' "$work/rounds"
}

{
    echo "| program | seconds | again | clock alone | all | fastest: again | clock alone | all | profiler's CPU, clock alone | all |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    for program in $programs; do measure "$program"; done | tee "$work/rows"
    # Columns 4 to 11 between bars; the first number of each.
    awk -F'|' '
        { for (c = 4; c <= 11; c++) { split($c, number, " "); value[c, NR] = number[1] + 0 } }
        function median(c,   i, j, t, v) {
            for (i = 1; i <= NR; i++) v[i] = value[c, i]
            for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
            return (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
        }
        END {
            printf "| median | |"
            for (c = 4; c <= 9; c++) printf " %.4f |", median(c)
            printf " %.2f%% | %.2f%% |\n", median(10), median(11)
        }' "$work/rows"
} | keep profile.md
