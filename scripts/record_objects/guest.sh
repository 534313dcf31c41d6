# What the guest of record.sh does, in its Debian: WORK, UNITS times, under trace.
#
# Marks in the trace (Linux: trace_marker) say where a unit begins and ends; what the group's tasks
# allocate between two marks is the unit's. Slabs are counted (/proc/slabinfo) before and after, each time
# after the free slabs that CPUs keep have been given back.
#
# Invariant: all work is done by this shell's children, hence in its group.
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
    # Twice: opening these files for the first time makes objects itself.
    for pass in 1 2; do
        for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done
    done
    cat /proc/slabinfo >"/run/result/slabinfo.$1"
    mark "counted $1"
}
compile() { gcc -O2 -Wall -c /record/unit.c -o "/out/$1.o"; }
service() { redis-server --port "$((7000 + $1))" --save "" --daemonize no --dir /tmp >/dev/null & }
# A database server on the data directory $1, port $2. Called in the background: the shell becomes it.
serve() {
    exec mariadbd --user=root --datadir="$1" --port="$2" --socket="/tmp/sock.$2" \
        --bind-address=127.0.0.1 --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \
        >"/run/result/mariadbd.$2.log" 2>&1
}
# Waits for the server on port $1. Its file comes after the port listens.
await() { until [ -S "/tmp/sock.$1" ]; do pause 0.2; done; }
stop() { mariadb --socket="/tmp/sock.$1" -e shutdown; }
# sysbench with the script $2 and the server on port $1.
bench() {
    local port="$1" script="$2"
    shift 2
    sysbench "$script" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root \
        --mysql-db=test --tables=4 --table-size=5000 --threads=1 --time=0 "$@"
}
# A server for good, warmed by the first transactions of a connection. Who asks for these is another
# shell, so that nothing of the client's is the unit's.
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

# Tables for sysbench, by a server that stays.
create() {
    serve /var/lib/mysql 3306 &
    await 3306
    mariadb --socket=/tmp/sock.3306 -e "create database test"
    say "database is up"
    bench 3306 oltp_read_write prepare
}

# What makes files and caches warm, so that the first unit is like the others.
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
    # The program's files are warm with the first server, but a server's data are its own.
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
# Bulks have no events of their own: what they take and give is seen at their entry. The name of a cache is
# at byte 96 of struct kmem_cache in this kernel; kfree_rcu() gives up to 500 objects of no named cache.
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
# Who is there already: the trace shows only how others come.
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
# Afterwards everything goes, so that what was kept tells its name when it is freed; and what goes only now
# that the kernel is asked to shrink, nobody used: it was cached.
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
