#!/usr/bin/env bash
# Tries the numa experiment on a machine with two nodes, wherever this runs: boots a small guest
# (scripts/guest.sh), lets Gleaner measure there, and checks from its record that both nodes were
# seen, that every placement was made, and that pages lie where they were asked to. Placement, not
# speed: times under emulation mean nothing, and the guest's figures may well be unresolved.
#
# Exit 0 also where something cannot be had: it is named then.
set -euo pipefail
cd "$(dirname "$0")/.."
what="memory placement on a guest of two nodes"
. scripts/guest.sh

prepare numa
echo "booting it: two nodes of two CPUs, emulated (at most $seconds s)"
boot numa "" -cpu max -smp 4,sockets=2,cores=2,threads=1 \
    -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=512M \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 \
    -numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=21 \
    -serial "file:$work/machine.json" -serial "file:$work/doctor.json"
echo "its records: $work/machine.json, $work/doctor.json"

GLEANER_GUEST_RECORDS="$work" cargo test --quiet --locked --package gleaner-experiments --test guest -- --ignored || {
    tail -n 30 "$work/console.log"
    exit 1
}
echo "memory lay where it was asked to"
