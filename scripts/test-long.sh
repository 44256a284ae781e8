#!/usr/bin/env bash
# What takes longer than a test should: all workloads of real programs in all modes, debuggers in twins, every program and
# library of this system. The outcome is left in docs/long-tests.md, with the date and the machine.
set -uo pipefail
cd "$(dirname "$0")/.."
gleaner=${GLEANER:-${CARGO_TARGET_DIR:-target}/release/gleaner}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

scripts/real.sh --table "$work/real.md" | tee "$work/real.log" || failed=1
scripts/debugging.sh | tee "$work/debugging.log" || failed=1
cargo test --release --locked --package gleaner-cli --test survey -- --ignored --nocapture | tee "$work/survey.log" || failed=1

{
    echo "# The last long test"
    echo
    echo "$("$gleaner" --version) at $(git rev-parse --short HEAD), $(date -u +%Y-%m-%d), by \`make test-long\`: $([ $failed = 0 ] && echo "all passed" || echo "**something failed**")."
    echo
    echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, Linux $(uname -r)."
    echo
    echo "## Real programs, beside themselves with twins"
    echo
    cat "$work/real.md"
    grep '^skipped:' "$work/real.log" | sed 's/^/\n/' || true
    echo
    echo "## Debuggers"
    echo
    grep -v '^test result' "$work/debugging.log" | sed 's/^/- /'
    echo
    echo "## Every program and library below /usr/bin, /usr/sbin and /usr/lib"
    echo
    grep '^|' "$work/survey.log"
} >docs/long-tests.md
echo "docs/long-tests.md"
exit $failed
