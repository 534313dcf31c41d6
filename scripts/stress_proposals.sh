#!/usr/bin/env bash
# Stress for the patches of kernels/linux-6.1: a kernel that checks itself (KASAN, lockdep) is booted with each version
# of control groups, and shell scripts write right and wrong values to all files of the patches at random, under memory
# pressure, while groups are made and removed. Fails if the kernel complains about anything, or did not get far.
#
#   scripts/stress_proposals.sh              five minutes a version
#   scripts/stress_proposals.sh SECONDS      so many; emulation and the checks make it many times slower
#
# Builds that kernel if it is not there. Wants qemu-system-x86_64, cpio, and busybox in one file (package
# busybox-static).
set -euo pipefail

seconds="${1:-300}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/pagetide/kernel"
init="$(dirname "$0")/stress_proposals_init.sh"

fail() {
    echo "stress_proposals.sh: $1" >&2
    exit 1
}

[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || fail "$seconds is no number of seconds"
# Does nothing if it is there, and of these patches.
"$(dirname "$0")/proposals.sh" --checked
kernel="$(printf '%s\n' "$cache"/proposals-checked/boot/vmlinuz-*)"
[ -f "$kernel" ] || fail "there is no kernel that checks itself"
for program in qemu-system-x86_64 cpio busybox; do
    command -v "$program" >/dev/null || fail "there is no $program"
done
! ldd "$(command -v busybox)" >/dev/null 2>&1 || fail "busybox is not in one file; install busybox-static"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root"/{bin,proc,sys,dev,tmp,groups,memory}
cp "$(command -v busybox)" "$work/root/bin/busybox"
install -m 755 "$init" "$work/root/init"
(cd "$work/root" && find . | cpio -o -H newc 2>/dev/null) >"$work/initrd"

for version in 1 2; do
    truncate -s 1G "$work/swap" "$work/disk"
    log="$work/console.$version"
    timeout "$((seconds * 3 + 900))" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
        -accel tcg,thread=multi -cpu max -smp 2 -m 512M -serial "file:$log" \
        -drive "file=$work/swap,if=virtio,format=raw,cache=unsafe" \
        -drive "file=$work/disk,if=virtio,format=raw,cache=unsafe" \
        -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet loglevel=5 panic=-1 rdinit=/init pagetide.groups=$version pagetide.seconds=$seconds" ||
        fail "version $version: the machine did not end; its last words: $(tail -n 5 "$log")"
    splats="$(grep -aE 'BUG:|WARNING:|KASAN|possible circular|inconsistent lock|INFO:|Kernel panic|Oops' "$log" || true)"
    [ -z "$splats" ] || fail "version $version: $splats"$'\n'"$(grep -aE -A 30 -m 1 'BUG:|WARNING:|Kernel panic' "$log")"
    grep -aq '^stress: end' "$log" || fail "version $version did not come to its end: $(tail -n 5 "$log")"
    # Each of these was done, or the stress was none. Lockdep that has met something gives up for good.
    said="$(tr -d '\r' <"$log" | sed -n 's/^stress: //p')"
    for what in wmark_min_kbytes wmark_low_kbytes wmark_high_kbytes soft_limit_reclaim global_shrink_priority \
        kswapd_compaction soft_limits shrink_priorities removed blocks objects left_objects askers_removed refused \
        pswpout pgsteal_anon pgsteal_file pgsteal_kswapd slabs_scanned compact_kswapd compact_migrate_scanned debug_locks; do
        grep -qxE "$what [1-9][0-9]*" <<<"$said" || fail "version $version: nothing came of $what: $(echo $said)"
    done
    grep -qx "wrongly_taken 0" <<<"$said" || fail "version $version: $(tr -d '\r' <"$log" | grep -a '^wrong' | head -n 5)"
    echo "groups of version $version, $seconds s, no complaint: $(sed -n 's/^stress: //p' "$log" | grep -v end | tr -d '\r' | paste -sd ' ')"
done
