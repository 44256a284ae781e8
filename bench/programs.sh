# Builds, starts, watches (through their progress files) and stops benchmark programs. Shared by the
# scripts that harvest; source it after common.sh. Needs $seconds, the length of a window.
set -euo pipefail

# built FOLDER NAME...: bench/FOLDER/NAME.c as $work/NAME
built() {
    local folder=$1 name
    shift
    for name in "$@"; do cc -O2 -Wall -Wno-unused-function -o "$work/$name" "$root/bench/$folder/$name.c"; done
}

# files COUNT: the progress files of a primary and COUNT scavengers
files() { for i in $(seq 0 "$1"); do echo "$work/progress.$i"; done; }

# compacted: without this, the last program to start would get fewer huge pages than the first, and
# be slower for that alone. Works as root only.
compacted() { if [ -w /proc/sys/vm/compact_memory ]; then echo 1 >/proc/sys/vm/compact_memory; fi; }

# stop_first: sets the last word of the primary's progress file, which asks it to stop
stop_first() { stop_at "$work/progress.0"; }
# stop_at FILE: the same for any program
stop_at() { printf '\1\0\0\0\0\0\0\0' | dd of="$1" bs=1 seek=24 conv=notrunc status=none; }

# watched COUNT COMMAND...: runs it, watches the progress of COUNT + 1 programs, stops it; prints
# the time and the steps of each
watched() {
    local count=$1 line
    shift
    rm -f "$work"/progress.*
    compacted
    "$@" >/dev/null 2>"$work/errors" &
    local child=$!
    line=$("$work/window" "$seconds" $(files "$count")) || true
    stop_first
    wait "$child" || { cat "$work/errors" >&2; exit 1; }
    [ "$line" != -1 ] || { cat "$work/errors" >&2; echo "not all programs made progress" >&2; exit 1; }
    echo "$line"
}
