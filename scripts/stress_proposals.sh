#!/usr/bin/env bash
# Stress test for the patches of kernels/linux-6.1. Boots a kernel that checks itself (KASAN,
# lockdep) with each version of control groups. Shell scripts write random valid and invalid values
# to all files of the patches, under memory pressure, while groups are created and removed. Fails if
# the kernel reports a problem, or if the test did not get far enough.
#
#   scripts/stress_proposals.sh              five minutes for each version
#   scripts/stress_proposals.sh SECONDS      another duration; emulation and the checks slow the
#                                            test down many times
#
# Builds that kernel if it is missing. Needs qemu-system-x86_64, cpio, and a static busybox (package
# busybox-static).
set -euo pipefail

seconds="${1:-300}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/pagetide/kernel"
init="$(dirname "$0")/stress_proposals_init.sh"

fail() {
    echo "stress_proposals.sh: $1" >&2
    exit 1
}

[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || fail "$seconds is not a number of seconds"
# Does nothing if the kernel exists and has these patches.
"$(dirname "$0")/proposals.sh" --checked
kernel="$(printf '%s\n' "$cache"/proposals-checked/boot/vmlinuz-*)"
[ -f "$kernel" ] || fail "the kernel that checks itself is missing"
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
    parameters="pagetide.groups=$version pagetide.seconds=$seconds"
    timeout "$((seconds * 3 + 900))" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
        -accel tcg,thread=multi -cpu max -smp 2 -m 512M -serial "file:$log" \
        -drive "file=$work/swap,if=virtio,format=raw,cache=unsafe" \
        -drive "file=$work/disk,if=virtio,format=raw,cache=unsafe" \
        -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet loglevel=5 panic=-1 rdinit=/init $parameters" ||
        fail "version $version: the machine did not end; its last words: $(tail -n 5 "$log")"
    complaint='BUG:|WARNING:|KASAN|possible circular|inconsistent lock|INFO:|Kernel panic|Oops'
    splats="$(grep -aE "$complaint" "$log" || true)"
    [ -z "$splats" ] ||
        fail "version $version: $splats"$'\n'"$(grep -aE -A 30 -m 1 'BUG:|WARNING:|Kernel panic' "$log")"
    grep -aq '^stress: end' "$log" || fail "version $version did not come to its end: $(tail -n 5 "$log")"
    # Each of these must have happened, or the test was no stress. Lockdep disables itself after a
    # report.
    said="$(tr -d '\r' <"$log" | sed -n 's/^stress: //p')"
    for what in wmark_min_kbytes wmark_low_kbytes wmark_high_kbytes soft_limit_reclaim global_shrink_priority \
        kswapd_compaction soft_limits shrink_priorities removed blocks objects left_objects askers_removed refused \
        pswpout pgsteal_anon pgsteal_file pgsteal_kswapd slabs_scanned compact_kswapd compact_migrate_scanned \
        debug_locks; do
        grep -qxE "$what [1-9][0-9]*" <<<"$said" || fail "version $version: $what never happened: $(echo $said)"
    done
    grep -qx "wrongly_taken 0" <<<"$said" ||
        fail "version $version: $(tr -d '\r' <"$log" | grep -a '^wrong' | head -n 5)"
    echo "groups of version $version, $seconds s, no complaint: $(grep -v end <<<"$said" | paste -sd ' ')"
done
