# A Go program as Debian ships it, made by another version of Go than what is installed here: no
# names, linked with the C library.
#: program /usr/bin/fzf
#: needs fzf fzf
#: quick
seq 20000 | fzf --filter 137 | cksum; tr -s ' ' '\n' </usr/share/common-licenses/GPL-3 | fzf -f 'lic' | head -20; ls /usr/share/common-licenses | fzf -f "'GPL !L" ; echo "status $?"; fzf --version | cut -c1-1; fzf --no-such 2>&1; echo "status $?"
# Much garbage, and goroutines that search side by side.
for gc in 1 100; do seq 200000 | GOGC=$gc fzf --tac -f '9 1 !5' | cksum; done
find /usr/share/doc -maxdepth 2 | sort | GOMAXPROCS=1 fzf -f 'copy lib' --no-sort | head -40
