#!/usr/bin/env bash
# What yields cost a primary that has them and meets nobody: its pace as a harvest's primary beside a scavenger that sleeps, over that of the
# original, in turns.
#   nobody.sh [-o DIR] [PROGRAM...]     else chase scan dfs cc join tree
# MIB, SECONDS_EACH, ROUNDS, CPU may be set in the environment.
set -euo pipefail
. "$(dirname "$0")/common.sh"
shift $((OPTIND - 1))
. "$root/bench/seen.sh"
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(chase scan dfs cc join tree)
mib=${MIB:-64} seconds=${SECONDS_EACH:-1} rounds=${ROUNDS:-7} cpu=${CPU:-1}
built programs "${programs[@]}"
built peers window

raw=$work/nobody.tsv
: >"$raw"
for round in $(seq "$rounds"); do
    for program in "${programs[@]}"; do
        run=("$work/$program" "$mib" 0 "$work/progress.0")
        plain=$(seen 0 taskset -c "$cpu" "${run[@]}" | awk '{ print $2 / $1 }')
        twin=$(seen 0 taskset -c "$cpu" "$gleaner" harvest --scavenger 'sleep 1000' -- "${run[@]}" | awk '{ print $2 / $1 }')
        printf '%s\t%s\t%s\t%s\n' "$round" "$program" "$plain" "$twin" >>"$raw"
    done
done
[ -z "$out" ] || { mkdir -p "$out" && { echo "# round, program, steps a second of the original, of the harvest's primary"; cat "$raw"; } >"$out/nobody.tsv"; }
awk -F'\t' '{ if (!($2 in n)) order[++programs] = $2; v[$2, ++n[$2]] = $3 / $4 - 1 }
    END {
        print "| program, MIB MiB | slower by, % |\n|---|---|"
        for (p = 1; p <= programs; p++) {
            name = order[p]; size = n[name]
            for (i = 1; i <= size; i++) s[i] = v[name, i]
            for (i = 2; i <= size; i++) for (j = i; j > 1 && s[j - 1] > s[j]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
            m = size % 2 ? s[(size + 1) / 2] : (s[size / 2] + s[size / 2 + 1]) / 2
            printf "| %s | %.1f [%.1f, %.1f] |\n", name, 100 * m, 100 * s[1], 100 * s[size]
        }
        print "\nOf the pace of the original; median of the rounds [least, greatest]."
    }' "$raw" | sed "s/MIB MiB/$mib MiB/" | keep nobody.md
