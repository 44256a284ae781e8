#!/usr/bin/env bash
# What yields cost a primary that never meets a guest: its pace as a harvest's primary beside a
# scavenger that sleeps, compared with the original program. Both run at once and work in turns of a
# tenth of a second. A second original beside the first one shows how exact such a comparison is:
# each program's memory lies elsewhere.
#   no-guest.sh [-o DIR] [PROGRAM...]     default: chase scan dfs cc join tree
# Variables: MIB, WINDOW (seconds), ROUNDS, PAIRS (how often all programs start anew), CPU.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
seconds=0
. "$root/bench/programs.sh"
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(chase scan dfs cc join tree)
mib=${MIB:-64} window=${WINDOW:-0.1} rounds=${ROUNDS:-60} pairs=${PAIRS:-4} cpu=${CPU:-1}
built programs "${programs[@]}"
built peers turns

raw=$work/no-guest.tsv
: >"$raw"
stop() { for file in "$work"/progress.*; do stop_at "$file"; done; }
for pair in $(seq "$pairs"); do
    for program in "${programs[@]}"; do
        rm -f "$work"/progress.*
        compacted
        run=("$work/$program" "$mib" 0)
        taskset -c "$cpu" "${run[@]}" "$work/progress.0" >/dev/null &
        taskset -c "$cpu" "$gleaner" harvest -q --scavenger 'sleep 1000' -- "${run[@]}" "$work/progress.1" >/dev/null &
        taskset -c "$cpu" "${run[@]}" "$work/progress.2" >/dev/null &
        "$work/turns" "$rounds" "$window" "$work"/progress.{0,1,2} >"$work/paces" || { stop; echo "not all programs made progress" >&2; exit 1; }
        sed "s/^/$pair\t$program\t/" "$work/paces" >>"$raw"
        stop
        wait
    done
done
[ -z "$out" ] || { mkdir -p "$out" && { echo "# pair, program, steps a second of one original, of the harvest's primary, of another original"; cat "$raw"; } >"$out/no-guest.tsv"; }
awk -F'\t' '
    function sorted(s, n,    i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j - 1] > s[j]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t } }
    function told(name, which,    i, n, s, m) {
        n = count[name]
        for (i = 1; i <= n; i++) s[i] = which == 1 ? v[name, i] : w[name, i]
        sorted(s, n)
        m = n % 2 ? s[(n + 1) / 2] : (s[n / 2] + s[n / 2 + 1]) / 2
        # The 95 % interval of the median of n values, by rank.
        lowest = int((n - 1.96 * sqrt(n)) / 2); lowest = lowest < 1 ? 1 : lowest
        return sprintf("%.1f [%.1f, %.1f]", 100 * m, 100 * s[lowest], 100 * s[n + 1 - lowest])
    }
    $3 > 0 && $4 > 0 && $5 > 0 {
        if (!($2 in count)) order[++programs] = $2
        n = ++count[$2]
        own = ($3 + $5) / 2
        v[$2, n] = own / $4 - 1
        w[$2, n] = $3 / $5 - 1
    }
    END {
        print "| program, MIB MiB | slower by, % | one original slower than the other by, % |\n|---|---|---|"
        for (p = 1; p <= programs; p++) printf "| %s | %s | %s |\n", order[p], told(order[p], 1), told(order[p], 2)
        print "\nMedians [95 %] of the rounds of PAIRS starts; the originals count with their mean."
    }' "$raw" | sed "s/MIB MiB/$mib MiB/; s/PAIRS/$pairs/" | keep no-guest.md
