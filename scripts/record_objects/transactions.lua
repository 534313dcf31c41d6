-- sysbench's oltp_read_write with marks in the trace: connections that stay (`start`), then transactions
-- (`unit`), one after another, all by one client. Between two of them it waits until what the kernel frees late
-- (RCU) is free.
--
-- The count of slabs after the run is asked for while the connections are still open.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int);")
require("oltp_read_write")

sysbench.cmdline.options.connections = { "connections that are opened and stay", 1 }

local marker
local held = {}

local function mark(text)
    marker:write(text, "\n")
    marker:flush()
end

local oltp_thread_init = thread_init
local oltp_event = event
local oltp_thread_done = thread_done

function thread_init()
    marker = io.open("/sys/kernel/tracing/trace_marker", "w")
    local driver = sysbench.sql.driver()
    for i = 1, sysbench.opt.connections do
        mark("begin start")
        held[i] = driver:connect()
        -- The server sets up its side after the client has its answer.
        ffi.C.usleep(20000)
        mark("end start")
        ffi.C.usleep(50000)
    end
    oltp_thread_init()
end

function event()
    mark("begin unit")
    oltp_event()
    mark("end unit")
    ffi.C.usleep(30000)
end

function thread_done()
    os.execute("for pass in 1 2; do for cache in /sys/kernel/slab/*/shrink; do echo 1 >$cache; done; done; "
        .. "cat /proc/slabinfo >/run/result/slabinfo.after")
    mark("counted after")
    oltp_thread_done()
end
