#!/usr/bin/env bash
# What takes longer than a test should: the rewriter's programs in all variants, all workloads of
# real programs in all modes, debuggers in twins, every program and library of this system, as
# identity and poisoned twins, yields at every load of some, and packages elsewhere. The outcome is
# left in target/long/BUILD/report.md, with the date and the machine.
#
#   scripts/test-long.sh [PART…]
#
# What was done of it with this very build is kept in target/long, and not done again: so it may be
# stopped and go on, and parts may be done by themselves. Parts: matrix, the names in programs/real,
# debugging, every-load, databases, packages, identity-1 to -4, poison-1 to -4.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
gleaner=${GLEANER:-$target/release/gleaner}
[ -x "$gleaner" ] || { echo "no $gleaner: run 'make build' first" >&2; exit 2; }
done_with=$(sha256sum <"$gleaner" | cut -c1-16)
work=$target/long/$done_with
mkdir -p "$work"

all=(matrix)
for workload in programs/real/*.sh; do all+=("$(basename "$workload" .sh)"); done
all+=(debugging every-load databases packages)
for mode in identity poison; do for part in 1 2 3 4; do all+=("$mode-$part"); done; done

survey() { # TEST [PART/PARTS]
    SURVEY_GLEANER=$(realpath "$gleaner") SURVEY_PART=${2:-1/1} \
        cargo test --locked --package gleaner-cli --test cli -- --ignored --exact --nocapture "survey::$1"
}

# Spark, which needs Java, and ClickHouse read the tables that DuckDB reads in `make test`.
databases() {
    export GLEANER_READERS=${GLEANER_READERS:-$PWD/target/readers}
    command -v java >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless
    scripts/python-readers.sh "$GLEANER_READERS/python" duckdb==2.0.1 pyspark==4.3.0 chdb==4.4.0 &&
        cargo test --locked --workspace --features parquet --test cli -- \
            --ignored --exact fleet::other_databases_read_the_tables
}

perform() { # PART
    case $1 in
    matrix)
        export GLEANER_MATRIX=all GLEANER_RANDOM=1000
        cargo test --locked --package gleaner-twin --test twin harvested:: &&
            cargo test --locked --package gleaner-cli --test rewriter
        ;;
    debugging) scripts/debugging.sh ;;
    databases) databases ;;
    packages) make deb static && scripts/test-packages.sh ;;
    every-load) survey yields_at_every_load_are_proven ;;
    identity-*) survey all_of_this_system_is_rewritten_and_proven "${1#*-}/4" ;;
    poison-*) survey all_of_this_system_is_poisoned_and_proven "${1#*-}/4" ;;
    *) GLEANER=$gleaner scripts/real.sh --table "$work/$1.md" "$1" ;;
    esac
}

failed=()
wanted=("$@")
if [ $# = 0 ]; then wanted=("${all[@]}"); fi
for part in "${wanted[@]}"; do
    [ -e "$work/$part.passed" ] && continue
    if perform "$part" 2>&1 | tee "$work/$part.log"; then
        touch "$work/$part.passed"
    else
        failed+=("$part")
    fi
done

# What the parts of a survey found, together: rows of numbers, and of "some of all".
together() {
    cat "$work/$1"-[1-4].log 2>/dev/null | grep '^| ' | awk -F' *[|] *' -v mode="$1" '
        $2 ~ /^--/ || $2 == "---" { next }
        $2 ~ /wrong/ { wrong = wrong $0 "\n"; next }
        { if (!($2 in sum)) keys[++n] = $2; split($3, word, " "); sum[$2] += word[1]; if (word[2] == "of") all[$2] += word[3] }
        END {
            printf "| %s | |\n|---|---|\n", mode
            for (i = 1; i <= n; i++) { k = keys[i]; if (k in all) printf "| %s | %d of %d (%.3f %%) |\n", k, sum[k], all[k], 100 * sum[k] / all[k]; else printf "| %s | %d |\n", k, sum[k] }
            printf "%s", wrong
        }'
}

# Functions with twins are 99 of a hundred, of all parts that were done together.
enough() { # MODE
    together "$1" | awk -F'[|( ]+' '/^[|] functions twinned [|]/ && $4 < 99 * $6 / 100 { wrong = 1 } END { exit wrong }'
}
for mode in identity poison; do
    enough "$mode" || { failed+=("$mode: less than 99 % of functions"); rm -f "$work/$mode"-?.passed; }
done

missing=()
for part in "${all[@]}"; do [ -e "$work/$part.passed" ] || missing+=("$part"); done
{
    echo "# The last long test"
    echo
    echo "$("$gleaner" --version) at $(git rev-parse --short HEAD), $(date -u +%Y-%m-%d), by \`make test-long\`: $([ "${#missing[@]}" = 0 ] && echo "all passed" || echo "**not passed, or not run: ${missing[*]}**")."
    echo
    echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, Linux $(uname -r)."
    echo
    echo "## Real programs, beside themselves with twins"
    echo
    echo "| workload | mode | outcome | |"
    echo "|---|---|---|---|"
    for part in "${all[@]}"; do if [ -e "$work/$part.md" ]; then tail -n +3 "$work/$part.md"; fi; done
    cat "$work"/*.log | grep '^skipped:' | sort -u | sed 's/^/\n/' || true
    echo
    echo "## Programs for the rewriter, in all variants"
    echo
    grep ' variants, ' "$work/matrix.log" 2>/dev/null || true
    echo
    echo "## Debuggers"
    echo
    grep -v '^test result' "$work/debugging.log" 2>/dev/null | sed 's/^/- /'
    echo
    echo "## Packages, in roots without anything of this system"
    echo
    sed -n 's/^  \(passed\|FAILED\): /- \1: /p' "$work/packages.log" 2>/dev/null
    echo
    echo "## Every program and library below /usr/bin, /usr/sbin and /usr/lib"
    echo
    together identity
    echo
    together poison
    echo
    echo "## Yields at every load, proven"
    echo
    grep '^|' "$work/every-load.log" 2>/dev/null
} >"$work/report.md"
echo "$work/report.md"
[ "${#failed[@]}" = 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
