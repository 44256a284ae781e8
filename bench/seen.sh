# Benchmark programs built, started, watched by their progress files and stopped: what the scripts that harvest share. Sourced after
# common.sh, not run. Needs $seconds, the length of a window.
set -euo pipefail

# built FOLDER NAME...: bench/FOLDER/NAME.c as $work/NAME
built() {
    local folder=$1 name
    shift
    for name in "$@"; do cc -O2 -Wall -Wno-unused-function -o "$work/$name" "$root/bench/$folder/$name.c"; done
}

# files COUNT: the progress files of a primary and so many scavengers
files() { for i in $(seq 0 "$1"); do echo "$work/progress.$i"; done; }

# compacted: who comes last would get fewer huge pages than who came first, and be slower for that alone. As root only.
compacted() { if [ -w /proc/sys/vm/compact_memory ]; then echo 1 >/proc/sys/vm/compact_memory; fi; }

# stop_first: the last word of the primary's file says: stop
stop_first() { stop_at "$work/progress.0"; }
# stop_at FILE: the same of any
stop_at() { printf '\1\0\0\0\0\0\0\0' | dd of="$1" bs=1 seek=24 conv=notrunc status=none; }

# seen COUNT COMMAND...: runs it, watches the progress of COUNT + 1 programs, stops it; prints time and steps
seen() {
    local count=$1 line
    shift
    rm -f "$work"/progress.*
    compacted
    "$@" >/dev/null 2>"$work/errors" &
    local child=$!
    line=$("$work/window" "$seconds" $(files "$count")) || true
    stop_first
    wait "$child" || { cat "$work/errors" >&2; exit 1; }
    [ "$line" != -1 ] || { cat "$work/errors" >&2; echo "they never all worked" >&2; exit 1; }
    echo "$line"
}
