#!/bin/sh
# Slurm runs this before a job on each of its nodes (slurm.conf: Prolog=…). A node whose memory is
# slower than LIMITS says is drained and the job queued again, which is what Slurm does where a
# prolog fails. What cannot be decided, or not be measured, lets the job begin.
set -eu
LIMITS=${LIMITS:-/etc/gleaner/limits}
RECORDS=${RECORDS:-/var/lib/gleaner}
GLEANER=${GLEANER:-gleaner}

mkdir -p "$RECORDS" || exit 0
code=0
"$GLEANER" probe --quiet --budget 5s --name "${SLURMD_NODENAME:-$(hostname)}" \
    --expect "$LIMITS" --output "$RECORDS" >/dev/null || code=$?
case $code in
4) exit 1 ;; # a figure broke its limit with its whole interval
*) exit 0 ;; # 0 kept; 5 not decided; 1, 2, 3 not measured: no reason to take the node away
esac
