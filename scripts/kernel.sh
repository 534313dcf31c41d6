#!/usr/bin/env bash
# Installs the requirements of `pagetide verify`: QEMU, and Debian's cloud kernel with its modules,
# unpacked into the user's cache (nothing is installed into /boot). Existing files are kept.
#
#   scripts/kernel.sh          newest cloud kernel in the package sources
#   scripts/kernel.sh PACKAGE  another one, such as linux-image-6.1.0-1-cloud-amd64
#   scripts/kernel.sh 6.12     the newest cloud kernel of that version
#
# Needs apt-get; installing QEMU needs root or sudo.
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/pagetide/kernel"

fail() {
    echo "kernel.sh: $1" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -n "$@"
    else
        fail "installing packages needs root"
    fi
}

updated=
update() {
    [ -n "$updated" ] || as_root apt-get -qq update
    updated=yes
}

missing=()
command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86)
PATH="$PATH:/usr/sbin:/sbin" command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
if [ "${#missing[@]}" -gt 0 ]; then
    command -v apt-get >/dev/null || fail "install ${missing[*]}; apt-get is not available here"
    update
    DEBIAN_FRONTEND=noninteractive as_root \
        apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ $# -eq 0 ] && compgen -G "$cache/boot/vmlinuz-*" >/dev/null; then
    exit 0
fi
command -v apt-get >/dev/null || fail "apt-get is not available here; name a kernel with --kernel"
package="${1:-}"
if [ -z "$package" ]; then
    update
    # The meta package depends on the newest.
    package="$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)"
    [ -n "$package" ] || fail "the package sources have no linux-image-cloud-amd64"
fi
if [[ "$package" =~ ^[0-9]+\.[0-9]+$ ]]; then
    update
    version="$package"
    # Unsigned images are smaller and sufficient; either kind works.
    package="$(apt-cache search --names-only "^linux-image-${version//./\\.}\..*cloud-amd64" |
        sed 's/ .*//' | grep -v -e -dbg | sort -V | tail -n 1)"
    [ -n "$package" ] || fail "the package sources have no cloud kernel $version. Kernels newer than a release's \
own are in its backports; where you get packages from, add a source like

  deb MIRROR $(. /etc/os-release; echo "${VERSION_CODENAME:-RELEASE}")-backports main

in /etc/apt/sources.list.d/backports.list, with the mirror of your other sources, and run this again. A source of \
backports alone upgrades nothing."
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get -qq download "$package" 2>/dev/null) || fail "cannot download $package"
dpkg-deb -x "$work"/*.deb "$work/root"
mkdir -p "$cache"
# Modules first, because the presence of an image means that a kernel is installed.
cp -r "$work/root/lib" "$cache/"
cp -r "$work/root/boot" "$cache/"
echo "kernel.sh: $package is in $cache"
