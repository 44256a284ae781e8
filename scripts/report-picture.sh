#!/usr/bin/env bash
# Makes docs/report.png, which the README shows: a part of the page that `gleaner report` makes of
# these records, by Chromium without a window (Debian: chromium).
#
#   scripts/report-picture.sh gleaner-tour/{tour,machine,profile,run}.json
#   PART=r2-about-latency scripts/report-picture.sh machine.json     from this section on
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
gleaner=${GLEANER:-${CARGO_TARGET_DIR:-target}/release/gleaner}
part=${PART:-r1-about-step-3}
most_bytes=150000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$gleaner" report -q --share -o "$work/report.html" "$@"
# A window without a screen does not scroll: what stands before that section is left out.
PART=$part perl -0pi -e 's/<nav .*?(?=<section id="\Q$ENV{PART}\E")/<main id="main"><article>/s or die "no section $ENV{PART}\n"' "$work/report.html"
# Light, whatever the desktop of this machine prefers; half as high as wide fits a README.
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --blink-settings=preferredColorScheme=1 --virtual-time-budget=2000 --window-size=880,760 \
    --screenshot="$work/report.png" "file://$work/report.html" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
bytes=$(stat -c %s "$work/report.png")
[ "$bytes" -le "$most_bytes" ] || { echo "the picture has $bytes bytes, more than $most_bytes" >&2; exit 1; }
cp "$work/report.png" docs/report.png
echo "docs/report.png ($bytes bytes)"
