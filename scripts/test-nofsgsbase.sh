#!/usr/bin/env bash
# Harvests where user programs may not set FS and GS bases themselves: on a processor without
# FSGSBASE, and under a kernel that keeps it off. Small guests (scripts/guest.sh) run programs with
# and without a dynamic loader in both roles, beside each other; what they say and how they end is
# what they say and how they end here, alone.
#
# Exit 0 also where something cannot be had: it is named then.
set -euo pipefail
cd "$(dirname "$0")/.."
what="harvesting without FSGSBASE"
. scripts/guest.sh

prepare harvest
cc -O2 -Wall -pthread -o "$work/root/worker" crates/testkit/guest/worker.c
cc -O2 -Wall -pthread -static -o "$work/root/worker-static" crates/testkit/guest/worker.c
ldd "$work/root/worker" | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "$work/root$library"; done

# What both kinds of program say, in the order in which init.c runs them.
expected() (
    cd "$work/root"
    for kind in worker worker-static; do
        ./worker && true
        echo "exit $?"
        echo "gleaner: scavenger /$kind alone (1): exit code 42; its output is in /tmp/out"
        echo "exit 4"
        ./$kind alone && true
    done
    ./worker && true
    status=$?
    echo "gleaner: scavenger /worker dies (1): killed by signal 6; its output was discarded, --scavenger-out keeps it"
    echo "exit $status"
    echo "gleaner: /worker-static: statically linked; a primary must be dynamically linked, since its loader loads the runtime"
    echo "exit 3"
)

failed() { # WHERE WHAT
    tail -n 30 "$work/console.log"
    echo "FAILED: $1: $2"
    exit 1
}

guest() { # WHERE PROCESSOR KERNEL-OPTIONS
    echo "booting it: $1 (at most $seconds s)"
    rm -f "$work"/doctor.json "$work"/said "$work"/aboard
    boot harvest "$3" -cpu "$2" -smp 2 -serial "file:$work/doctor.json" -serial "file:$work/said" -serial "file:$work/aboard"
    # Without the summaries, which have figures.
    diff "$work/expected" <(tr -d '\r' <"$work/said" | sed '/^harvest: /,/^  next: /d; /^ *[0-9]*%  /d') || failed "$1" "the left is what it should be"
    ! grep -q '^0 ' "$work/aboard" || failed "$1" "no guest was aboard"
    grep -A2 '"fsgsbase"' "$work/doctor.json" | grep -q '"no"' || failed "$1" "it is none"
}

expected >"$work/expected"
guest "a processor without FSGSBASE" max,-fsgsbase ""
guest "a kernel that keeps it off" max nofsgsbase
echo "primaries and scavengers did what they do alone"
