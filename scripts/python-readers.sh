#!/usr/bin/env bash
# Python packages that read what Gleaner writes, in a virtual environment of their own.
#
#   scripts/python-readers.sh DIR PACKAGE==VERSION…
#
# What is there already is left as it is.
set -euo pipefail
directory=$1
shift
if [ ! -x "$directory/bin/pip" ]; then
    rm -rf "$directory"
    if ! python3 -m venv "$directory" >/dev/null 2>&1; then
        # Debian keeps a part of this module in a package of its own.
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null 2>&1 || true
        fi
        python3 -m venv "$directory" >/dev/null
    fi
fi
have=$("$directory/bin/pip" list --format=freeze --disable-pip-version-check 2>/dev/null | tr 'A-Z_' 'a-z-')
missing=()
for package in "$@"; do
    grep -qxF "$package" <<<"$have" || missing+=("$package")
done
[ "${#missing[@]}" = 0 ] || timeout 900 "$directory/bin/pip" install --quiet --disable-pip-version-check "${missing[@]}"
