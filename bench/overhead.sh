#!/usr/bin/env bash
# What identity twins cost at run time: a program as it is, a copy of it, and the program with
# twins, one after the other on the same CPU, in rounds whose order changes. Each round gives
# ratios; the table shows their medians and an interval that holds the true median with 95 %. The
# second row of each program compares a copy with the original: what this machine shows where there
# is no difference. Runs are short, so that a disturbance strikes few of them. Variables: PROGRAMS
# (which), ROUNDS (how many).
#
# To add a program: a function that runs it from the folder $1 and prints nothing, and its line at
# the end.
set -euo pipefail
. "$(dirname "$0")/common.sh"
rounds=${ROUNDS:-41}
cpu=$(awk '/^Cpus_allowed_list/ { n = split($2, part, /[,-]/); print part[n] }' /proc/self/status)
cpus=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
mkdir "$work"/rewritten

# folders FILE…: the files as they are, as copies, and with twins; all written anew
folders() {
    local file
    rm -rf "$work"/{original,copy,twin}
    mkdir "$work"/{original,copy,twin}
    for file in "$@"; do
        cp -L "$file" "$work/original/"
        cp -L "$file" "$work/copy/"
        cp "$work/rewritten/$(basename "$file")" "$work/twin/"
    done
}

sqlite3_run() { LD_LIBRARY_PATH=$1 taskset -c "$cpu" "$1/sqlite3" :memory: <"$work/script.sql" >/dev/null; }
python3_run() { PYTHONHASHSEED=0 taskset -c "$cpu" "$1/python3.11" -S "$work/script.py" >/dev/null; }
cc1_run() { taskset -c "$cpu" "$1/cc1" -quiet -O2 "$work/big.i" -o "$work/big.s"; }
redis_run() {
    taskset -c "$cpu" "$1/redis-server" --port 0 --unixsocket "$work/socket" --save '' --daemonize no >/dev/null 2>&1 &
    local server=$!
    until redis-cli -s "$work/socket" ping >/dev/null 2>&1; do sleep 0.01; done
    # The server's own CPU time: clients, and waiting for them, do not count.
    taskset -c "$cpus" redis-benchmark -s "$work/socket" -q -n 20000 -r 10000 -P 16 -c 8 -t set,get,incr,lpush,hset,zadd,lrange_100 >/dev/null 2>&1
    awk '{ print $1 / 1e9 }' "/proc/$server/schedstat" >"$work/seconds"
    kill $server
    wait $server || true
}

cat >"$work/script.sql" <<'SQL'
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) INSERT INTO t SELECT i, 'row ' || i * 7919 % 60000, i / 7.0 FROM n;
CREATE INDEX tb ON t(b); SELECT count(*), sum(x.c) FROM t x JOIN t y ON y.b = 'row ' || x.a; SELECT b, c FROM t ORDER BY c * 31 % 101, b LIMIT 5;
SELECT substr(b, 1, 6), count(*), avg(c) FROM t GROUP BY 1 ORDER BY 2; UPDATE t SET c = c + 1 WHERE a % 3 = 0; DELETE FROM t WHERE b LIKE '%77%';
SQL
cat >"$work/script.py" <<'PY'
import json, re
class P:
    def __init__(self, x): self.x = x
    def step(self, k): self.x = (self.x * 31 + k) % 1000003; return self.x
def run():
    p, d = P(1), {}
    for i in range(120000):
        v = p.step(i); d[v % 997] = d.get(v % 997, 0) + 1
    s = json.dumps([{str(k): [v, v / 3, None]} for k, v in sorted(d.items())]); t = json.loads(s)
    w = re.findall(r'(\d+)\.(\d{2,})', s); q = sorted(w * 4, key=lambda x: (x[1], x[0]))
    f = [sum(int(c) for c in str(3 ** n)) for n in range(300)]; g = ''.join(chr(65 + x % 26) for x in f) * 50
    return len(t), q[len(q) // 2], g.count('AB'), sum(a * b for a, b in zip(f, reversed(f)))
for _ in range(4): print(run())
PY
awk 'BEGIN { for (i = 0; i < 30; i++) { printf "static int sw%d(int x, int *p) { switch (x %% %d) {", i, 7 + i % 9; for (j = 0; j < 7 + i % 9; j++) printf " case %d: *p += x * %d; break;", j, i * j; printf " default: return *p; } return x ^ *p; }\nstatic double fl%d(double *restrict a, const double *restrict b, int n) { double t = %d; for (int i = 0; i < n; i++) { a[i] = a[i] * b[i] + %d; t += a[i] > b[i] ? a[i] : -b[i]; } return t; }\nunsigned h%d(const char *s, double *a, double *b, int *p) { unsigned h = %d; while (*s) h = (h ^ (unsigned char)*s++) * 16777619u; return h / %d + sw%d(h, p) + (int)fl%d(a, b, 64); }\n", i, i, i, i, i + 1, 3 + i, i, i } }' >"$work/big.i"

# once PROGRAM FOLDER: seconds
once() {
    rm -f "$work/seconds"
    local begin=${EPOCHREALTIME/./} end
    "$1_run" "$work/$2" 2>/dev/null
    end=${EPOCHREALTIME/./}
    if [ -e "$work/seconds" ]; then cat "$work/seconds"; else awk -v took=$((end - begin)) 'BEGIN { print took / 1e6 }'; fi
}

# rounds PROGRAM FILE…: seconds of "ORIGINAL COPY TWIN", a line each round, in all orders. Which
# physical memory holds a file is luck, and caches go by physical address; so the files are written
# anew every four rounds.
rounds() {
    local round at which order=(original copy twin original copy twin) seconds
    for round in $(seq "$rounds"); do
        if ((round % 4 == 1)); then
            folders "${@:2}"
            for which in original copy twin; do once "$1" "$which" >/dev/null; done
        fi
        declare -A seconds=()
        for at in 0 1 2; do
            if ((round % 2)); then which=${order[round % 3 + at]}; else which=${order[round % 3 + 2 - at]}; fi
            seconds[$which]=$(once "$1" "$which")
        done
        echo "${seconds[original]} ${seconds[copy]} ${seconds[twin]}"
    done
}

measure() { # PROGRAM FILE…
    local program=$1 seconds file
    shift
    for file in "$@"; do "$gleaner" twin --identity -q -o "$work/rewritten/$(basename "$file")" "$(realpath "$file")" >/dev/null; done
    rounds "$program" "$@" >"$work/rounds"
    seconds=$(awk '{ s += $1 } END { printf "%.3f", s / NR }' "$work/rounds")
    echo "| $program | twins | $(ratio 3) | $rounds | $seconds | $(stat -Lc %s "$@" | paste -sd+ | bc) |"
    echo "| $program | copy | $(ratio 2) | $rounds | $seconds | |"
}

# Runs with -o into the same folder, one program each, are put together in one table.
if [ -n "$out" ]; then
    mkdir -p "$out"
    touch "$out/overhead.md"
    grep '^| [a-z]' "$out/overhead.md" | grep -v -E "^\| (program|$(tr ' ' '|' <<<"${PROGRAMS:-sqlite3 python3 redis cc1}")) " >"$work/others" || true
fi
{
    echo "| program | against the original | ratio of times in each round: median [95 %] | rounds | seconds | bytes |"
    echo "|---|---|---|---|---|---|"
    if [ -e "$work/others" ]; then cat "$work/others"; fi
    for program in ${PROGRAMS:-sqlite3 python3 redis cc1}; do
        case $program in
        sqlite3) measure sqlite3 /usr/bin/sqlite3 /usr/lib/x86_64-linux-gnu/libsqlite3.so.0 ;;
        python3) measure python3 /usr/bin/python3.11 ;;
        redis) measure redis /usr/bin/redis-server ;;
        cc1) measure cc1 "$(gcc -print-prog-name=cc1)" ;;
        esac
    done
} | keep overhead.md
