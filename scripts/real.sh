#!/usr/bin/env bash
# Real programs of this system do the same with twins: each workload in programs/real runs with the
# programs as they are, then with identity and poisoned ones and ones that prefetch ahead of each
# load, and prints the same and leaves the same exit code.
#
#   scripts/real.sh [--quick] [--jobs N] [--modes "identity poison …"] [--table FILE] [NAME…]
#
# As many workloads as there are CPUs run side by side (or N), each in a folder and a namespace of
# its own; what a workload says is printed when it is over, in one piece.
#
# --quick: the workloads that say so, poisoned. Identity twins are the same code with less in it.
#
# Modes: identity, poison, prefetch-all: the programs the workload names; libraries-identity,
# libraries-poison, libraries-prefetch-all: also every shared library that they are linked with, the
# C library and the loader among them, for all that runs meanwhile.
#
# The rewritten files are mounted over the originals, in a mount namespace of the workload's own, so
# that each program is found under its own path. A PID namespace ends whatever a workload leaves
# running.
#
# To add a workload: programs/real/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
gleaner=$(realpath "${GLEANER:-${CARGO_TARGET_DIR:-target}/release/gleaner}")
[ -x "$gleaner" ] || { echo "no $gleaner: run 'make build' first" >&2; exit 2; }

quick=no
jobs=$(nproc)
modes="identity poison prefetch-all libraries-identity libraries-poison libraries-prefetch-all"
table=/dev/null
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes modes=poison ;;
    --jobs) jobs=$2; shift ;;
    --modes) modes=$2; shift ;;
    --table) table=$(realpath "$2"); shift ;;
    -*) sed -n '2,5p' "$0" >&2; exit 2 ;;
    *) names+=("$1") ;;
    esac
    shift
done

namespaces=(unshare --mount --pid --fork --kill-child --mount-proc)
if ! "${namespaces[@]}" true 2>/dev/null; then
    namespaces=(unshare --map-root-user --mount --pid --fork --kill-child --mount-proc)
    if ! "${namespaces[@]}" true 2>/dev/null; then
        echo "skipped: real programs with twins: no mount namespace may be made here (root, or user namespaces, would help)"
        exit 0
    fi
fi

base=$(mktemp -d "${TMPDIR:-/var/tmp}/gleaner-real.XXXXXX")
mkdir "$base/rewritten"
# Each workload is a process group, which ends as a whole: its namespace goes with it.
set -m
stop() {
    for group in $(jobs -p); do kill -KILL -- "-$group" 2>/dev/null || true; done
    wait 2>/dev/null
    rm -rf "$base"
}
trap stop EXIT
trap 'exit 130' INT TERM HUP
# These are of one workload each: where it runs, and what came of it.
work= passed=0 failed=0
skipped=()
updated=no

said() { # WORKLOAD KEY: the values of its lines '#: KEY value'
    sed -n "s/^#: $2 *//p" "$1"
}

have() { # COMMAND-OR-FILE PACKAGE
    command -v "$1" >/dev/null || [ -e "$1" ] && return 0
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    if [ "$updated" = no ]; then apt-get update -qq >/dev/null || true; updated=yes; fi
    echo "installing $2"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null 2>&1 || true
    command -v "$1" >/dev/null || [ -e "$1" ]
}

libraries() { # PROGRAM…: what they are linked with
    ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && $2 ~ /^\(/ { print $1 }' |
        xargs -r realpath | sort -u
}

# rewritten MODE FILE: prints where FILE lies rewritten; nothing, if it has no twins by its kind
# (Go, data only …). A process that asks for what another is about to write
# waits for it.
rewritten() {
    local to=$base/rewritten/$1${2//\//_} lock
    exec {lock}>"$to.lock"
    flock "$lock"
    if [ ! -e "$to" ] && [ ! -e "$to.refused" ]; then
        # Set-user-ID files are refused, as they should be: their contents are what is tried here.
        local from=$2
        if [ -u "$2" ] || [ -g "$2" ]; then from=$to.plain; cp --no-preserve=mode "$2" "$from"; fi
        if "$gleaner" twin "--$1" -q -o "$to" "$from" >/dev/null 2>"$to.why"; then chmod --reference="$2" "$to"; else touch "$to.refused"; fi
    fi
    exec {lock}>&-
    [ ! -e "$to.refused" ] && echo "$to"
}

why() { # MODE FILE: where the reason lies that it was refused for
    echo "$base/rewritten/${1#libraries-}${2//\//_}.why"
}

# perform WORKLOAD OUTPUT [ORIGINAL REWRITTEN]…
perform() {
    local script=$PWD/$1 output=$2 here=$work/here
    shift 2
    rm -rf "$here"
    mkdir -p "$here/tmp"
    {
        echo set -e
        while [ $# -gt 0 ]; do
            echo "mount --bind '$2' '$1'"
            shift 2
        done
        echo "cd '$here'"
        echo "exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME='$here' TMPDIR='$here/tmp' LC_ALL=C.UTF-8 TZ=UTC TERM=dumb \\"
        echo "    GLEANER='$gleaner' bash '$script'"
    } >"$work/start.sh"
    local status=0
    "${namespaces[@]}" bash "$work/start.sh" >"$output" 2>&1 </dev/null || status=$?
    echo "exit code $status" >>"$output"
}

verdict() { # WORKLOAD MODE WHAT [DETAIL]
    printf "%-16s %-20s %s  %s\n" "$(basename "$1" .sh)" "$2" "$3" "${4:-}"
    printf '| %s | %s | %s | %s |\n' "$(basename "$1" .sh)" "$2" "$3" "${4:-}" >>"$work/table"
}

# try WORKLOAD MODE
try() {
    local script=$1 mode=$2 pairs=() files twin began=$SECONDS
    mapfile -t files < <(programs "$script")
    while read -r file reason; do
        # Some are refused for good reason, and must be: in one line, with no file left.
        if rewritten "${mode#libraries-}" "$file" >/dev/null || [ "$(grep -c . "$(why "$mode" "$file")")" != 1 ] || ! grep -q "$reason" "$(why "$mode" "$file")"; then
            failed=$((failed + 1)); verdict "$script" "$mode" FAILED "$file is not refused for: $reason"; return
        fi
    done < <(said "$script" refused)
    if [[ $mode == libraries-* ]]; then
        mapfile -t -O "${#files[@]}" files < <(libraries "${files[@]}" /usr/bin/bash)
        # Each file once, whatever asks for it.
        mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -u)
    fi
    for file in "${files[@]}"; do
        if twin=$(rewritten "${mode#libraries-}" "$file"); then
            pairs+=("$file" "$twin")
        else
            echo "   $file: $(cat "$(why "$mode" "$file")")"
            # A library without code is none that fails; a program is.
            if [[ $mode != libraries-* ]]; then failed=$((failed + 1)); verdict "$script" "$mode" FAILED "not rewritten"; return; fi
        fi
    done
    perform "$script" "$work/output" "${pairs[@]}"
    if cmp -s "$work/expected" "$work/output"; then
        passed=$((passed + 1))
        verdict "$script" "$mode" "the same" "$((${#pairs[@]} / 2)) files, $(wc -l <"$work/output") lines, $((SECONDS - began)) s"
    else
        failed=$((failed + 1))
        # Is it the twins, or does the workload say different things each time?
        perform "$script" "$work/again"
        cmp -s "$work/expected" "$work/again" || verdict "$script" original DIFFERS "from itself"
        verdict "$script" "$mode" DIFFERS
        diff "$work/expected" "$work/output" | head -40 || true
        if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP"; cp "$work/expected" "$KEEP/$(basename "$script" .sh).expected"; cp "$work/output" "$KEEP/$(basename "$script" .sh).$mode"; fi
    fi
}

programs() { # WORKLOAD: the files it wants rewritten, as they are found now
    said "$1" program | while read -r program; do
        case $program in
        '$('*) eval "echo ${program}" ;; # what only a command knows, such as where gcc keeps cc1
        *) echo "$program" ;;
        esac
    done | sed "s|GLEANER|$gleaner|" | xargs -r realpath | sort -u
}

# workload SCRIPT: all of one, with its counts left in $work/counts.
workload() {
    local script=$1
    passed=0 failed=0
    perform "$script" "$work/expected"
    if grep -q '^exit code 0$' "$work/expected"; then
        for mode in $modes; do try "$script" "$mode"; done
    else
        failed=$((failed + 1))
        verdict "$script" original FAILED "by itself"
        tail -20 "$work/expected"
    fi
    echo "$passed $failed" >"$work/counts"
}

wanted=()
for script in programs/real/*.sh; do
    name=$(basename "$script" .sh)
    if [ "${#names[@]}" != 0 ] && [[ " ${names[*]} " != *" $name "* ]]; then continue; fi
    if [ $quick = yes ] && [ "${#names[@]}" = 0 ] && ! grep -q '^#: quick' "$script"; then continue; fi
    missing=
    while read -r command package; do
        have "$command" "$package" || missing="'$command' is missing (Debian: apt install $package, as root)"
    done < <(said "$script" needs)
    if [ -n "$missing" ]; then skipped+=("$name with twins: $missing"); continue; fi
    wanted+=("$script")
done

# One that went without leaving its counts failed.
over() { # NAME
    local work=$base/of/$1 p=0 f=1
    cat "$work/log"
    if [ -e "$work/counts" ]; then read -r p f <"$work/counts"; else echo "$1: ended without a verdict"; fi
    passed=$((passed + p)) failed=$((failed + f))
    rm -rf "$work/here"
}

declare -A running=()
one_over() {
    local which
    wait -n -p which "${!running[@]}" || true
    over "${running[$which]}"
    unset "running[$which]"
}
for script in "${wanted[@]}"; do
    while [ "${#running[@]}" -ge "$jobs" ]; do one_over; done
    name=$(basename "$script" .sh)
    work=$base/of/$name
    mkdir -p "$work"
    workload "$script" >"$work/log" 2>&1 </dev/null &
    running[$!]=$name
done
while [ "${#running[@]}" != 0 ]; do one_over; done

{
    echo "| workload | mode | outcome | |"
    echo "|---|---|---|---|"
    for script in "${wanted[@]}"; do cat "$base/of/$(basename "$script" .sh)/table" 2>/dev/null || true; done
} >"$table"
for what in "${skipped[@]}"; do echo "skipped: $what"; done
outcome=ok
if [ $failed != 0 ]; then outcome=FAILED; fi
echo "test result: $outcome. $passed passed; $failed failed; ${#skipped[@]} skipped"
[ $failed = 0 ]
