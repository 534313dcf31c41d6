#!/bin/busybox sh
# The init process of the machine of stress_proposals.sh: sets it up, runs the stress, counts,
# powers off.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
for word in $(cat /proc/cmdline); do
    case $word in
    pagetide.groups=*) version=${word#*=} ;;
    pagetide.seconds=*) seconds=${word#*=} ;;
    esac
done
if [ "$version" = 1 ]; then
    mount -t cgroup -o memory cgroup /groups
    soft=memory.soft_limit_in_bytes limit=memory.limit_in_bytes none=-1
else
    mount -t cgroup2 -o memory_recursiveprot cgroup2 /groups
    echo +memory >/groups/cgroup.subtree_control
    soft=memory.soft_limit limit=memory.max none=max
fi
mount -t tmpfs -o size=1G tmpfs /memory
mkswap /dev/vda >/dev/null
swapon /dev/vda
# The OOM killer should choose a memory hog.
echo -1000 >/proc/self/oom_score_adj
echo always >/sys/kernel/mm/transparent_hugepage/enabled

# Prints a random word.
pick() {
    shift $((RANDOM % $#))
    echo "$1"
}

# Writes a value to a file; $3 is the counter for accepted writes, $4 means that the kernel must
# reject it.
write() {
    if echo "$2" >"$1"; then
        echo >>"/tmp/$3"
        [ -z "$4" ] || echo "$1: $2" >>/tmp/wrongly_taken
    else
        [ -z "$4" ] || echo >>/tmp/refused
    fi
}

# Valid and invalid values for the machine-wide files.
write_switches() {
    cd /proc/sys/vm
    while :; do
        case $((RANDOM % 12)) in
        0 | 1 | 2)
            file=wmark_$(pick min low high)_kbytes
            value=$(pick 0 1 900 2000 4000 9000 20000 60000 400000 99999999 -1 x)
            ;;
        3) file=watermark_scale_factor value=$(pick 1 10 200 1000 3001) ;;
        4) file=min_free_kbytes value=$(pick 0 500 2000 8000) ;;
        5 | 6) file=soft_limit_reclaim value=$(pick 0 1 2 3 -1) ;;
        7 | 8) file=global_shrink_priority value=$(pick 0 1 2 3 -1) ;;
        9 | 10) file=kswapd_compaction value=$(pick 0 1 2) ;;
        11) file=$(pick compact_memory drop_caches watermark_boost_factor) value=$(pick 1 3 15000) ;;
        esac
        case $file=$value in
        *=x | *=-1 | *=99999999 | wmark_*=400000) wrong=yes ;;
        *_factor=3001 | *_reclaim=3 | *_priority=3 | *_compaction=2) wrong=yes ;;
        *) wrong= ;;
        esac
        write $file $value $file $wrong
        set -- $(cat wmark_min_kbytes wmark_low_kbytes wmark_high_kbytes)
        [ $1 -le $2 ] && [ $2 -le $3 ] || echo "marks $*" >>/tmp/wrongly_taken
        cat /proc/zoneinfo >/dev/null
        usleep 20000
    done 2>/dev/null
}

write_groups() {
    while :; do
        for group in /groups/g* /groups/g*/in; do
            [ -d $group ] || continue
            write $group/$soft $(pick 0 1M 8M 100M 1G $none) soft_limits
            write $group/$soft x soft_limits yes
            write $group/memory.global_shrink_priority $(pick 0 1 4 8 12) shrink_priorities
            write $group/memory.global_shrink_priority $(pick 13 -1 x) shrink_priorities yes
            cat $group/memory.stat >/dev/null
        done
        usleep 30000
    done 2>/dev/null
}

# Allocates memory in a temporary group; some groups have a limit, some tasks are killed.
hog() {
    while :; do
        group=/groups/g$1
        mkdir -p $group
        [ "$version" = 1 ] || echo +memory >$group/cgroup.subtree_control
        mkdir -p $group/in
        echo "$(pick 30M 60M 2G 2G)" >$group/$limit
        sh -c "echo \$\$ >$group/in/cgroup.procs; echo 500 >/proc/self/oom_score_adj
            dd if=/dev/zero of=/memory/$1 bs=1M count=$(pick 20 60 120 200)
            head -c $(pick 1 10 40)000000 /dev/zero | tail -n 1 >/dev/null" &
        sleep $(pick 2 4 8)
        kill -9 $! 2>/dev/null
        for process in $(cat $group/in/cgroup.procs); do kill -9 $process; done 2>/dev/null
        wait $! 2>/dev/null
        rm -f /memory/$1
        rmdir $group/in $group 2>/dev/null && echo >>/tmp/removed
    done 2>/dev/null
}

# Creates clean and dirty pages.
read_disk() {
    while :; do
        dd if=/dev/vdb of=/dev/null bs=64k skip=$((RANDOM % 8000)) count=1500
        dd if=/dev/zero of=/dev/vdb bs=64k seek=$((RANDOM % 8000)) count=300
    done 2>/dev/null
}

# Requests blocks of all orders and objects from the kernel; some requests are invalid. A group pays
# for the objects. The group is removed, and the file closed, while the kernel still has some of
# them.
ask_for_memory() {
    group=/groups/k$1
    while :; do
        mkdir -p $group
        sh -c 'echo $PPID' >$group/cgroup.procs
        exec 3>/sys/kernel/debug/allocation_test
        echo "cache 0 test-small 24 plain" >&3
        echo "cache 1 test-kept 192 reclaimable" >&3
        echo "cache 2 test-tiny 8 plain" >&3
        for turn in $(seq $((RANDOM % 800))); do
            slot=$((RANDOM % 200))
            case $((RANDOM % 9)) in
            0 | 1) echo "free-page $slot" >&3 ;;
            2 | 3)
                kind=$(pick kernel kernel-high reclaimable nowait atomic)
                echo "page $slot $((RANDOM % 12)) $kind" >&3 && echo >>/tmp/blocks
                ;;
            4 | 5) echo "object $slot $(pick 0 1 1 1 2) $(pick account account plain)" >&3 && echo >>/tmp/objects ;;
            6) echo "free-object $slot" >&3 ;;
            7) echo "leave-object $slot" >&3 && echo >>/tmp/left_objects ;;
            8)
                line=$(pick x 'page -1 0 kernel' 'page 1 0 x' 'page 1 99 kernel' 'object 1 3 plain' \
                    'object 999999999 0 plain' 'cache 9999 test-a 16 plain' 'cache 3 a 16 plain' \
                    'cache 3 test-a/b 16 plain' 'cache 3 test-large 99999999 plain' \
                    'cache 3 test-small 25 plain' 'object 1' 'leave-object 9999')
                write /proc/self/fd/3 "$line" objects yes
                ;;
            esac
            usleep 3000
        done
        sh -c 'echo $PPID' >/groups/cgroup.procs
        rmdir $group && echo >>/tmp/askers_removed
        exec 3>&-
    done 2>/dev/null
}

write_switches &
write_groups &
for number in 1 2 3; do hog $number & done
read_disk &
ask_for_memory 1 &
ask_for_memory 2 &
sleep "$seconds"

# Reports counters: accepted values, removed groups, allocated memory.
for what in wmark_min_kbytes wmark_low_kbytes wmark_high_kbytes soft_limit_reclaim global_shrink_priority \
    kswapd_compaction soft_limits shrink_priorities removed blocks objects left_objects askers_removed refused \
    wrongly_taken; do
    echo "stress: $what $(wc -l 2>/dev/null </tmp/$what || echo 0)" >/dev/console
done
for counter in pswpout pgsteal_anon pgsteal_file pgsteal_kswapd slabs_scanned compact_kswapd \
    compact_migrate_scanned; do
    echo "stress: $counter $(sed -n "s/^$counter //p" /proc/vmstat)" >/dev/console
done
sort /tmp/wrongly_taken 2>/dev/null | uniq -c | sed 's/^/wrong: /' >/dev/console
# Lockdep disables itself after a report.
echo "stress: debug_locks $(sed -n 's/^ debug_locks: *//p' /proc/lockdep_stats)" >/dev/console
echo "stress: end" >/dev/console
poweroff -f
