# gzip, xz, zstd, bzip2: round trips at several levels, lists, damaged files; they read each other's
# streams through tar.
#: program /usr/bin/gzip
#: program /usr/bin/xz
#: program /usr/bin/zstd
#: program /usr/bin/bzip2
#: program $(ldd /usr/bin/xz /usr/bin/zstd /usr/bin/bzip2 | grep -o "/[^ ]*lib\(lzma\|zstd\|bz2\)[^ ]*")
#: needs xz xz-utils
#: needs zstd zstd
#: needs bzip2 bzip2
#: quick
{ cat /usr/share/common-licenses/*; head -c 3000000 /usr/bin/bash; head -c 500000 /dev/zero; seq 100000; } >data
touch -d @1000000000 data
for level in 1 4 6 9; do
    gzip -$level -n -c data >data.gz && gzip -dc data.gz | cmp - data; sha256sum data.gz; gzip -l data.gz
    bzip2 -$level -c data >data.bz2 && bzip2 -dc data.bz2 | cmp - data; sha256sum data.bz2
done
for level in 0 2 6 6e; do xz -$level -T1 -c data >data.xz && xz -dc data.xz | cmp - data; sha256sum data.xz; done
xz -T2 --block-size=1MiB -c data >blocks.xz; xz -l blocks.xz; xz -t blocks.xz && sha256sum blocks.xz
xz --x86 --lzma2=preset=3 -C sha256 -c /usr/bin/bash | xz -dc | cmp - /usr/bin/bash; xz --format=lzma -2 -c data | xz -dc | cmp - data
for level in -1 -3 -9 -19 --fast=5; do zstd -q $level -T1 -c data >data.zst && zstd -q -dc data.zst | cmp - data; sha256sum data.zst; done
zstd -q -T2 --long -12 -c data | zstd -q -dc --long | sha256sum; zstd -q --format=gzip -c data 2>&1 | gzip -dc | cmp - data
split -b 2000 -d -a 4 /usr/share/common-licenses/GPL-3 s.; zstd -q --train s.* -o dictionary --maxdict=4096; sha256sum dictionary
zstd -q -D dictionary -c s.0001 | zstd -q -D dictionary -dc | cmp - s.0001
for tool in gzip bzip2 xz zstd; do
    $tool -c data >whole; for at in 20 5000 200000; do cp whole broken; printf 'X%s' "$at" | dd of=broken bs=1 seek=$at conv=notrunc status=none; $tool -dc <broken 2>&1 >/dev/null | sed 's/[0-9]* *MB.*//' | tail -1; echo "$tool $at ${PIPESTATUS[0]}"; done
    head -c 100000 whole | $tool -dc 2>/dev/null | head -c 100000 | sha256sum
done
rm data.gz; gzip -k data; stat -c %Y data.gz; gzip -N -dc data.gz | sha256sum; rm data; gunzip data.gz; stat -c '%n %Y' data
tar --sort=name --mtime=@0 -I 'zstd -q -5' -cf all.tar.zst s.0* && tar -I zstd -tf all.tar.zst | tail -2
