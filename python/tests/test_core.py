"""The memory manager alone, and a stepped run."""

import threading
import time
from array import array

import pytest

import pagetide as pt
from pagetide import core


def pages(numbers: range) -> "array[int]":
    return array("Q", numbers)


def test_a_group_stays_below_its_limit() -> None:
    machine = core.Machine.boot("64MiB", swap="128MiB", sysctl={"vm.swappiness": 80})
    machine.create_group("web", controls={"memory.max": "24M"})
    heap = machine.create_task("web").map("32MiB")
    hits, minor, major = heap.touch(pages(range(len(heap))), write=True)
    assert (hits, minor, major) == (0, 8192, 0)
    assert heap.resident < 8192 and machine.moved["swap_outs"] > 2000
    assert int(machine.read("memory.current", group="web")) <= 24 << 20
    assert heap.touch(0) == (0, 0, 1) and heap.touch(0) == (1, 0, 0)
    machine.write("memory.high", "8M", group="web")
    assert int(machine.read("memory.current", group="web")) <= 8 << 20
    assert machine.read("vm.swappiness") == "80\n"
    assert machine.vmstat["pswpout"] == machine.moved["swap_outs"]
    assert "MemTotal" in machine.read("/proc/meminfo")
    machine.step(1_000_000_000)
    assert machine.now >= 1_000_000_000
    machine.audit()


def test_files_are_shared() -> None:
    machine = core.Machine.boot(32 << 20)
    file = machine.create_file("4MiB")
    one, other = (machine.create_task().map("4MiB", file=file) for _ in range(2))
    one.touch(pages(range(1024)))
    read = machine.moved["file_reads"]
    other.touch(pages(range(1024)))
    assert machine.moved["file_reads"] == read >= 1024
    machine.audit()


def test_memory_may_run_out() -> None:
    machine = core.Machine.boot("16MiB")
    task = machine.create_task()
    heap = task.map("64MiB")
    _, minor, _ = heap.touch(pages(range(len(heap))), write=True)
    assert task.is_over and 0 < minor < len(heap) and heap.touch(0) == (0, 0, 0)
    with pytest.raises(pt.InputError):
        task.map("1MiB")
    machine.audit()


@pytest.mark.parametrize("kind", ["Q", "q", "I", "i", "L"])
def test_arrays_of_whole_numbers(kind: str) -> None:
    heap = core.Machine.boot("16MiB").create_task().map("1MiB")
    assert heap.touch(array(kind, [0, 1, 1])) == (1, 2, 0)
    assert heap.touch(memoryview(array(kind, []))) == (0, 0, 0)


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (256, IndexError),
        (-1, IndexError),
        (2**70, IndexError),
        (array("q", [-1]), IndexError),
        (array("i", [-1]), IndexError),
        (array("d", [1.0]), TypeError),
        (array("H", [1]), TypeError),
        ([1], TypeError),
        ("1", TypeError),
        (b"12345678", TypeError),
        (memoryview(array("Q", range(4)))[::2], (TypeError, BufferError)),
    ],
)
def test_odd_touches(what: object, error: type[Exception]) -> None:
    heap = core.Machine.boot("16MiB").create_task().map("1MiB")
    with pytest.raises(error):
        heap.touch(what)


def test_what_has_no_room_is_refused() -> None:
    machine = core.Machine.boot("16MiB")
    task = machine.create_task()
    for wrong in (lambda: task.map(2**63), lambda: machine.create_file(2**63), lambda: task.map("200TiB"),
                  lambda: core.Machine.boot(2**41)):  # fmt: skip
        with pytest.raises(pt.InputError):
            wrong()
    for wrong in (lambda: task.map(-1), lambda: task.map(2**70), lambda: core.Machine.boot("16MiB", cpus=-1)):
        with pytest.raises((OverflowError, pt.InputError)):
            wrong()
    assert len(task.map(0)) == 0


def test_refusals_have_the_numbers_of_the_kernel() -> None:
    machine = core.Machine.boot("16MiB")
    with pytest.raises(OSError, match="out of range") as told:
        machine.write("vm.swappiness", 201)
    assert told.value.errno == 22
    with pytest.raises(FileNotFoundError):
        machine.read("vm.nothing")
    for wrong in (lambda: core.Machine.boot("1KiB"), lambda: core.Machine.boot("16MiB", cpus=0),
                  lambda: machine.create_task("x"), lambda: machine.create_group("")):  # fmt: skip
        with pytest.raises(pt.InputError):
            wrong()


def test_a_million_touches_a_second() -> None:
    heap = core.Machine.boot("64MiB").create_task().map("16MiB")
    many = array("Q", [page % 4096 for page in range(1_000_000)])
    heap.touch(many)
    took = []
    for _ in range(3):
        # CPU time of this process only.
        began = time.process_time()
        assert heap.touch(many) == (1_000_000, 0, 0)
        took.append(time.process_time() - began)
    assert min(took) < 1


def test_threads_share_a_machine() -> None:
    machine = core.Machine.boot("32MiB", swap="64MiB")
    heaps = [machine.create_task().map("24MiB") for _ in range(2)]
    touch = [
        threading.Thread(target=heap.touch, args=(pages(range(6144)),), kwargs={"write": True})
        for heap in heaps
    ]
    for thread in touch:
        thread.start()
    for thread in touch:
        thread.join()
    machine.audit()


def test_stepping_changes_nothing(small: pt.Scenario) -> None:
    whole = small.run(seeds=1, variants="unprotected").metrics.to_dicts()
    run = core.Simulation(small, "unprotected")
    steps = 0
    while not run.run_until(steps * 0.003):
        steps += 1
    assert steps > 10 and run.is_over
    assert run.metrics().to_dicts() == whole
    with pytest.raises(ValueError):
        run.now


def test_an_operator_writes_while_it_runs(small: pt.Scenario) -> None:
    run = core.Simulation(small, seed=1)
    assert not run.run_until(0.002)
    assert run.now == pytest.approx(0.002)

    def usage() -> int:
        return int(run.read("memory.current", group="web"))

    while usage() < 16 << 20:
        assert not run.run_until(run.now + 0.001)
    run.write("memory.high", "8M", group="web")
    assert usage() < 12 << 20
    run.write("vm.swappiness", 10)
    assert run.read("vm.swappiness") == "10\n" and run.vmstat["pswpout"] > 0
    assert "nr_free_pages" in run.read("/proc/vmstat")
    with pytest.raises(OSError):
        run.write("vm.swappiness", "many")
    with pytest.raises(pt.InputError):
        run.write("memory.high", 1, group="nobody")
    assert run.run_until(1000)


def test_threads_that_make_mistakes_do_not_stop_each_other() -> None:

    machine = core.Machine.boot("16MiB")
    heap = machine.create_task().map("8MiB")
    made = []

    def ask(one):
        for _ in range(300):
            try:
                one()
            except pt.InputError:
                made.append(1)

    asks = [lambda: machine.read("memory.stat", group="nope"), lambda: machine.now, lambda: machine.create_task("no")]
    asks += [lambda: heap.touch(3), lambda: heap.resident]
    threads = [threading.Thread(target=ask, args=(one,), daemon=True) for one in asks + asks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(made) == 4 * 300


def test_a_page_beyond_a_file_is_refused_and_nothing_breaks() -> None:
    machine = core.Machine.boot("16MiB")
    task = machine.create_task()
    with pytest.raises(pt.InputError, match="the file has 2 pages"):
        task.map("1MiB", file=machine.create_file(8192))
    with pytest.raises(pt.InputError):
        task.map("4KiB", file=machine.create_file(0))
    with pytest.raises(pt.InputError):
        task.map("4KiB", file=77)
    machine.audit()


def test_an_id_that_is_used_again_is_not_the_old_task() -> None:
    machine = core.Machine.boot("16MiB")
    old = machine.create_task()
    pages = old.map("4MiB")
    assert pages.touch(0, write=True) == (0, 1, 0)
    old.exit()
    new = machine.create_task()
    fresh = new.map("4MiB")
    assert old.is_over and not new.is_over
    assert pages.touch(0) == (0, 0, 0) and pages.resident == 0 and fresh.resident == 0
    old.exit()
    assert not new.is_over and fresh.touch(0, write=True) == (0, 1, 0)
    with pytest.raises(pt.InputError):
        old.map("4KiB")


def test_a_group_whose_files_refuse_is_not_there() -> None:
    machine = core.Machine.boot("16MiB")
    for controls in ({"memory.mx": "1"}, {"memory.max": "lots"}):
        with pytest.raises(OSError):
            machine.create_group("web", controls=controls)
    machine.create_group("web", controls={"memory.max": "8M"})
