# The core utilities over files of this system.
#: program $(ls -d /usr/bin/{sort,uniq,cut,tr,wc,head,tail,cat,tac,nl,od,split,csplit,join,paste,comm,fmt,fold,expand,pr,sha256sum,md5sum,b2sum,cksum,base64,basenc,seq,factor,numfmt,shuf,tsort,ptx,ls,cp,mv,rm,ln,mkdir,chmod,touch,stat,du,dd,truncate,readlink,env,printf,expr,test,date,tee,yes,timeout,find,xargs,grep,sed,mawk,diff,cmp,tar,dircolors,install,mktemp,realpath,basename,dirname,stty,nproc} 2>/dev/null | sort -u)
#: quick
text=/usr/share/common-licenses/GPL-3
sort $text | uniq -c | sort -k1,1nr -k2 | head -20
tr -cs A-Za-z '\n' <$text | tr A-Z a-z | sort -u >words; wc words
sort -R --random-source=$text words | shuf --random-source=$text | sha256sum
factor 1000000007 600851475143 18446744073709551557 18446744073709551616
seq 1 1000 | numfmt --to=iec --field=1 | tail -3; seq 0 0.1 2 | paste -sd,
for sum in md5sum sha256sum b2sum cksum; do $sum $text; done
base64 $text | base64 -d | cmp - $text && basenc --base32 <words | tail -2
split -l 50 -d $text part. && cat part.* | cmp - $text; ls part.* | wc -l
csplit -s $text '/^  [0-9]*\. /' '{*}'; wc -l xx*
head -300 $text | fmt -w 60 | fold -s -w 40 | nl -ba | tail -30
od -A d -t x1z -v <words | tail -20; expand $text | unexpand -a | cksum
pr -3 -l 30 -t -w 90 words | head -40
comm -12 words <(tac words | sort | sed -n '1~3p') | head -20 | paste - - - -
join -1 2 -2 1 <(nl -w1 words | sort -k2) words | tail -3
printf '%s\n' 'a b' 'b c' 'c d' 'a d' | tsort
ptx -w 70 <(head -20 $text) | head
mkdir -p tree/{one,two}/{deep,deeper}; cp $text tree/one/deep; ln -s ../deep/GPL-3 tree/one/deeper/link; ln words tree/two/hard
touch -d 2001-02-03T04:05:06 tree/one/deep/GPL-3; chmod 640 tree/two/hard; truncate -s 100K tree/two/sparse
find tree -type f -printf '%p %s %m %n\n' | sort; find tree -name '*e*' -not -type d -print0 | xargs -0 -n1 basename | sort
stat -c '%n %s %a %y' tree/one/deep/GPL-3; readlink -f tree/one/deeper/link | sed "s|$HOME||"
du -ab --apparent-size tree | sort -k2 | grep -v '/$' | awk '$2 !~ /tree(\/(one|two)(\/deep(er)?)?)?$/'
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C tree -cf tree.tar . && sha256sum tree.tar && tar -tvf tree.tar
mkdir out && tar -xf tree.tar -C out && diff -r tree out && echo trees agree
dd if=$text of=copy bs=1000 skip=3 count=10 conv=ucase status=none; cksum copy; diff <(sort $text) <(sort -f $text) | head -30
grep -c -i -E '(free|software|licen[cs]e)' $text; grep -n -P '(?<=you )may\b' $text; grep -o -w -i 'the' $text | sort | uniq -c
sed -n -e '/^  [0-9]\+\./{s/^ *//;p}' -e '$=' $text; sed 's/\(.*\)e\(.*\)/\2E\1/;y/abc/ABC/' $text | cksum
awk '{ for (i = 1; i <= NF; i++) n[length($i)]++ } END { for (l in n) print l, n[l] }' $text | sort -n
awk 'BEGIN { srand(7); for (i = 0; i < 5; i++) s = s " " int(sqrt(i * 1234.5) * sin(i) * 1000); print s; printf "%.10f %e\n", exp(1), log(10) }'
date -u -d '2024-02-29 +1 year' +%F; date -u -d @1e9 '+%c %j %U %s'; for i in {1..60}; do date -u -d "2020-01-31 $i days" +%u; done | tr -d '\n'; echo
expr 17 \* 3 + 4 \; ; expr length abcdef; test 3 -lt 4 && echo less; timeout 0.2 sleep 5; echo "timeout $?"
yes | head -100000 | wc -c; env -i A=1 B=2 env | sort; seq 100000 | tee >(wc -l >lines) | tail -1; sleep 0.3; cat lines
ls -la --time-style=+%Y tree/one/deep/GPL-3 | awk '{ print $1, $5, $6, $7 }'; ls no/such/file; cp no such; rm -r tree out; ls
seq 300000 | sort -S 1M --parallel=2 -k1,1 | md5sum; seq 200000 | shuf --random-source=/usr/share/common-licenses/GPL-3 -n 9000 | sort -n --compress-program=gzip -S 100K | tail -2
