# A Go program has no twins, and says why; libraries under it may have them.
#: refused /usr/bin/fzf Go
#: needs fzf fzf
seq 20000 | fzf --filter 137 | cksum; tr -s ' ' '\n' </usr/share/common-licenses/GPL-3 | fzf -f 'lic' | head -20; ls /usr/share/common-licenses | fzf -f "'GPL !L" ; echo "status $?"; fzf --version | cut -c1-1; fzf --no-such 2>&1; echo "status $?"
