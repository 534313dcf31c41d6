# The guest's part of record.sh, in Debian: performs WORK, UNITS times, under trace.
#
# Marks in the trace (Linux: trace_marker) show where a unit begins and ends; a unit's allocations
# are those of the group's tasks between two marks. Slabs are counted (/proc/slabinfo) before and
# after, each time after the CPUs' free slabs were flushed.
#
# Invariant: all work is done by children of this shell, hence in its group.
work="$1"
units="$2"
export PATH=/usr/sbin:/usr/bin HOME=/ LANG=C
busybox mount -t proc none /proc
busybox mount -t sysfs none /sys
busybox mount -t tracefs none /sys/kernel/tracing
busybox mount -t cgroup2 none /sys/fs/cgroup
busybox mount -t tmpfs -o size=3G none /run
busybox mount -t tmpfs none /tmp
busybox ip link set lo up
trace=/sys/kernel/tracing
mkdir -p /run/result /dev/shm
mkdir /sys/fs/cgroup/recorded
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo $$ >/sys/fs/cgroup/recorded/cgroup.procs
mkfifo /tmp/never
exec 3>$trace/trace_marker 4<>/tmp/never

say() { echo "guest: $1 ($(busybox cut -d' ' -f1 /proc/uptime) s)"; }
# Waits without a child.
pause() { read -t "$1" -r nothing <&4; }
mark() { echo "$1" >&3; }
count() {
    busybox sync
    pause 1
    # Twice: opening these files for the first time creates objects itself.
    for pass in 1 2; do
        for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done
    done
    cat /proc/slabinfo >"/run/result/slabinfo.$1"
    mark "counted $1"
}
compile() { gcc -O2 -Wall -c /record/unit.c -o "/out/$1.o"; }
service() { redis-server --port "$((7000 + $1))" --save "" --daemonize no --dir /tmp >/dev/null & }
# A database server with data directory $1 and port $2. Call it in the background: the shell becomes
# the server.
serve() {
    exec mariadbd --user=root --datadir="$1" --port="$2" --socket="/tmp/sock.$2" \
        --bind-address=127.0.0.1 --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \
        >"/run/result/mariadbd.$2.log" 2>&1
}
# Waits for the server on port $1. Its file is created after the port listens.
await() { until [ -S "/tmp/sock.$1" ]; do pause 0.2; done; }
stop() { mariadb --socket="/tmp/sock.$1" -e shutdown; }
# sysbench with the script $2 and the server on port $1.
bench() {
    local port="$1" script="$2"
    shift 2
    sysbench "$script" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root \
        --mysql-db=test --tables=4 --table-size=5000 --threads=1 --time=0 "$@"
}
# Starts a permanent server, warmed up by the first transactions of a connection. Another shell
# sends these, so that the client's objects do not count for the unit.
server() {
    serve "/data/$1" "$((3306 + $1))" &
    await "$((3306 + $1))"
    echo "$((3306 + $1))" >&5
    read -r nothing <&6
    pause 4
}
client() {
    while read -r port <&5; do
        bench "$port" oltp_read_write --events=20 run >>/run/result/sysbench.log 2>&1
        echo warm >&6
    done
}

# Creates tables for sysbench, with a permanent server.
create() {
    serve /var/lib/mysql 3306 &
    await 3306
    mariadb --socket=/tmp/sock.3306 -e "create database test"
    say "database is up"
    bench 3306 oltp_read_write prepare
}

# Warms up files and caches, so that the first unit is like the others.
case "$work" in
compile)
    compile a
    compile b
    ;;
database)
    create
    bench 3306 /record/transactions.lua --connections=1 --events=20 run >/dev/null
    ;;
database-server)
    create
    stop 3306
    wait
    i=0
    while [ $i -le "$units" ]; do
        busybox mkdir -p /data
        busybox cp -a /var/lib/mysql "/data/$i"
        i=$((i + 1))
    done
    busybox sync
    # The program's files are cached after the first server, but each server has its own data.
    echo 3 >/proc/sys/vm/drop_caches
    mkfifo /tmp/ask /tmp/answer
    exec 5<>/tmp/ask 6<>/tmp/answer
    client &
    server 0
    ;;
service)
    service 0
    pause 5
    ;;
esac
say "warm"

echo 0 >$trace/tracing_on
echo >$trace/trace
echo 1200000 >$trace/buffer_size_kb
for event in kmem/kmem_cache_alloc kmem/kmem_cache_free kmem/kmalloc kmem/kfree \
    sched/sched_process_fork; do
    echo 1 >$trace/events/$event/enable
done
# Bulk calls have no events: probes at their entry show what they allocate and free. The name of a
# cache is at byte 96 of struct kmem_cache in this kernel; kfree_rcu() frees up to 500 objects
# without a cache name.
name='name=+0(+96(%di)):string'
echo "p:bulk_alloc kmem_cache_alloc_bulk nr=%dx $name" >>$trace/kprobe_events
echo "p:bulk_free kmem_cache_free_bulk nr=%si $name p=+0(%dx):x64[16]" >>$trace/kprobe_events
many=
for part in 0 1 2; do many="$many p$part=+$((part * 512))(%dx):x64[64]"; done
echo "p:bulk_free_many kmem_cache_free_bulk nr=%si $name$many" >>$trace/kprobe_events
echo 'nr <= 16' >$trace/events/kprobes/bulk_free/filter
echo 'nr > 16' >$trace/events/kprobes/bulk_free_many/filter
echo 1 >$trace/events/kprobes/enable
cat $trace/events/kmem/*/format >/run/result/formats
echo 1 >$trace/tracing_on
# List existing tasks: the trace only shows new ones.
while read -r task; do mark "member $task"; done </sys/fs/cgroup/recorded/cgroup.threads
mark "driver $$"
count before

i=1
case "$work" in
compile)
    while [ $i -le "$units" ]; do
        mark "begin unit"
        compile $i
        mark "end unit"
        pause 0.2
        i=$((i + 1))
    done
    ;;
database)
    bench 3306 /record/transactions.lua --connections=32 --events="$units" run >/run/result/sysbench.log
    ;;
database-server)
    while [ $i -le "$units" ]; do
        mark "begin unit"
        server $i
        mark "end unit"
        pause 0.2
        i=$((i + 1))
    done
    ;;
service)
    while [ $i -le "$units" ]; do
        mark "begin unit"
        service $i
        pause 4
        mark "end unit"
        pause 0.2
        i=$((i + 1))
    done
    ;;
esac
say "done"
if [ "$work" = database ]; then
    pause 1
else
    count after
fi
# At the end everything is freed, so that the free event shows the name of each kept object. Objects
# freed only by shrinking the kernel's caches were unused: they count as cached.
case "$work" in
database) stop 3306 ;;
database-server) busybox killall mariadbd ;;
service) busybox killall redis-server ;;
esac
pause 3
busybox sync
mark "shrink"
echo 3 >/proc/sys/vm/drop_caches
echo 3 >/proc/sys/vm/drop_caches
pause 1
mark "shrunk"
busybox rm -rf /out
busybox sync
pause 1
echo 0 >$trace/tracing_on
echo 0 >$trace/events/enable
cat /proc/slabinfo >/run/result/slabinfo.end
cat $trace/per_cpu/cpu0/stats >/run/result/stats
for cache in /sys/kernel/slab/*; do
    read -r reclaimable <"$cache/reclaim_account"
    echo "${cache##*/} $reclaimable"
done >/run/result/reclaimable
say "reads the trace"
cat $trace/trace >/run/result/trace
say "saves"
tar -c -f /dev/vdb -C /run/result .
busybox sync
say "over"
