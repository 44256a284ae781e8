#!/usr/bin/env bash
# What a long profile takes: the memory of the profiler, the memory that it adds to the program,
# and the bytes of the record, after ten minutes. Each program runs once as it is, for a minute,
# and once profiled; its memory and the profiler's are the most that the kernel told, asked twice a
# second. Nothing here is a time, so the programs run beside each other. Variables: SECONDS_EACH,
# SECONDS_ALONE, PROGRAMS (which).
#
# To add a program: a function that makes it run for $1 seconds by "${@:2}" in front of it.
set -euo pipefail
. "$(dirname "$0")/common.sh"
seconds=${SECONDS_EACH:-600} alone=${SECONDS_ALONE:-60}
program join
numbered 1200000 >"$work/text"

# Many objects of few sites, many stacks, and a library that has most of the code.
cat >"$work/dict.py" <<'PY'
import random, sys, time
until = time.monotonic() + float(sys.argv[1])
random.seed(1)
while time.monotonic() < until:
    d = {i * 7919: [i, str(i)] for i in range(600000)}
    keys = list(d)
    random.shuffle(keys)
    print(sum(d[k][0] for k in keys), len({s[::-1] for _, s in d.values()}))
PY
# As many processes as it has turns.
cat >"$work/turns.sh" <<'SH2'
until=$(($(date +%s) + $1))
while [ "$(date +%s)" -lt "$until" ]; do sort -S 200M "$2" | gzip -1 | wc -c; done
SH2
# A thousand threads that allocate.
cat >"$work/threads.c" <<'C'
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static time_t until;
static void *works(void *number) {
    uint64_t sum = 0, state = (uintptr_t)number + 1;
    while (time(NULL) < until) {
        char **all = malloc(200 * sizeof *all);
        for (int i = 0; i < 200; i++) {
            state = state * 6364136223846793005u + 1;
            all[i] = malloc(64 + (state >> 33) % 4000);
            all[i][0] = (char)i;
        }
        for (int i = 0; i < 200; i++) { sum += (uint64_t)all[i][0]; free(all[i]); }
        free(all);
        struct timespec pause = {0, 500000000};
        nanosleep(&pause, NULL);
    }
    return (void *)sum;
}
int main(int argc, char **argv) {
    static pthread_t threads[1000];
    until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
    for (int i = 0; i < 1000; i++)
        if (pthread_create(&threads[i], NULL, works, (void *)(uintptr_t)i)) return 1;
    for (int i = 0; i < 1000; i++) pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
C
cc -O2 -pthread -o "$work/threads" "$work/threads.c"

python3_run() { exec "${@:2}" /usr/bin/python3 "$work/dict.py" "$1"; }
join_run() { exec "${@:2}" timeout -s INT "$1" "$work/join" 64 0; }
threads_run() { exec "${@:2}" "$work/threads" "$1"; }
turns_run() { exec "${@:2}" bash "$work/turns.sh" "$1" "$work/text"; }
programs=${PROGRAMS:-python3 join threads turns}

# below PID: all processes below it
below() {
    local child
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        echo "$child"
        below "$child"
    done
}
# memory PID...: bytes; what processes share counts once
memory() {
    local pid
    for pid in "$@"; do cat "/proc/$pid/smaps_rollup" 2>/dev/null || true; done | awk '/^Pss:/ { sum += $2 } END { print 1024 * sum }'
}

# watched NAME SECONDS LOG COMMAND...: runs it; bytes at the most, of the process that was started
# and of all that are below it, to LOG
watched() {
    local log=$3 own=0 under=0 now pid
    ( "$1_run" "$2" "${@:4}" ) >/dev/null 2>"$log.err" &
    pid=$!
    while [ -e "/proc/$pid/smaps_rollup" ] && kill -0 "$pid" 2>/dev/null; do
        now=$(memory "$pid"); [ "$now" -le "$own" ] || own=$now
        # shellcheck disable=SC2046 # several words
        now=$(memory $(below "$pid")); [ "$now" -le "$under" ] || under=$now
        sleep 0.5
    done
    wait "$pid" || true
    echo "$own $under" >"$log"
}

one() {
    watched "$1" "$alone" "$work/$1.alone"
    watched "$1" "$seconds" "$work/$1.profiled" "$gleaner" profile -q -o "$work/$1.json" --
}

for program in $programs; do one "$program" & done
wait
{
    echo "| program, $seconds s | its memory alone | profiled | the profiler's | all that is added | 64 MB + 2% | record |"
    echo "|---|---|---|---|---|---|---|"
    for program in $programs; do
        awk -v name="$program" -v bytes="$(stat -c %s "$work/$program.json")" '
            function mb(n) { return sprintf("%.1f MB", n / 1e6) }
            { most[NR] = $1 + $2; own[NR] = $1; under[NR] = $2 }
            END { added = own[2] + under[2] - most[1]
                  printf "| %s | %s | %s | %s | %s | %s | %s |\n", name, mb(most[1]), mb(under[2]), mb(own[2]), mb(added), mb(64e6 + 0.02 * most[1]), mb(bytes) }' \
            "$work/$program.alone" "$work/$program.profiled"
    done
} | keep long.md
