#!/usr/bin/env bash
# Does a profile say of an ordinary program what is true of it? Small programs of known behaviour in
# C, C++, Rust, Go, Java, JavaScript, Python and Ruby (programs/fresh): each one's first line says
# which load waits, on which data, served by which level, or that no load does. Each is compiled and
# profiled by `gleaner profile` as anybody would, and fresh.py judges the record. Beside
# `load=FUNCTION`, lines of the load are marked `HOT`, the allocating ones `DATA`; `line=FUNCTION`
# asks for the line of a script; `level=DRAM|L3` is where both may be true. An L3 that other
# machines share may hold less than it does at other times: beside programs that it should serve,
# programs/yardstick.c says whether it does. What a compiler that is missing would make is skipped.
# To add a program: its file, and such a line. Variables: ONLY (which, by name), KEEP (a directory
# for the profiles), SET (another directory of programs), BUDGET (percent), MADE=1 (only programs
# whose code is made or read at run time, as made.md).
set -euo pipefail
. "$(dirname "$0")/common.sh"
set_of=${SET:-$root/bench/programs/fresh}
profiles=${KEEP:-$work/profiles}
mkdir -p "$profiles"
table=fresh
[ -z "${MADE:-}" ] || table=made
caches=("$(getconf LEVEL1_DCACHE_SIZE)" "$(getconf LEVEL2_CACHE_SIZE)" "$(getconf LEVEL3_CACHE_SIZE)")
program yardstick

# made FILE: compiles it, and sets `command` to what runs it
made() {
    local source=$1 name
    name=$(basename "${source%.*}")
    case $source in
    *.c) cc -O2 -g -pthread -I"$root/bench/programs/fresh" -o "$work/$name" "$source" && command=("$work/$name") ;;
    *.cpp) c++ -O2 -g -std=c++17 -pthread -I"$root/bench/programs/fresh" -o "$work/$name" "$source" && command=("$work/$name") ;;
    *.rs) rustc -O -g -o "$work/$name" "$source" && command=("$work/$name") ;;
    *.go) go build -o "$work/$name" "$source" && command=("$work/$name") ;;
    *.java) javac -g -d "$work" "$source" && command=(java -cp "$work" "$name") ;;
    *.js) node --check "$source" && command=(node "$source") ;;
    *.py) python3 -c "$(grep '^import ' "$source")" && command=(python3 "$source") ;;
    *.rb) ruby -wc "$source" >"$work/checked" && command=(ruby "$source") ;;
    *) return 1 ;;
    esac
}

for source in "$set_of"/*; do
    name=$(basename "${source%.*}")
    if [ -n "${MADE:-}" ] && [[ $source != *.@(java|js|py|rb) ]]; then continue; fi
    if [ "${source##*.}" = h ] || { [ -n "${ONLY:-}" ] && [[ " $ONLY " != *" $name "* ]]; }; then continue; fi
    if ! made "$source" 2>"$work/errors"; then
        echo "skipped: $name is not made: $(head -1 "$work/errors")" >&2
        continue
    fi
    "$gleaner" profile -q --budget "${BUDGET:-3}" -o "$profiles/$name.json" -- \
        "${command[@]}" "${caches[@]}" >"$profiles/$name.txt" 2>"$profiles/$name.err" || {
        echo "$name: $(tail -1 "$profiles/$name.err")" >&2
        rm -f "$profiles/$name.json"
    }
    beside=
    if grep -q '^.*level=L3 ' <(head -1 "$source"); then beside=$("$work/yardstick" "${caches[@]}"); fi
    echo "$source $beside"
done >"$work/made"
python3 "$root/bench/fresh.py" "$profiles" "$work/made" | keep "$table.md"
