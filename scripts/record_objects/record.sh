#!/usr/bin/env bash
# Records which kernel objects real work creates: boots a guest from Debian packages, traces every
# allocation and free of slab memory (Linux: the kmem events of tracefs) while WORK runs, and
# converts the trace to an object mix (docs/scenario.md, "kernel-objects").
#
#   scripts/record_objects/record.sh compile|database|database-server|service SCRATCH [UNITS]
#
# SCRATCH is a directory for packages, images and traces (2 GB); existing packages and images in it
# are reused. The mix is written to experiments/objects/WORK.toml, statistics to
# SCRATCH/WORK/report. Needs Linux on x86-64, apt-get of Debian 12, root, QEMU and the kernel of
# scripts/kernel.sh. Takes 3 to 10 minutes with emulation.
#
# Invariant: the guest runs only programs of the packages, and all files stay in SCRATCH.
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
kernel="${XDG_CACHE_HOME:-$HOME/.cache}/pagetide/kernel"
packages=(busybox-static libc-bin dash coreutils gcc libc6-dev mariadb-server-core mariadb-client-core
    sysbench redis-server)
# Modules of the cloud kernel for a virtual disk, in the order of dependence.
modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk)

fail() {
    echo "record.sh: $1" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: record.sh compile|database|database-server|service SCRATCH [UNITS]"
work="$1"
mkdir -p "$2"
scratch="$(cd "$2" && pwd)"
case "$work" in
compile) units="${3:-40}" ;;
database) units="${3:-200}" ;;
database-server) units="${3:-10}" ;;
service) units="${3:-30}" ;;
*) fail "no work \`$work\`: compile, database, database-server or service" ;;
esac
[ "$(id -u)" = 0 ] || fail "needs root, because it creates files of other owners"
image="$(find "$kernel/boot" -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1)"
[ -n "$image" ] || fail "no kernel in $kernel: run scripts/kernel.sh"
version="${image##*/vmlinuz-}"

# The packages with all their dependencies, as if none were installed.
if [ ! -e "$scratch/root/done" ]; then
    mkdir -p "$scratch/debs/partial"
    : >"$scratch/status"
    apt-get -qq -y -o Dir::State::status="$scratch/status" -o Dir::Cache::archives="$scratch/debs" \
        -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
        --download-only --no-install-recommends install "${packages[@]}"
    rm -rf "$scratch/root"
    # Libraries are under /lib, as in a Debian with merged directories.
    mkdir -p "$scratch"/root/{proc,sys,dev,run,tmp,out,usr/{bin,sbin,lib,lib64}}
    for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$scratch/root/$dir"; done
    for deb in "$scratch"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$scratch/root" --keep-directory-symlink
    done
    mknod -m 666 "$scratch/root/dev/null" c 1 3
    # Without this cache, every program searches all directories for its libraries.
    chroot "$scratch/root" /usr/sbin/ldconfig
    echo root:x:0:0:root:/:/bin/sh >"$scratch/root/etc/passwd"
    echo root:x:0: >"$scratch/root/etc/group"
    echo 127.0.0.1 localhost >"$scratch/root/etc/hosts"
    # Programs that packages assume (sed, sh); existing ones are kept.
    chroot "$scratch/root" /bin/busybox --install -s /usr/bin 2>/dev/null || true
    chroot "$scratch/root" /usr/bin/mariadb-install-db --user=root --datadir=/var/lib/mysql \
        --auth-root-authentication-method=normal --skip-test-db >"$scratch/install-db.log" 2>&1 ||
        fail "mariadb-install-db failed: see $scratch/install-db.log"
    touch "$scratch/root/done"
fi
mkdir -p "$scratch/root/record"
cp "$here"/{guest.sh,unit.c,transactions.lua} "$scratch/root/record/"
rm -f "$scratch/disk.img"
truncate -s 4G "$scratch/disk.img"
mke2fs -q -t ext4 -d "$scratch/root" "$scratch/disk.img"

# The initramfs: a shell, and the modules of the disk.
rm -rf "$scratch/initramfs"
mkdir -p "$scratch"/initramfs/{bin,modules,proc,sys,dev,root}
cp "$scratch/root/usr/bin/busybox" "$scratch/initramfs/bin/"
ln -s busybox "$scratch/initramfs/bin/sh"
insert=
for module in "${modules[@]}"; do
    file="$(find "$kernel/lib/modules/$version" -name "$module.ko" | head -n 1)"
    if [ -n "$file" ]; then
        cp "$file" "$scratch/initramfs/modules/"
        insert+="/bin/busybox insmod /modules/$module.ko"$'\n'
    fi
done
cat >"$scratch/initramfs/init" <<END
#!/bin/sh
/bin/busybox mount -t devtmpfs none /dev
$insert
/bin/busybox mount -t ext4 /dev/vda /root || /bin/busybox poweroff -f
/bin/busybox mount -t devtmpfs none /root/dev
/bin/busybox chroot /root /bin/busybox sh /record/guest.sh $work $units >/dev/ttyS0 2>&1
/bin/busybox poweroff -f
END
chmod 755 "$scratch/initramfs/init"
(cd "$scratch/initramfs" && find . | "$scratch/root/usr/bin/busybox" cpio -o -H newc 2>/dev/null) \
    >"$scratch/initramfs.cpio"

rm -rf "${scratch:?}/$work"
mkdir "$scratch/$work"
truncate -s 3G "$scratch/$work/result.img"
# One CPU, so that events are in the order of one buffer. slab_nomerge keeps the names of caches.
# no_hash_pointers makes pointers in events comparable with those of bulk calls.
timeout 1500 qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none -machine pc \
    -accel tcg,thread=single -cpu max,la57=off -smp 1 -m 5G \
    -kernel "$image" -initrd "$scratch/initramfs.cpio" \
    -append "console=ttyS0 loglevel=4 panic=-1 rootfstype=ramfs nokaslr mitigations=off nowatchdog \
audit=0 random.trust_cpu=on tsc=reliable slab_nomerge no_hash_pointers" \
    -serial "file:$scratch/$work/console" \
    -drive "if=virtio,file=$scratch/disk.img,format=raw,snapshot=on,cache=unsafe" \
    -drive "if=virtio,file=$scratch/$work/result.img,format=raw,cache=unsafe"
tar -x -C "$scratch/$work" -f "$scratch/$work/result.img" ||
    fail "the guest left nothing: see $scratch/$work/console"
rm "$scratch/$work/result.img"
mkdir -p "$here/../../experiments/objects"
python3 "$here/analyse.py" "$work" "$scratch/$work" "Linux $version" \
    "$here/../../experiments/objects/$work.toml" >"$scratch/$work/report"
echo "record.sh: experiments/objects/$work.toml; how it was counted: $scratch/$work/report"
