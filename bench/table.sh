#!/usr/bin/env bash
# Eight ordinary primaries beside eight ordinary scavengers, all on one CPU: harvested with 5, 10
# and 20% allowed, and under SCHED_IDLE and at nice 19, by the kernel alone. Of each cell: the
# primary's wall time over that alone just before and after, and the scavenger's pace as a share of
# that alone, by the bytes that it has read and written when the primary ends (by those written,
# where it prints as it goes on). redis serves a client on another CPU; the others have a fixed
# piece of work. How much of its time each primary waits for memory is told by its profile.
# Variables: PRIMARIES, SCAVENGERS (lists of names), ALLOWED (percent).
set -euo pipefail
. "$(dirname "$0")/common.sh"
c++ -O2 -o "$work/search" "$root/bench/programs/search.cpp"
c++ -O2 -o "$work/map" "$root/bench/programs/map.cpp"
cc -O2 -o "$work/join" "$root/bench/programs/join.c"
python3 "$root/bench/inputs.py" "$work"
cp "$work/joins.sql" "$work/fewer.sql" && sed -i '60,$d' "$work/fewer.sql"
bwa index "$work/genome.fa" 2>/dev/null
cd "$work"
PRIMARIES=${PRIMARIES:-join map sqlite3 minisat minimap2 bwa python3 redis} \
    SCAVENGERS=${SCAVENGERS:-gzip xz bzip2 sha256sum sort sqlite3 python3 search} ALLOWED=${ALLOWED:-5 10 20} \
    python3 "$root/bench/table.py" "$gleaner" | keep table.md
