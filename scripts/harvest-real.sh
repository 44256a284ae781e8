#!/usr/bin/env bash
# Real programs of this system harvest and are harvested, by the front door: each prints what it
# prints alone, and ends as it ends alone.
#
#   scripts/harvest-real.sh [--quick] [--as primary|scavenger] [--record FILE] [NAME…]
#
# As primaries: workloads of programs/real, in which every call of the programs that they name is a
# harvest with scavengers that chase through memory; and commands below. As scavengers: the commands
# below, in a primary that chases as long as they live.
# Sites are all loads of loops: more than pay, for this is about doing the same, not about being
# fast.
#
# To add a primary: its name in `primaries`, or a line `primary`. To add a scavenger: a line
# `scavenger`.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
gleaner=$(realpath "${GLEANER:-${CARGO_TARGET_DIR:-target}/release/gleaner}")
[ -x "$gleaner" ] || { echo "no $gleaner: run 'make build' first" >&2; exit 2; }
primaries="bash compress perl sqlite3 redis memcached gdb git python3 node pocketsphinx"
quick=no as=both record= names=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --as) as=$2; shift ;;
    --record) record=$(realpath -m "$2"); shift ;;
    -*) sed -n '2,5p' "$0" >&2; exit 2 ;;
    *) names+=("$1") ;;
    esac
    shift
done
base=$(mktemp -d "${TMPDIR:-/var/tmp}/gleaner-harvest-real.XXXXXX")
trap 'rm -rf "$base"' EXIT
cc -O2 -o "$base/chaser" programs/harvest/chaser.c
here=$base/here shims=$base/shims
passed=0 failed=0 skipped=()
table=$base/table
# All libraries are tried, however long the first of these takes.
choice=(--choose every-load --most-sites 400 --library-time 60min)
printf '| program | as | outcome | |\n|---|---|---|---|\n' >"$table"

wanted() { [ "${#names[@]}" = 0 ] || [[ " ${names[*]} " == *" $1 "* ]]; }
clean() { env -i PATH="$1:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$here" TMPDIR="$here/tmp" LC_ALL=C.UTF-8 TZ=UTC TERM=dumb XDG_CACHE_HOME="$base/cache" PYTHONHASHSEED=0 "${@:2}"; }
fresh() { rm -rf "$here"; mkdir -p "$here/tmp"; cd "$here"; }

verdict() { # NAME ROLE EXPECTED IS BEGAN
    local what detail
    detail="$(wc -l <"$4") lines, $((SECONDS - $5)) s"
    if cmp -s "$3" "$4"; then
        passed=$((passed + 1)) what="the same"
    else
        failed=$((failed + 1)) what=DIFFERS
    fi
    printf '%-14s %-10s %s  %s\n' "$1" "$2" "$what" "$detail"
    printf '| %s | %s | %s | %s |\n' "$1" "$2" "$what" "$detail" >>"$table"
    if [ "$what" = DIFFERS ]; then
        diff -a "$3" "$4" | head -20 || true
        if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP"; cp "$3" "$KEEP/$1.$2.expected"; cp "$4" "$KEEP/$1.$2"; fi
    fi
}

# perform SCRIPT OUTPUT HOW: HOW is 'alone' or 'harvested'.
perform() {
    local script=$PWD/$1 output=$2 status=0 program
    rm -rf "$shims"; mkdir -p "$shims"
    programs "$script" | while read -r program; do
        local run="exec $program \"\$@\""
        # The plan is made once for each program.
        if [ "$3" = harvested ]; then
            run="plan=$base/${program//\//_}.plan; [ -s \"\$plan\" ] || '$gleaner' -q harvest --dry-run --record \"\$plan\" ${choice[*]} --scavengers '2 x $base/chaser' -- $program >/dev/null
exec '$gleaner' -q harvest --plan \"\$plan\" --scavengers '2 x $base/chaser' -- $program \"\$@\""
        fi
        printf '#!/bin/sh\n%s\n' "$run" >"$shims/$(basename "$program")"
        chmod +x "$shims/$(basename "$program")"
    done
    # Where a workload names a program by its path, ours is meant.
    sed -e "s|/usr/bin/python3.11 -m|$shims/python3.11 -m|g" "$script" >"$base/workload.sh"
    (fresh && clean "$shims" bash "$base/workload.sh") >"$output" 2>&1 </dev/null || status=$?
    echo "exit code $status" >>"$output"
}

programs() { # the programs that a workload names and that are found by their names
    sed -n 's/^#: program \(\/usr\/bin\/[a-z0-9._-]*\)$/\1/p' "$1"
}

missing() { # SCRIPT
    sed -n 's/^#: \(needs\|present\) \([^ ]*\) \(.*\)/\2 \3/p' "$1" | while read -r command package; do
        command -v "$command" >/dev/null || [ -e "$command" ] || echo "'$command' is missing (Debian: apt install $package)"
    done
}

for name in $primaries; do
    wanted "$name" && [[ " both primary " == *" $as "* ]] || continue
    if [ $quick = yes ] && [ "${#names[@]}" = 0 ] && [[ " bash sqlite3 " != *" $name "* ]]; then continue; fi
    why=$(missing "programs/real/$name.sh")
    if [ -n "$why" ]; then skipped+=("$name: $why"); continue; fi
    began=$SECONDS
    perform "programs/real/$name.sh" "$base/expected" alone
    perform "programs/real/$name.sh" "$base/output" harvested
    verdict "$name" primary "$base/expected" "$base/output" "$began"
done

# scavenger NAME PROGRAM ARG…: in the folder $here, after `before` has made what it needs.
scavenger() {
    local name=$1 program=$2 status=0 command began=$SECONDS
    shift
    wanted "$name" && [[ " both scavenger " == *" $as "* ]] || return 0
    if [ $quick = yes ] && [ "${#names[@]}" = 0 ] && [[ " gzip gunzip bzip2 xz-threads perl sqlite3 python3 " != *" $name "* ]]; then return 0; fi
    [ -x "$program" ] || { skipped+=("$name: '$program' is missing"); return 0; }
    (fresh && before && clean /usr/bin "$@") >"$base/expected" 2>&1 </dev/null || status=$?
    replies >>"$base/expected"
    echo "exit code $status" >>"$base/expected"
    printf -v command '%q ' "$@"
    rm -f "$base/run.json" "$base/output"
    (fresh && before && clean /usr/bin "$gleaner" harvest --stay-aboard "${choice[@]}" --scavenger "$command" --scavenger-out "$base/output" --record "$base/run.json" -- "$base/chaser" "$(basename "$program" | cut -c1-15)") >"$base/primary" 2>&1 </dev/null && status=0 || status=$?
    # The primary ends with 4 once its company has ended, with 5 where it never saw any; the record
    # says how that ended.
    if [ "$status" != 4 ] && [ "$status" != 5 ]; then echo "the primary ended with $status: $(cat "$base/primary")" >>"$base/output"; fi
    replies >>"$base/output"
    echo "exit code $("$gleaner" show "$base/run.json" '.scavengers[0].ended.code' 2>&1)" >>"$base/output"
    verdict "$name" scavenger "$base/expected" "$base/output" "$began"
}

# primary NAME PROGRAM ARG…: likewise.
primary() {
    local name=$1 program=$2 status=0 began=$SECONDS
    shift
    wanted "$name" && [[ " both primary " == *" $as "* ]] && [ $quick = no -o "${#names[@]}" != 0 ] || return 0
    [ -x "$program" ] || { skipped+=("$name as primary: '$program' is missing"); return 0; }
    (fresh && before && clean /usr/bin "$@") >"$base/expected" 2>&1 </dev/null || status=$?
    echo "exit code $status" >>"$base/expected"
    status=0
    (fresh && before && clean /usr/bin "$gleaner" -q harvest --stay-aboard "${choice[@]}" --scavengers "2 x $base/chaser" -- "$@") >"$base/output" 2>&1 </dev/null || status=$?
    echo "exit code $status" >>"$base/output"
    verdict "$name" primary "$base/expected" "$base/output" "$began"
}

# What another client was told meanwhile.
replies() { [ ! -e "$here/asked" ] || { until [ -e "$here/replied" ]; do sleep 0.1; done; cat "$here/asked"; }; }

source_of() { sed -n "/^cat >$2 <<.$3./,/^$3/p" "$root/programs/real/$1.sh" | sed "1d;\$d"; }
before() {
    source_of sqlite3 script.sql SQL >script.sql
    source_of perl work.pl PERL >work.pl
    source_of bash inner.sh INNER >inner.sh
    { cat /usr/share/common-licenses/*; head -c 300000 /usr/bin/bash; seq 30000; } >data
    gzip -n -k data
    case $name in
    redis)
        : >asked
        (ask_redis >asked 2>&1 && : >replied) </dev/null &
        ;;
    pocketsphinx)
        espeak-ng -v en-us -s 130 -w words.wav 'one two three four five six seven go forward ten meters'
        # 22050 Hz to 16000 Hz, by the nearest sample.
        perl -e 'binmode STDIN; binmode STDOUT; local $/; my @s = unpack "s<*", substr <STDIN>, 44; print pack "s<*", map { $s[$_ * 22050 / 16000] } 0 .. $#s * 16000 / 22050' <words.wav >u1.raw
        echo u1 >ids
        ;;
    esac
    cat >Many.java <<'JAVA'
import java.util.*;
import java.util.concurrent.*;
public class Many {
    static int deep(int n) { return deep(n + 1) + 1; }
    public static void main(String[] arguments) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<Long>> sums = new ArrayList<>();
        for (int part = 0; part < 8; part++) {
            int by = part;
            sums.add(threads.submit(() -> {
                Map<Integer, Integer> map = new HashMap<>();
                for (int i = 0; i < 30000; i++) map.merge((i * 7919 + by) % 10007, i, Integer::sum);
                System.gc();
                return map.values().stream().mapToLong(i -> i).sum();
            }));
        }
        for (Future<Long> sum : sums) System.out.println(sum.get());
        threads.shutdown();
        try { System.out.println(((Object) null).hashCode()); } catch (NullPointerException e) { System.out.println("null"); }
        try { deep(0); } catch (StackOverflowError e) { System.out.println("deep"); }
        System.exit(6);
    }
}
JAVA
    echo 'process.send(process.execPath); process.exit(3)' >fork.js
    cat >many.py <<'PY'
import json, re, subprocess, threading, zlib, hashlib
text = open('data', 'rb').read()
found = []
def work(part):
    words = re.findall(rb'[a-z]{5,}', text[part::4] + text[part * 1000:part * 1000 + 20000])
    found.append((part, len(words), hashlib.sha256(b' '.join(sorted(words))).hexdigest(), zlib.crc32(zlib.compress(text))))
threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(sorted(found), indent=1))
print(subprocess.run(['sort', '-r'], input=b'a\nb\nc\n', capture_output=True).stdout, sum(i * i for i in range(200000)))
try: json.loads('{"a": [1, }')
except ValueError as why: print(why)
raise SystemExit(9)
PY
}
ask_redis() {
    cli() { timeout 60 redis-cli -s "$here/socket" "$@"; }
    for _ in $(seq 600); do [ "$(cli ping 2>/dev/null)" = PONG ] && break; sleep 0.05; done
    seq 1 3000 | awk '{ print "SET key:" $1 " value" $1 * 7; print "HSET hash:" $1 % 50 " f" $1 " " $1; print "ZADD zset " $1 * 37 % 1009 " m" $1; print "RPUSH list:" $1 % 10 " item" $1; print "XADD stream " $1 "-1 a " $1 }' | cli | sort | uniq -c | sort -k1,1nr -k2 | head -5
    cli eval 'local s = 0; for i = 1, 20000 do s = (s * 31 + i) % 1000003 end; return {s, redis.sha1hex(tostring(s)), redis.call("ZCARD", KEYS[1])}' 1 zset
    cli zrange zset 0 12 withscores
    cli dbsize
    cli debug digest
    cli shutdown nosave
}
scavenger gzip /usr/bin/gzip -9 -n -c data
scavenger gunzip /usr/bin/gzip -dc data.gz
scavenger xz /usr/bin/xz -6 -T1 -c data
scavenger xz-threads /usr/bin/xz -2 -T3 --block-size=256KiB -c data
scavenger zstd /usr/bin/zstd -q -9 -T2 -c data
scavenger bzip2 /usr/bin/bzip2 -c data
# As errno is, so perl ends where it dies of something else; and what malloc leaves there is not as
# it is alone.
scavenger perl /usr/bin/perl -e 'do "./work.pl"; print $@; exit 9'
scavenger bash /usr/bin/bash inner.sh
scavenger sqlite3 /usr/bin/sqlite3 data.db '.read script.sql'
scavenger git /usr/bin/git hash-object data script.sql
scavenger git-diff /usr/bin/git diff --no-index --stat data script.sql
scavenger python3 /usr/bin/python3.11 many.py
scavenger sort /usr/bin/sort --parallel=2 -S 1M data
scavenger cc1 "$(gcc -print-prog-name=cc1 2>/dev/null || echo cc1)" -quiet -O2 -o - "$root/bench/programs/tree.c"
scavenger gdb /usr/bin/gdb -nx -batch -ex 'print 6 * 7' -ex 'info line main' /bin/true
scavenger redis /usr/bin/redis-server --port 0 --unixsocket socket --save '' --logfile log --enable-debug-command yes
if [ -e /usr/share/pocketsphinx/model/en-us/en-us/mdef ] && command -v espeak-ng >/dev/null; then
    model=/usr/share/pocketsphinx/model/en-us
    scavenger pocketsphinx /usr/bin/pocketsphinx_batch -hmm $model/en-us -lm $model/en-us.lm.bin -dict $model/cmudict-en-us.dict -adcin yes -cepdir . -cepext .raw -ctl ids -hyp /dev/stdout -logfn log
else
    skipped+=("pocketsphinx as a scavenger: 'espeak-ng' or its model is missing (Debian: apt install espeak-ng pocketsphinx-en-us)")
fi
scavenger node-fork /usr/bin/node -e 'const c = require("child_process").fork(process.cwd() + "/fork.js"); c.on("message", m => console.log(m, process.execPath)); c.on("exit", code => console.log(code))'
scavenger ruby /usr/bin/ruby -e 'h = {}; 200000.times { |i| h[i * 7919 % 100003] = i.to_s }; puts h.size, h.values.sum(&:size); p (0..3).map { |k| Thread.new { (1..20000).inject { |a, b| (a * b + k) % 1000003 } } }.map(&:value); puts `echo sub`; exit 9'
scavenger lua /usr/bin/lua5.4 -e 'local t = {} for i = 1, 300000 do t[i * 7919 % 100003] = tostring(i) end local n = 0 for _, v in pairs(t) do n = n + #v end print(n, pcall(error, "x")) os.exit(7)'
scavenger php /usr/bin/php -r '$a = []; for ($i = 0; $i < 300000; $i++) $a[$i * 7919 % 100003] = (string)$i; echo md5(serialize($a)), preg_replace("/(\d)(\d)/", "$2$1", implode(",", range(1, 2000))); try { throw new Exception("e"); } catch (Exception $e) { echo $e->getMessage(); } exit(5);'
scavenger pigz /usr/bin/pigz -9 -p 3 -n -c data
scavenger ripgrep /usr/bin/rg -n --sort path 'license.*the|[0-9]77\b' data script.sql
scavenger tar /usr/bin/tar -cf - --sort=name --mtime=@0 data script.sql work.pl
scavenger openssl /usr/bin/openssl dgst -sha512 -r data
scavenger ffmpeg /usr/bin/ffmpeg -v error -f lavfi -i testsrc=duration=1:size=160x120:rate=10 -c:v libx264 -threads 2 -bitexact -f h264 -
scavenger node /usr/bin/node -e 'let t = 0; for (let i = 0; i < 1e6; i++) t += i % 7; console.log(t, JSON.stringify([1, {a: "b"}]).replace(/b/, "c"))'
scavenger java /usr/bin/java -Xmx256m Many.java
luajit_does='local t = {} for i = 1, 300000 do t[i * 7919 % 100003] = tostring(i) end local n = 0 for _, v in pairs(t) do n = n + #v end print(n, pcall(error, "x")) os.exit(7)'
scavenger luajit /usr/bin/luajit -e "$luajit_does"
scavenger vim /usr/bin/vim -es -u NONE +'call append(0, map(range(5000), {i -> string(i * 7919 % 100003)}))' +'sort n' +'%p' +'cq 4'
scavenger convert /usr/bin/convert-im6.q16 -size 200x200 gradient:red-blue -blur 0x3 -swirl 90 -depth 8 rgb:-

primary java /usr/bin/java -Xmx256m Many.java
primary luajit /usr/bin/luajit -e "$luajit_does"
primary vim /usr/bin/vim -es -u NONE +'call append(0, map(range(5000), {i -> string(i * 7919 % 100003)}))' +'sort n' +'%p' +'cq 4'
primary ffmpeg /usr/bin/ffmpeg -v error -f lavfi -i testsrc=duration=1:size=160x120:rate=10 -c:v libx264 -threads 3 -bitexact -f h264 -
primary rsync /usr/bin/rsync -a --out-format='%n %l' data copy

for what in "${skipped[@]}"; do echo "skipped: $what"; done
if [ -n "$record" ]; then
    {
        echo "# Real programs under harvest"
        echo
        echo "$("$gleaner" --version) at $(git rev-parse --short HEAD), $(date -u +%Y-%m-%d), by \`make test-harvest\`: $passed passed, $failed failed."
        echo
        echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, Linux $(uname -r)."
        echo
        cat "$table"
        for what in "${skipped[@]}"; do printf '\nskipped: %s\n' "$what"; done
    } >"$record"
fi
echo "test result: $([ $failed = 0 ] && echo ok || echo FAILED). $passed passed; $failed failed; ${#skipped[@]} skipped"
[ $failed = 0 ]
