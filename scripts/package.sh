#!/usr/bin/env bash
# Makes packages of what `make deb` and `make static` built, below target/packages:
#
#   scripts/package.sh deb      gleaner_VERSION_amd64.deb: the dynamic binary, man pages,
#                               completions; depends on a libc as new as it needs
#   scripts/package.sh static   gleaner-VERSION-x86_64-linux-static.tar.gz: one static binary, and
#                               the same files
#
# No root is needed. Prints the file's name.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
packages=$target/packages
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$packages"

# The newest version of a symbol of libc that the binary needs.
libc_wanted() { # BINARY
    readelf --version-info --wide "$1" | grep -o 'Name: GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -n1
}

# Where `make install` looks for it.
built() { # BINARY
    install -D "$1" "$work/built/release/gleaner"
}

installed() { # PREFIX
    make --no-print-directory --silent install CARGO_TARGET_DIR="$work/built" DESTDIR="$work/root" PREFIX="$1"
}

documents() { # DIRECTORY
    install -D -m 644 -t "$1" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT
}

deb() {
    built "$target/packaged/gleaner"
    installed /usr
    documents "$work/root/usr/share/doc/gleaner"
    local binary=$work/root/usr/bin/gleaner
    find "$work/root/usr/share/man" -type f -exec gzip -9n {} +
    mkdir "$work/root/DEBIAN"
    cat >"$work/root/DEBIAN/control" <<END
Package: gleaner
Version: $version
Architecture: amd64
Maintainer: The Gleaner authors <gleaner@localhost>
Section: devel
Priority: optional
Depends: libc6 (>= $(libc_wanted "$binary")), libgcc-s1
Installed-Size: $(du -sk "$work/root/usr" | cut -f1)
Description: measures memory stalls, explains them and uses them
 Measures how long a core waits on memory, shows which loads of a program make
 it wait (without a PMU), and runs other programs in a program's memory stalls.
END
    local made=$packages/gleaner_${version}_amd64.deb
    dpkg-deb --root-owner-group --build "$work/root" "$made" >/dev/null
    echo "$made"
}

static() {
    local name=gleaner-$version-x86_64-linux-static
    built "$target/x86_64-unknown-linux-musl/packaged/gleaner"
    installed "/$name"
    documents "$work/root/$name/share/doc/gleaner"
    local made=$packages/$name.tar.gz
    tar -C "$work/root" --owner=0 --group=0 --sort=name -czf "$made" "$name"
    echo "$made"
}

case ${1:-} in
deb | static) "$1" ;;
*) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
