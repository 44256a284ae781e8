#!/usr/bin/env bash
# Tries the packages where nothing of this system is: the .deb in a minimal Debian or Ubuntu of
# another release, the static binary there and in an empty root with busybox alone. In each a
# machine is measured, a program profiled, and another one run in its stalls.
#
#   scripts/test-packages.sh [SUITE MIRROR]      default: noble of Ubuntu, else trixie of Debian
#
# Needs root for chroot; what cannot be had (root, debootstrap, a network) is named, and that part
# is left out. Exit 1 if something failed that could be tried.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
roots=$target/packages/roots
failed=0

skip() { echo "skipped: $*"; }

# In a mount namespace of its own: however this script ends, nothing stays mounted below the roots,
# and what is removed there is nothing of this system.
if [ "$(id -u)" = 0 ] && [ -z "${GLEANER_OWN_MOUNTS:-}" ]; then
    GLEANER_OWN_MOUNTS=yes exec unshare --mount --propagation private -- bash scripts/test-packages.sh "$@"
fi

[ "$(id -u)" = 0 ] || { skip "all: chroot needs root"; exit 0; }
deb=$(scripts/package.sh deb) || exit 1
static=$(scripts/package.sh static) || exit 1

system_files() { # ROOT
    mkdir -p "$1/proc" "$1/sys" "$1/dev" "$1/tmp"
    for place in proc sys dev; do
        mountpoint -q "$1/$place" || mount --bind "/$place" "$1/$place"
    done
}

# What is tried in a root. The tour's own programs stall, and need nothing but a libc.
in_root() { # NAME ROOT LIBC
    local name=$1 root=$2 libc=$3
    check() { # WHAT EXPECTED COMMAND…
        local what=$1 expected=$2 said
        shift 2
        said=$(chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp LC_ALL=C "$@" 2>&1)
        if grep -q -- "$expected" <<<"$said"; then
            echo "  passed: $name: $what"
        else
            echo "  FAILED: $name: $what"$'\n'"$said" | tail -n 12
            failed=1
        fi
    }
    check "version" "gleaner [0-9]" gleaner --version
    check "doctor" "harvest" gleaner doctor
    check "measure" "Grade" gleaner measure clock --quick
    check "model" "nothing to fit" sh -c 'gleaner measure clock --quick -q -o /tmp/m.json >/dev/null && gleaner model /tmp/m.json'
    if [ "$libc" = yes ]; then
        check "profile" "where the CPU time went" gleaner profile -- gzip -9c /usr/bin/gleaner
        check "harvest" "slowdown of the primary" \
            gleaner harvest --scavenger 'sort -R /var/lib/dpkg/available /var/lib/dpkg/status' -- gzip -9c /usr/bin/gleaner
        check "tour" "report.html" sh -c 'cd /tmp && gleaner tour -q'
        check "all of the tour" "^0$" sh -c 'grep -A3 "\"not_run\"" /tmp/gleaner-tour/tour.json; grep -c "\"not_run\"" /tmp/gleaner-tour/tour.json'
    else
        # There is no libc: what is profiled is static, and only perf events see it.
        check "profile" "where the CPU time went\|perf_event" gleaner profile -- busybox sha256sum /usr/bin/gleaner
        check "tour" "report.html" sh -c 'cd /tmp && gleaner tour -q'
    fi
}

bare() {
    command -v busybox >/dev/null || { skip "the empty root: no busybox (Debian: busybox-static)"; return; }
    file -L "$(command -v busybox)" 2>/dev/null | grep -q "static" || ldd "$(command -v busybox)" 2>&1 | grep -q "not a dynamic" ||
        { skip "the empty root: busybox is not static (Debian: busybox-static)"; return; }
    local root=$roots/bare
    rm -rf "$root" && mkdir -p "$root/bin" "$root/usr/bin"
    cp "$(command -v busybox)" "$root/bin/busybox"
    for tool in sh env grep cat; do ln -s /bin/busybox "$root/bin/$tool"; done
    ln -s /bin/busybox "$root/usr/bin/env"
    tar -C "$root" --strip-components=1 -xzf "$static"
    mv "$root/bin/gleaner" "$root/usr/bin/gleaner"
    system_files "$root"
    echo "static, in an empty root with busybox"
    in_root bare "$root" no
}

# Makes the root of another release, unless it is there.
release() { # SUITE MIRROR
    local root=$roots/$1
    [ -e "$root/.made" ] && return
    command -v debootstrap >/dev/null || return 1
    rm -rf "$root" && mkdir -p "$root"
    # Releases newer than debootstrap itself are made as their elders are. Packages are checked by
    # the release's sums; its signature is not, as this system has no key of other distributions.
    local script=
    if [ ! -e "/usr/share/debootstrap/scripts/$1" ]; then
        case $2 in *ubuntu*) script=gutsy ;; *) script=sid ;; esac
    fi
    debootstrap --variant=minbase --no-check-gpg "$1" "$root" "$2" ${script:+"$script"} >"$root.log" 2>&1 &&
        touch "$root/.made"
}

other_release() { # SUITE MIRROR
    local root=$roots/$1
    system_files "$root"
    cp "$deb" "$root/tmp/gleaner.deb"
    if ! chroot "$root" dpkg -i /tmp/gleaner.deb; then
        echo "  FAILED: $1: the package is not installed"
        failed=1
        return
    fi
    echo "the package, in $1"
    in_root "$1, package" "$root" yes
    chroot "$root" dpkg --purge gleaner >/dev/null
    tar -C "$root/usr" --strip-components=1 -xzf "$static"
    echo "static, in $1"
    in_root "$1, static" "$root" yes
}

mkdir -p "$roots"
bare
tried=
if [ $# = 2 ]; then choices=("$1 $2"); else
    choices=("noble http://archive.ubuntu.com/ubuntu" "trixie http://deb.debian.org/debian")
fi
for choice in "${choices[@]}"; do
    read -r suite mirror <<<"$choice"
    if release "$suite" "$mirror"; then
        other_release "$suite" "$mirror"
        tried=yes
        break
    fi
    skip "$suite: debootstrap or $mirror is not to be had"
done
[ "$tried" ] || skip "another release: the .deb and the static binary were not tried there"
exit "$failed"
