#!/usr/bin/env bash
# Makes docs/reproduce/DOCUMENT-FIGURE.svg of records of `gleaner reproduce`, for docs/reproduce.md.
# Older pictures of the same documents are removed.
#
#   scripts/reproduce-pictures.sh mlp.json origin2000.json lat_mem_rd.json
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
top=$(dirname "$(dirname "$(realpath "$0")")")
gleaner=${GLEANER:-${CARGO_TARGET_DIR:-$top/target}/release/gleaner}
most_bytes=40000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$top/docs/reproduce"
for record in "$@"; do
    # Names of documents are short words: see `gleaner reproduce`.
    document=$(perl -0ne 'print $1 if /"document"\s*:\s*"(\w+)"/' "$record")
    [ -n "$document" ] || { echo "$record: no record of gleaner reproduce" >&2; exit 1; }
    rm -rf "$work/figures"
    "$gleaner" report -q --share --svg "$work/figures" -o "$work/page.html" "$record"
    rm -f "$top/docs/reproduce/$document"-*.svg
    for figure in "$work"/figures/r1-*.svg; do
        picture=docs/reproduce/$document-$(basename "$figure" | cut -c4-)
        bytes=$(stat -c %s "$figure")
        [ "$bytes" -le "$most_bytes" ] || { echo "$picture has $bytes bytes, more than $most_bytes" >&2; exit 1; }
        cp "$figure" "$top/$picture"
        echo "$picture ($bytes bytes)"
    done
done
