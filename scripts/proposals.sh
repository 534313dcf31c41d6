#!/usr/bin/env bash
# Builds the kernel of `pagetide verify --kernel proposals`: Debian's source of Linux 6.1 with the
# patches of kernels/linux-6.1, and with the guest's drivers built in. Stores it in the user's
# cache, next to the kernels of scripts/kernel.sh; nothing is installed into the system. Does
# nothing if the cached kernel has the same source, patches and options.
#
#   scripts/proposals.sh                builds it; the first build takes a few minutes and 3 GB of disk
#   scripts/proposals.sh --keep         keeps the build directory, which shortens the next build
#   scripts/proposals.sh --source DEB   uses the source in this package, and fetches nothing
#   scripts/proposals.sh --patches DIR  uses patches and options of another directory; the result
#                                       replaces the cached kernel
#   scripts/proposals.sh --checked      builds an additional kernel that checks itself (options of
#                                       config-checked), for scripts/stress_proposals.sh
#
# Needs the config of a Debian kernel 6.1 in the cache (`make kernel`), a C compiler, and the other
# tools for kernel builds.
set -euo pipefail

package=linux-source-6.1
cache="${XDG_CACHE_HOME:-$HOME/.cache}/pagetide/kernel"
folder="$(cd "$(dirname "$0")/.." && pwd)/kernels/linux-6.1"
kernel=proposals
keep=
checked=
deb=

fail() {
    echo "proposals.sh: $1" >&2
    exit 1
}

say() {
    echo "proposals.sh: $1" >&2
}

while [ $# -gt 0 ]; do
    case "$1" in
    --keep) keep=yes ;;
    --checked) checked=yes kernel=proposals-checked ;;
    --source | --patches)
        [ $# -gt 1 ] || fail "$1 needs a value"
        path="$(realpath -e "$2" 2>/dev/null)" || fail "there is no $2"
        if [ "$1" = --source ]; then deb="$path"; else folder="$path"; fi
        shift
        ;;
    --help | -h)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *) fail "unknown option $1; the options are --keep, --checked, --source DEB and --patches DIR" ;;
    esac
    shift
done
build="$cache/$kernel.build"
tree="$build/linux"

shopt -s nullglob
patches=("$folder"/[0-9]*.patch)
[ "${#patches[@]}" -gt 0 ] ||
    fail "there are no patches in $folder; their names must begin with a digit and end in .patch"
options=("$folder/config" ${checked:+"$folder/config-checked"})
for file in "${options[@]}"; do
    [ -f "$file" ] || fail "there is no $file"
done
# The newest of Debian's own kernels, excluding other versions.
base="$(printf '%s\n' "$cache"/boot/config-6.1.* | sort -V | tail -n 1)"
[ -n "$base" ] || fail "there is no config of a kernel 6.1 in $cache/boot; \`scripts/kernel.sh 6.1\` fetches one"

# Of a source package: the available version; of a file: its own version.
source_version() {
    if [ -n "$deb" ]; then
        dpkg-deb -f "$deb" Version 2>/dev/null || fail "$deb is not a Debian package"
    elif command -v apt-cache >/dev/null; then
        apt-cache policy "$package" | sed -n 's/^ *Candidate: \([0-9].*\)/\1/p'
    fi
}

# Short sum of patches and options. It ends the kernel's version, so it is in /proc/version and in
# every record.
sum_of() {
    (cd "$folder" && cat "${patches[@]##*/}" "${options[@]##*/}" | sha256sum | cut -c 1-8)
}

# The inputs of a build, for comparison with those of the cached kernel.
built_from() {
    echo "source $package $1"
    (cd "$(dirname "$base")" && sha256sum "$(basename "$base")")
    (cd "$folder" && sha256sum "${options[@]##*/}" "${patches[@]##*/}")
}

version="$(source_version)"
there="$cache/$kernel/built-from"
if [ -f "$there" ]; then
    # If no source is available, the source of the cached kernel is used.
    known="${version:-$(sed -n "s/^source $package //p" "$there")}"
    if [ "$(built_from "$known")" = "$(cat "$there")" ] &&
        compgen -G "$cache/$kernel/boot/vmlinuz-*-$(sum_of)" >/dev/null; then
        say "the kernel with these patches (-$(sum_of)) exists"
        exit 0
    fi
fi

# Checks all requirements first: a program, and the Debian package that contains it.
missing=()
need() {
    command -v "$1" >/dev/null || missing+=("$1 (package $2)")
}
need gcc gcc
need make make
need ld binutils
need flex flex
need bison bison
need bc bc
need perl perl
need patch patch
need xz xz-utils
# Compression of the image.
case "$(sed -n 's/^CONFIG_KERNEL_\([A-Z0-9]*\)=y$/\1/p' "$base")" in
LZ4) need lz4 lz4 ;;
ZSTD) need zstd zstd ;;
LZMA) need lzma xz-utils ;;
BZIP2) need bzip2 bzip2 ;;
LZO) need lzop lzop ;;
esac
need tar tar
need flock util-linux
need dpkg-deb dpkg
if command -v gcc >/dev/null; then
    # objtool reads the compiler's output.
    has() {
        echo "#include <$1>" | gcc -E - >/dev/null 2>&1
    }
    has stdio.h || missing+=("headers of the C library (package libc6-dev)")
    ! has stdio.h || has gelf.h || missing+=("headers of libelf (package libelf-dev)")
fi
if [ "${#missing[@]}" -gt 0 ]; then
    fail "building a kernel needs $(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
fi

mkdir -p "$cache"
exec 9>"$cache/proposals.lock"
flock -n 9 || fail "another one builds"

# Temporary files, removed at exit. A failed build keeps its log.
staging=
old=
clean() {
    # Stopped between the two renames: the old kernel is still valid.
    if [ -n "$old" ] && [ -e "$old" ] && [ ! -e "$cache/$kernel" ]; then mv -T "$old" "$cache/$kernel"; fi
    rm -rf "$staging" ${old:+"$old"}
    if [ -n "$keep" ]; then return; fi
    rm -rf "$build"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$build"
# Build from a copy, so that changes in the folder during the build have no effect.
rm -rf "$build/taken"
mkdir "$build/taken"
cp "${patches[@]}" "${options[@]}" "$build/taken"
folder="$build/taken"
patches=("$folder"/[0-9]*.patch)
options=("${options[@]/#*\//$folder/}")
if [ -z "$deb" ]; then
    command -v apt-get >/dev/null || fail "apt-get is not available here; name a package with --source DEB"
    if [ -z "$version" ]; then
        as_root=()
        [ "$(id -u)" = 0 ] || as_root=(sudo -n)
        "${as_root[@]}" apt-get -qq update || say "the lists of packages could not be renewed"
        version="$(source_version)"
    fi
    [ -n "$version" ] || fail "the package sources have no $package, which Debian 12 has; name one with --source DEB"
    say "fetching $package $version"
    # apt verifies the downloads.
    fetched="$build/fetched"
    rm -rf "$fetched"
    mkdir "$fetched"
    chmod 755 "$fetched"
    (cd "$fetched" && apt-get -qq download "$package=$version" 2>"$build/apt.log") || {
        sed 's/^/  /' "$build/apt.log" >&2
        fail "cannot download $package $version"
    }
    deb="$(printf '%s\n' "$fetched"/*.deb)"
fi

# A kept tree is reused if it has this source, and its patches can be reverted.
unpack() {
    if [ -f "$build/source" ] && [ "$(cat "$build/source")" = "$version" ]; then
        local applied=("$build"/applied/*.patch) at
        for ((at = ${#applied[@]} - 1; at >= 0; at--)); do
            patch -d "$tree" -p1 -R -s -f <"${applied[at]}" >/dev/null && rm "${applied[at]}" || break
        done
        [ "$at" -ge 0 ] || return 0
    fi
    say "unpacking"
    rm -rf "$tree" "$build/applied" "$build/source"
    mkdir -p "$tree" "$build/applied"
    local archive
    archive="$(dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -E '/linux-source-[0-9.]*\.tar\.xz$')" ||
        fail "$deb has no source of Linux"
    # Skip documentation that the build does not read.
    dpkg-deb --fsys-tarfile "$deb" | tar -xO "$archive" | tar -xJ -C "$tree" --strip-components=1
    echo "$version" >"$build/source"
}
unpack
rm -rf "$build/fetched"

for patch in "${patches[@]}"; do
    name="$(basename "$patch")"
    if ! patch -d "$tree" -p1 -N -F0 --no-backup-if-mismatch -r - <"$patch" >"$build/patch.log" 2>&1; then
        grep -E 'patching file|FAILED|ignored|malformed|find file' "$build/patch.log" |
            grep -B 1 -vE '^patching file' | sed 's/^/  /' >&2 || true
        # The incomplete tree is not usable for another build.
        rm -f "$build/source"
        fail "$name does not apply to $package $version"
    fi
    cp "$patch" "$build/applied/$name"
done

# The builder and the host are part of /proc/version.
export KBUILD_BUILD_USER=pagetide KBUILD_BUILD_HOST=localhost LOCALVERSION="-$(sum_of)"
log="$build/build.log"
: >"$log"
logged() {
    "$@" >>"$log" 2>&1 || {
        cp "$log" "$cache/$kernel.log"
        grep -E '(error|Error|\*\*\*)' "$log" | tail -n 12 | sed 's/^/  /' >&2
        fail "the build failed; all it said is in $cache/$kernel.log"
    }
}
kernel_make() {
    logged make -C "$tree" ARCH=x86_64 "$@"
}
merge_options() {
    cd "$tree" && scripts/kconfig/merge_config.sh -m .config "${options[@]}"
}
cp "$base" "$tree/.config.new"
# Only if it differs, because make would rebuild everything.
(cd "$tree" && mv .config .config.kept 2>/dev/null) || true
mv "$tree/.config.new" "$tree/.config"
kernel_make mod2noconfig
logged merge_options
kernel_make olddefconfig
if cmp -s "$tree/.config" "$tree/.config.kept"; then
    mv "$tree/.config.kept" "$tree/.config"
fi
lacking="$(grep -hE '^CONFIG_[A-Z0-9_]*=y$' "${options[@]}" | grep -vxF -f "$tree/.config" || true)"
[ -z "$lacking" ] || fail "$package $version takes no $(echo $lacking)"
unset_options="$(sed -n 's/^# \(CONFIG_[A-Z0-9_]*\) is not set$/\1=y\n\1=m/p' "${options[@]}")"
selected="$(grep -xF -f - "$tree/.config" <<<"$unset_options" || true)"
[ -z "$selected" ] || fail "$package $version needs $(echo $selected)"
say "building with $(nproc) CPUs"
kernel_make -j"$(nproc)" bzImage
release="$(make -s -C "$tree" ARCH=x86_64 kernelrelease)"
[ -f "$tree/modules.builtin" ] || fail "the build made no modules.builtin"

staging="$(mktemp -d "$cache/$kernel.new.XXXXXX")"
chmod 755 "$staging"
mkdir -p "$staging/boot" "$staging/lib/modules/$release"
cp "$tree/arch/x86/boot/bzImage" "$staging/boot/vmlinuz-$release"
cp "$tree/.config" "$staging/boot/config-$release"
cp "$tree/System.map" "$staging/boot/System.map-$release"
cp "$tree/modules.builtin" "$staging/lib/modules/$release/"
built_from "$version" >"$staging/built-from"
# Rename one after the other, so that an interruption leaves a complete kernel or none.
old="$cache/$kernel.old.$$"
if [ -e "$cache/$kernel" ]; then mv -T "$cache/$kernel" "$old"; fi
mv -T "$staging" "$cache/$kernel"
rm -rf "$old" "$cache/$kernel.log"
say "Linux $release with $(printf '%s\n' "${patches[@]##*/}" | wc -l) patches is in $cache/$kernel"
