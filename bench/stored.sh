#!/usr/bin/env bash
# Do the samples of other profilers name the loads that a profile of ours names? Each program runs
# under `gleaner profile --no-probes`, and under gperftools (LD_PRELOAD=libprofiler.so), whose files
# `gleaner profile --pprof` then reads; programs in Go write their own, by runtime/pprof. stored.py
# compares the first ten loads by their addresses, of those whose order chance does not decide.
#
# gperftools samples once a tick of the kernel at most: so each program runs several times under it,
# and the samples of all files are added up, those of its children, too. What is not compared: code
# that is made as it runs, which no file has, and children that only fork, which gperftools does not
# sample.
#
# Then files that other tools have written and that lie in modules of Go: each is read, or refused
# in plain words. And a gigabyte of samples: how long it takes, and how much memory.
# Variables: ONLY (a pattern of names), RUNS (of each kind), KEEP (a directory for the profiles),
# PARTS (of: programs files gigabyte). Beside what ordinary.sh names, on Debian:
# libgoogle-perftools-dev gawk lua5.4 jq bzip2 lz4 brotli ripgrep tcl. To add a program: a line
# in `more`.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$root/bench/ordinary.sh"
only=${ONLY:-.}
runs=${RUNS:-3}
parts=${PARTS:-programs files gigabyte}
kept=${KEEP:-$work/kept}
mkdir -p "$kept"
kept=$(cd "$kept" && pwd)
export XDG_CACHE_HOME=$work/cache
cd "$work"
profiler=$(ldconfig -p | awk '/libprofiler\.so/ { print $NF; exit }')
gperftools=(LD_PRELOAD="$profiler" CPUPROFILE="$work/cpu.prof" CPUPROFILE_FREQUENCY=1000)
# PHP sets the interval timer itself, and where a program has another run in its place, the timer
# stays set and ends that: these have a timer of the main thread, with a signal of its own.
own_timer='^(php|R,|sort|DuckDB)'

# ran LOAD COMMAND...: runs it; a server is ended once its load has been answered
ran() {
    local load=$1 status=0
    shift
    if [ -z "$load" ]; then
        timeout 600 "$@" </dev/null >/dev/null 2>errors || status=$?
    else
        "$@" </dev/null >/dev/null 2>errors &
        until $load >/dev/null 2>&1 || ! kill -0 $! 2>/dev/null; do sleep 0.3; done
        # Under a profiler it is its child.
        kill "$(pgrep -P $! || echo $!)" || true
        wait $! || status=$?
    fi
    return "$status"
}

# compared NAME: its row, of the profiles that are there
compared() {
    if compgen -G "$kept/$1/own.*.json" >/dev/null && compgen -G "$kept/$1/stored.*.json" >/dev/null; then
        python3 "$root/bench/stored.py" row "$1" "$kept/$1"
    else
        echo "| $1 | - | $(tail -n 1 errors | tr '|' '/') | | | | |"
    fi
}

missing() { echo "| $1 | - | $2 is not installed | | | | |"; }

# Reads what another profiler wrote of the program and its children. Empty files are of programs
# that had another run in their place.
read_all() {
    local file number=0
    for file in cpu.prof*; do
        [ -s "$file" ] || continue
        number=$((number + 1))
        "$gleaner" profile -q -o "$at/stored.$run.$number.json" --pprof "$file" 2>errors >/dev/null || cat errors >&2
    done
}

# What is not compared, by name.
left_out='^(java|Go, a map|PostgreSQL)'

# tried NAME [--load LOAD --] COMMAND...: one row. In the command of a program that has a profiler
# of its own, the word PROFILE=OPTION stands for its option.
tried() {
    local name=$1 load='' run at word with=() without=() has_own='' timer=()
    shift
    if ! [[ $name =~ $only ]] || [[ $name =~ $left_out ]]; then return 0; fi
    if [ "$1" = --load ]; then
        load=$2
        shift 3
    fi
    if [[ $name =~ $own_timer ]]; then timer=(CPUPROFILE_PER_THREAD_TIMERS=1 CPUPROFILE_TIMER_SIGNAL=38); fi
    # The interpreter, not a script that finds it.
    if [ "$1" = python3 ]; then set -- "$(python3 -c 'import sys; print(sys.executable)')" "${@:2}"; fi
    for word in "$@"; do
        case $word in
        PROFILE=*)
            has_own=yes
            with+=("${word#PROFILE=}$work/cpu.prof")
            ;;
        *)
            with+=("$word")
            without+=("$word")
            ;;
        esac
    done
    at=$kept/$name
    mkdir -p "$at"
    for run in $(seq "$runs"); do
        if [ ! -e "$at/own.$run.json" ]; then
            ran "$load" "$gleaner" profile -q --no-probes -o "$at/own.$run.json" -- "${without[@]}" || true
        fi
        if ! compgen -G "$at/stored.$run.*" >/dev/null; then
            rm -f cpu.prof*
            if [ -n "$has_own" ]; then
                ran "$load" "${with[@]}" || true
            else
                ran "$load" env "${gperftools[@]}" "${timer[@]}" "${with[@]}" || true
            fi
            read_all
        fi
    done
    compared "$name"
}

more_inputs() {
    awk 'BEGIN { srand(8); for (i = 0; i < 400000; i++) printf "{\"id\": %d, \"of\": %d, \"text\": \"row %x\"}\n", i, int(rand() * 50000), int(rand() * 1e9) }' >rows.json
    awk 'BEGIN { for (i = 0; i < 250; i++) printf "pub fn f%d(a: &[u64]) -> Vec<(u64, String)> { a.iter().filter(|it| **it > %d).map(|it| (it * %d, format!(\"{it} of {}\", a.len()))).collect() }\n", i, i, i + 1 }' >unit.rs
    cat >table.tcl <<'TCL'
proc work {} {
    for {set i 0} {$i < 800000} {incr i} { set t([expr {$i * 7919 % 15000017}]) $i }
    set sum 0
    for {set i 0} {$i < 1600000} {incr i} {
        set k [expr {$i * 104729 % 15000017}]
        if {[info exists t($k)]} { incr sum $t($k) }
    }
    puts $sum
}
work
TCL
    if has go; then
        go list -export -deps -f '{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}' cmd/compile >importcfg
        go list -f '{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}} {{end}}' cmd/compile/internal/ssa >ssa.files
    fi
}

# What ordinary.sh does not have.
more() {
    local counts='{ n[$1 % 100003] += NR; m[$2] = NR; s += length($0) } END { for (k in n) t += n[k]; for (k in m) u += m[k]; print s, t, u }'
    one "mawk, two arrays" mawk "$counts" text
    one "gawk, two arrays" gawk "$counts" text
    one "lua5.4, a table" lua5.4 table.lua
    one "tcl, an array" tclsh table.tcl
    one "jq, groups" jq -s 'group_by(.of) | map(length) | add' rows.json
    one bzip2 bzip2 -k -c text
    one lz4 lz4 -q -9 -c text
    one brotli brotli -q 9 -c text
    one "ripgrep, a case-insensitive word" rg -ci 'f.e.*text' text
    if has rustc; then tried "rustc -O" "$(rustc --print sysroot)/bin/rustc" -O --crate-type rlib -o unit.rlib unit.rs; fi
    if has go; then
        local tools
        tools=$(go env GOTOOLDIR)
        # shellcheck disable=SC2046
        tried "Go's compiler" "$tools/compile" PROFILE=-cpuprofile= -p cmd/compile/internal/ssa -importcfg importcfg -o ssa.a $(cat ssa.files)
        tried "Go's gofmt" gofmt PROFILE=-cpuprofile= -l "$(go env GOROOT)/src"
    fi
}

programs() {
    [ -n "$profiler" ] || { echo "gperftools is not here (Debian: libgoogle-perftools-dev)" >&2; return 1; }
    inputs
    more_inputs
    echo "| program | samples, own / stored | waiting for loads, own / stored | loads whose place is sure | of these in the first ten of both | first ten in common | in one first ten only, though sure |"
    echo "|---|---|---|---|---|---|---|"
    { ordinary; more; } | tee rows
    python3 "$root/bench/stored.py" sum rows
}

# What parca and Pyroscope keep beside their code, as their agents and clients wrote it.
files() {
    local module folder
    has go || { echo "go is not here: files of parca and Pyroscope are not read" >&2; return 0; }
    echo "| module | files | what is said of them | one of them |"
    echo "|---|--:|---|---|"
    for module in github.com/parca-dev/parca@v0.20.0 github.com/grafana/pyroscope@v1.7.1; do
        folder=$(go mod download -json "$module" | sed -nE 's/^.*"Dir": "(.*)",?$/\1/p')
        python3 "$root/bench/stored.py" files "$gleaner" "$module" "$folder"
    done
}

gigabyte() { python3 "$root/bench/stored.py" gigabyte "$gleaner"; }

{
    case $gleaner in */debug/*) echo "An unoptimised build." && echo ;; esac
    for part in $parts; do
        $part
        echo
    done
} | keep stored.md
