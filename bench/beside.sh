# Runs a primary beside scavengers, and alone while they sleep. Shared by the scripts that compare
# ways to run scavengers; source it after common.sh.
#
# Variables that may be set in the environment:
#   MIB           size of each area
#   SECONDS_EACH  length of each window
#   TURNS         windows in one run, each with scavengers and without
#   SETTLE        seconds from the moment when all programs have set up to the first window
#   HEARD         seconds of speech that pocketsphinx recognises
#   CPU, OTHER    the primary's core, and a second one
#   SLOWDOWN      --max-slowdown of a harvest that sets none
#
# A shared machine changes within seconds: a lookup in redis took 0.55 us, then 1.1 us. So a primary
# is not compared with an earlier run of itself, but with itself in the same run: TURNS windows
# beside scavengers, each followed by a window in which they sleep.
#
# To add a scavenger: a program in bench/programs. To add a primary: functions start_NAME (runs it,
# behind the command in its arguments), pace_NAME (prints its work a second and its 95th percentile
# in microseconds, or -, over one window) and stop_NAME; see start_chase.
set -euo pipefail
settle=${SETTLE:-2} mib=${MIB:-256} seconds=${SECONDS_EACH:-0.5} turns=${TURNS:-6} cpu=${CPU:-1} other=${OTHER:-0}
slowdown=${SLOWDOWN:-10%} # what is asked of a harvest where nothing else is

. "$root/bench/programs.sh"
built programs chase scan dfs cc join tree
built peers window answers pause

# Primaries whose runs are measured whole: each turn is one run alone, and one beside scavengers.
is_whole() { [ "$1" = pocketsphinx ]; }

# The chase, and the store at half of the load that it can take (RATE requests a second).
start_chase() { exec "$@" "$work/chase" "$mib" 0 "$work/progress.0"; }
pace_chase() { "$work/window" "$seconds" "$work/progress.0" | awk '{ print $2 / $1, "-" }'; }
stop_chase() { stop_first; }
start_tree() { exec "$@" "$work/tree" "$mib" 0 "$work/progress.0" "${RATE:-0}"; }
pace_tree() {
    "$work/window" 0 "$work/progress.0" >/dev/null
    sleep 0.3
    "$work/answers" "$seconds" "$work/progress.0" | awk '{ print $2 / $1, $4 }'
}
stop_tree() { stop_first; }
half_the_load() { RATE=$(RATE=0 beside alone tree - 0 | awk '{ print int($1 / 2) }'); }

# redis-server with a few hundred megabytes of values, queried from the other core.
start_redis() { exec "$@" redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" >/dev/null; }
pace_redis() {
    taskset -c "$other" redis-benchmark -s "$work/redis.sock" -c 16 -P 4 -r 2000000 -n "$(awk -v s="$seconds" 'BEGIN { print int(s * 600000) }')" --csv \
        get key:__rand_int__ 2>/dev/null | awk -F'"' 'END { print $4, $12 * 1000 }'
}
stop_redis() { redis-cli -s "$work/redis.sock" shutdown nosave >/dev/null 2>&1 || true; }
ready_redis() {
    until redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1; do sleep 0.1; done
    redis-cli -s "$work/redis.sock" debug populate 2000000 key 64 >/dev/null
}

# pocketsphinx recognises a text once. The text is sent when all others are ready; the pace is one
# over the time from then to the end.
start_pocketsphinx() { exec "$@" pocketsphinx_continuous -infile "$work/heard.wav" -logfn /dev/null >/dev/null; }
ready_pocketsphinx() {
    rm -f "$work/listens" "$work/speak"
    (
        exec >"$work/heard.wav"
        : >"$work/listens"
        until [ -e "$work/speak" ]; do sleep 0.02; done
        exec cat "$work/speech.wav"
    ) &
    speaker=$!
    while [ ! -e "$work/listens" ] && kill -0 "$primary" 2>/dev/null; do sleep 0.02; done
}
pace_pocketsphinx() {
    local from=$EPOCHREALTIME
    : >"$work/speak"
    while kill -0 "$primary" 2>/dev/null; do sleep 0.02; done
    awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { print 1 / (b - a), "-" }'
}
stop_pocketsphinx() { kill "$speaker" 2>/dev/null || true; }

# are_here COMMAND...: succeeds if all of them are installed
are_here() { local one; for one in "$@"; do command -v "$one" >/dev/null || return 1; done; }

# can NAME: succeeds if the primary's program is installed; prepares what it needs
can() {
    case $1 in
    redis) are_here redis-server redis-benchmark redis-cli ;;
    pocketsphinx)
        are_here pocketsphinx_continuous espeak-ng sox || return 1
        espeak-ng -s 140 -w "$work/voice.wav" "go forward ten meters and then turn left. the core waits on memory and does nothing. one two three four five six seven eight nine ten. open the door, close the window, and put the book on the table."
        # Repeated for HEARD seconds: scavengers have to come and go meanwhile.
        sox "$work/voice.wav" -r 16000 -c 1 -b 16 "$work/once.wav"
        cp "$work/once.wav" "$work/speech.wav"
        mkfifo "$work/heard.wav"
        sox "$work/once.wav" "$work/speech.wav" repeat "$(one_run alone pocketsphinx - 0 | awk -v all="${HEARD:-25}" '{ print int(all * $1) }')"
        ;;
    esac
}

# work_alone SCAVENGER: prints its steps a second alone on the primary's core
work_alone() { watched 0 taskset -c "$cpu" "$work/$1" "$mib" 0 "$work/progress.0" | awk '{ print $2 / $1 }'; }

# beside WAY PRIMARY SCAVENGER COUNT [OPTION…]: prints for each turn
# "pace p95 steps-a-second-of-all-scavengers pace p95", the last two while scavengers sleep, or of a
# run alone. Ways: alone (pace and p95, once); idle (scavengers under SCHED_IDLE on the primary's
# core); harvested (in its stalls, and at home on its core); harvested+ (at home on any core); two
# (one scavenger on the other core). Options are for `gleaner harvest`.
beside() {
    local way=$1 name=$2 turn alone with
    if [ "$way" != alone ] && is_whole "$name"; then
        for ((turn = 0; turn < turns; turn++)); do
            alone=$(one_run alone "$name" - 0)
            with=$(one_run "$@") || return 1
            echo "$with $alone"
        done
    else
        one_run "$@"
    fi
}

# The turns of one run, or the pace of a run that is measured whole.
one_run() {
    local way=$1 name=$2 scavenger=$3 count=$4 files=() children=() commands=() i from
    shift 4
    rm -f "$work"/progress.* "$work/redis.sock"
    compacted
    [ "$way" != two ] || count=1
    [ "$way" != alone ] || count=0
    for ((i = 1; i <= count; i++)); do files+=("$work/progress.$i"); done
    case $way in
    idle | two)
        set --
        for ((i = 1; i <= count; i++)); do
            taskset -c "$other" "$work/$scavenger" "$mib" 0 "$work/progress.$i" >/dev/null &
            children+=($!)
        done
        "$work/window" 0 "${files[@]}" >/dev/null
        if [ "$way" = idle ]; then
            for child in "${children[@]}"; do chrt -a -i -p 0 "$child"; taskset -a -c -p "$cpu" "$child" >/dev/null; done
        fi
        ;;
    harvested*)
        for ((i = 1; i <= count; i++)); do commands+=(--scavenger "$work/$scavenger $mib 0 $work/progress.$i"); done
        # Its work is done in libraries.
        [ "$name" != pocketsphinx ] || set -- --libraries libpocketsphinx,libsphinxbase "$@"
        [[ " $* " == *" --max-slowdown "* ]] || set -- --max-slowdown "$slowdown" "$@"
        set -- "$gleaner" harvest --stay-aboard --ring "$count" --home-cpus "$other,$cpu" "$@" "${commands[@]}" --
        ;;
    *) set -- ;;
    esac
    (start_"$name" taskset -c "$cpu" "$@") 2>"$work/errors" &
    primary=$!
    if declare -F "ready_$name" >/dev/null; then "ready_$name"; fi
    if [ "$count" -gt 0 ]; then
        "$work/window" 0 "${files[@]}" >/dev/null || {
            cat "$work/errors" >&2
            echo "not all programs made progress" >&2
            kill "$primary" ${speaker:-} 2>/dev/null
            return 1
        }
        if [ "$way" = harvested ]; then
            for child in $(ps --ppid "$primary" -o pid=,cls= | awk '$2 == "IDL" { print $1 }'); do
                taskset -a -c -p "$cpu" "$child" >/dev/null 2>&1 || true
            done
        fi
        # Bans from the time of setting up have to end first.
        sleep "$settle"
    fi
    if [ "$count" = 0 ]; then
        "pace_$name"
    elif is_whole "$name"; then
        from=$("$work/pause" 0 "${files[@]}")
        i=$("pace_$name")
        echo "$i $(steps_since "$from" 0)"
    else
        for ((turn = 0; turn < turns; turn++)); do
            from=$("$work/pause" 0 "${files[@]}")
            sleep 0.1
            i=$("pace_$name")
            i+=" $(steps_since "$from" 1)"
            sleep 0.1
            echo "$i $("pace_$name")"
        done
    fi
    "stop_$name"
    wait "$primary" || { cat "$work/errors" >&2; return 1; }
    [ ${#children[@]} = 0 ] || { kill "${children[@]}" && wait "${children[@]}" 2>/dev/null; } || true
}

# steps_since FROM SLEEP: prints the steps a second of all scavengers since FROM; SLEEP 1 puts them
# to sleep
steps_since() { echo "$1 $("$work/pause" "$2" "${files[@]}")" | awk '{ print ($4 - $2) / ($3 - $1) }'; }

# further NAME HEAD: adds the rounds in $raw to DIR/NAME.tsv, numbered after the rounds already
# there
further() {
    local last file
    [ -n "$out" ] || return 0
    file=$out/$1.tsv
    mkdir -p "$out"
    { [ -s "$file" ] && grep -v '^#' "$file" || true; } >"$work/before.tsv"
    last=$(awk '$1 > m { m = $1 } END { print m + 0 }' "$work/before.tsv")
    {
        echo "# $2"
        cat "$work/before.tsv"
        awk -v last="$last" 'BEGIN { FS = OFS = "\t" } { $1 += last; print }' "$raw"
    } >"$file"
    raw=$file
}
