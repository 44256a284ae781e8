# bash itself: functions, arrays, substitutions, arithmetic, traps, pipes, here documents, globs,
# job control.
#: program /usr/bin/bash
#: quick
cat >inner.sh <<'INNER'
set -u
shopt -s extglob nullglob
fib() { if (($1 < 2)); then echo "$1"; else echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); fi; }
fib 11
declare -A count=()
while read -r word; do
    word=${word//[^a-zA-Z]/}
    [ -n "$word" ] && count[${word,,}]=$((${count[${word,,}]:-0} + 1))
done < <(tr -s ' \t' '\n' </usr/share/common-licenses/GPL-3)
for word in "${!count[@]}"; do echo "${count[$word]} $word"; done | sort -k1,1nr -k2 | head -25
sieve=() ; for ((i = 2; i < 3000; i++)); do
    if [ -z "${sieve[i]:-}" ]; then primes+=("$i"); for ((j = i * i; j < 3000; j += i)); do sieve[j]=1; done; fi
done
echo "${#primes[@]} primes, the last ${primes[-1]}, sum $((${primes[@]/%/+}0))"
touch {a,b,c}{1..4}.{txt,log}
echo @(a|c)*[13].txt !(*.log)
text="The quick brown fox"; echo "${text^^} ${text#* } ${text%% *} ${text/quick/slow} ${text: -3} ${#text}"
[[ 2026-11-20 =~ ^([0-9]+)-([0-9]+)-([0-9]+)$ ]] && echo "${BASH_REMATCH[@]}"
trap 'echo "trapped USR1"' USR1; kill -USR1 $$
(trap 'echo bye' EXIT; exit 3); echo "status $?"
sleep 0.1 & wait $!; echo "waited $?"
printf '%q %5.2f %-6s|%x\n' "a b'c" 3.14159 left 255
mapfile -t lines < <(seq 1 2000); echo "${lines[@]:1995}"
case abc in a*) echo starts;;& *c) echo ends;; esac
cat <<END | rev
nested $(echo "$(echo "$(echo deep)")") $((2**40 % 1000007))
END
coproc up { while read -r line; do echo "${line^}"; done; }
echo hello >&"${up[1]}"; read -r answer <&"${up[0]}"; echo "$answer"
eval 'for i in 1 2 3; do echo -n "$i,"; done'; echo
f() { local -n ref=$1; ref+=(x); }; list=(); for i in {1..50}; do f list; done; echo "${#list[@]}"
(ulimit -f 0; false); set -o pipefail; false | true; echo "pipe $?"
echo "${no_such_variable}"
INNER
bash inner.sh
echo "left $?"
for script in /usr/bin/{ldd,zgrep,gunzip,bzdiff,xzgrep}; do bash -n "$script" && echo "parsed $script"; done
