#!/usr/bin/env bash
# Tries the numa experiment on a machine with two nodes, wherever this runs: boots a small guest under QEMU's software
# emulation, lets Gleaner measure there, and checks from its record that both nodes were seen, that every placement was
# made, and that pages lie where they were asked to. Placement, not speed: times under emulation mean nothing, and the
# guest's figures may well be unresolved.
#
# The guest is Debian's cloud kernel with a statically linked Gleaner and crates/testkit/guest/init.c in memory. What is
# missing is installed if this is Debian and we are root. Exit 0 also where something cannot be had: it is named then.
set -euo pipefail
cd "$(dirname "$0")/.."

work=${CARGO_TARGET_DIR:-target}/numa-guest
seconds=${GUEST_SECONDS:-300}
triple=x86_64-unknown-linux-gnu
updated=no

skip() {
    echo "skipped: memory placement on a guest of two nodes: $1"
    exit 0
}

update() {
    if [ "$updated" = no ]; then apt-get update -qq >/dev/null || true; updated=yes; fi
}

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# need COMMAND PACKAGE
need() {
    command -v "$1" >/dev/null && return 0
    if may_install; then
        update
        echo "installing $2"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null || true
        command -v "$1" >/dev/null && return 0
    fi
    skip "'$1' is not there (Debian: apt install $2, as root)"
}

# A kernel to boot: GUEST_KERNEL, or Debian's for clouds, taken out of its package without installing it.
fetch_kernel() {
    if [ -n "${GUEST_KERNEL:-}" ]; then cp "$GUEST_KERNEL" "$work/vmlinuz"; return 0; fi
    [ -s "$work/vmlinuz" ] && return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        skip "no kernel to boot: set GUEST_KERNEL to one with NUMA and a serial console built in"
    may_install && update
    local package
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -n1)
    [ -n "$package" ] || skip "apt knows no linux-image-cloud-amd64; set GUEST_KERNEL to a kernel"
    rm -rf "$work/kernel"
    mkdir -p "$work/kernel"
    # As root, apt would hand the download to a user of its own, who may not write here.
    (cd "$work/kernel" && apt-get -o APT::Sandbox::User=root download -qq "$package") ||
        skip "$package could not be downloaded; set GUEST_KERNEL to a kernel"
    dpkg-deb --fsys-tarfile "$work"/kernel/*.deb | tar -x -C "$work/kernel" --wildcards './boot/vmlinuz-*'
    mv "$work"/kernel/boot/vmlinuz-* "$work/vmlinuz"
    rm -rf "$work/kernel"
}

[ "$(uname -m)" = x86_64 ] || skip "Gleaner measures on x86-64 only"
need qemu-system-x86_64 qemu-system-x86
need cpio cpio
need cc gcc
mkdir -p "$work/root"
work=$(cd "$work" && pwd)
fetch_kernel

echo "building a guest"
cc -O1 -Wall -static -o "$work/root/init" crates/testkit/guest/init.c ||
    skip "no static C library (Debian: apt install libc6-dev)"
# A directory of its own: other flags would have everything rebuilt again and again.
RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_DIR="$work/build" \
    cargo build --quiet --release --locked --package gleaner-cli --target "$triple"
cp "$work/build/$triple/release/gleaner" "$work/root/gleaner"
strip "$work/root/gleaner" 2>/dev/null || true
(cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -1 >"$work/initramfs.gz")

echo "booting it: two nodes of two CPUs, emulated (at most $seconds s)"
rm -f "$work"/console.log "$work"/machine.json "$work"/doctor.json
began=$(date +%s)
timeout "$seconds" qemu-system-x86_64 \
    -accel tcg,thread=multi -machine q35 -cpu max -smp 4,sockets=2,cores=2,threads=1 -m 1G \
    -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=512M \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 \
    -numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=21 \
    -nodefaults -display none -no-reboot \
    -serial "file:$work/console.log" -serial "file:$work/machine.json" -serial "file:$work/doctor.json" \
    -kernel "$work/vmlinuz" -initrd "$work/initramfs.gz" \
    -append "console=ttyS0 quiet panic=-1 tsc=reliable" </dev/null || {
    tail -n 30 "$work/console.log" || true
    echo "FAILED: the guest did not end by itself within $seconds s"
    exit 1
}
grep -a '^guest:' "$work/console.log" || true
echo "the guest ran for $(($(date +%s) - began)) s; its records: $work/machine.json, $work/doctor.json"

GLEANER_GUEST_RECORDS="$work" cargo test --quiet --locked --package gleaner-experiments --test guest -- --ignored || {
    tail -n 30 "$work/console.log"
    exit 1
}
echo "memory lay where it was asked to"
