# Small guests under QEMU's software emulation, for what the machine at hand is not: sourced by the
# scripts that boot them.
#
# A guest is Debian's cloud kernel with a statically linked Gleaner and crates/testkit/guest/init.c
# in memory. What is missing is installed if this is Debian and we are root. A script that sources
# this sets `what`, which is skipped where something is not to be had.
#
# To add a guest: a script that calls `prepare` and `boot`, and what init.c is to do there.

set -euo pipefail
guests=${CARGO_TARGET_DIR:-target}/guest
seconds=${GUEST_SECONDS:-300}
triple=x86_64-unknown-linux-gnu
updated=no

skip() {
    echo "skipped: $what: $1"
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
    skip "'$1' is missing (Debian: apt install $2, as root)"
}

# A kernel to boot: GUEST_KERNEL, or Debian's for clouds, taken out of its package without
# installing it.
fetch_kernel() {
    if [ -n "${GUEST_KERNEL:-}" ]; then cp "$GUEST_KERNEL" "$work/vmlinuz"; return 0; fi
    if [ ! -s "$guests/vmlinuz" ]; then
        command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
            skip "no kernel to boot: set GUEST_KERNEL to one with a serial console (and NUMA) built in"
        may_install && update
        local package
        package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -n1)
        [ -n "$package" ] || skip "apt knows no linux-image-cloud-amd64; set GUEST_KERNEL to a kernel"
        rm -rf "$guests/kernel"
        mkdir -p "$guests/kernel"
        # As root, apt would hand the download to a user of its own, who may not write here.
        (cd "$guests/kernel" && apt-get -o APT::Sandbox::User=root download -qq "$package") ||
            skip "$package could not be downloaded; set GUEST_KERNEL to a kernel"
        dpkg-deb --fsys-tarfile "$guests"/kernel/*.deb | tar -x -C "$guests/kernel" --wildcards './boot/vmlinuz-*'
        mv "$guests"/kernel/boot/vmlinuz-* "$guests/vmlinuz"
        rm -rf "$guests/kernel"
    fi
    cp "$guests/vmlinuz" "$work/vmlinuz"
}

# prepare NAME: the folder $work of this guest, with its kernel, and in $work/root what it finds
# when it wakes.
prepare() {
    [ "$(uname -m)" = x86_64 ] || skip "Gleaner is for x86-64 only"
    need qemu-system-x86_64 qemu-system-x86
    need cpio cpio
    need cc gcc
    work=$guests/$1
    rm -rf "$work"
    mkdir -p "$work/root"
    work=$(cd "$work" && pwd)
    fetch_kernel
    echo "building a guest"
    cc -O1 -Wall -static -o "$work/root/init" crates/testkit/guest/init.c ||
        skip "no static C library (Debian: apt install libc6-dev)"
    # A directory of its own: other flags would have everything rebuilt again and again.
    RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_DIR="$guests/build" \
        cargo build --quiet --release --locked --package gleaner-cli --target "$triple"
    cp "$guests/build/$triple/release/gleaner" "$work/root/gleaner"
    strip "$work/root/gleaner" 2>/dev/null || true
}

# boot TASK KERNEL-OPTIONS QEMU-ARGUMENTS…: has init do TASK there. Its console is
# $work/console.log.
boot() {
    local task=$1 options=$2 began
    shift 2
    (cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -1 >"$work/initramfs.gz")
    began=$(date +%s)
    timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -m 1G -nodefaults -display none -no-reboot \
        -serial "file:$work/console.log" "$@" -kernel "$work/vmlinuz" -initrd "$work/initramfs.gz" \
        -append "console=ttyS0 quiet panic=-1 tsc=reliable $options -- $task" </dev/null || {
        tail -n 30 "$work/console.log" || true
        echo "FAILED: the guest did not end by itself within $seconds s"
        exit 1
    }
    grep -a '^guest:' "$work/console.log" || true
    echo "the guest ran for $(($(date +%s) - began)) s"
}
