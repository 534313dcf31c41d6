"""The bytes of runs do not depend on the executor, and a lost worker costs only its own runs."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent import futures

import pytest

import pagetide as pt
from pagetide import _pagetide, sweeps, work
from pagetide.crews import Crew, Lost, _Dask
from pagetide.dispatch import dispatch
from pagetide.work import Answer, Part, Unit, perform_unit


def test_a_sweep_is_what_single_runs_are(tiny, alone):
    assert len(alone) == 48 and not alone.failed
    for point in alone.points:
        assert alone.result(point).rows == tiny.run(set=point, seeds=4).rows


def test_threads_and_processes_give_the_same_bytes(tiny, grid, alone, processes):
    with futures.ThreadPoolExecutor(3) as threads:
        assert list(pt.sweep(tiny, grid, seeds=4, executor=threads).rows) == list(alone.rows)
    assert list(pt.sweep(tiny, grid, seeds=4, executor=processes).rows) == list(alone.rows)
    alone_run = tiny.run(seeds=3)
    made = tiny.run(seeds=3, executor=processes)
    assert made.rows == alone_run.rows and str(made) == str(alone_run)


def test_dask_gives_the_same_bytes(tiny, grid, alone, client):
    assert list(pt.sweep(tiny, grid, seeds=4, executor=client).rows) == list(alone.rows)
    assert tiny.run(seeds=3, executor=client).rows == tiny.run(seeds=3).rows
    # The client's interface as a standard executor.
    with client.get_executor() as executor:
        assert list(pt.sweep(tiny, grid, seeds=4, executor=executor).rows) == list(alone.rows)


def test_a_search_has_the_same_answer_whoever_makes_its_runs(tiny, processes, client):
    told = []

    def search(**options):
        return pt.find(
            tiny, "machine.memory", "pswpout == 0", range="52MiB..160MiB/9", seeds=2, **options
        ).json()

    alone = search(progress=lambda done, total: told.append((done, total)))
    assert '"verdict":"threshold"' in alone.replace(" ", "").replace("\n", "")
    assert told[-1][0] == told[-1][1] > 10
    assert search(jobs=1) == search(executor=processes) == search(executor=client) == alone
    with pytest.raises(ValueError):
        search(jobs=0)


def test_a_dask_worker_that_is_killed_costs_its_runs_only(tiny, grid, client):
    before = client.run(os.getpid)
    told = []

    def kill_one(done, total):
        if not told:
            os.kill(next(iter(before.values())), signal.SIGKILL)
        told.append(done)

    slow = tiny.set({"task.service.accesses": 150_000})
    made = pt.sweep(slow, grid, seeds=4, executor=client, progress=kill_one)
    assert told[-1] == 48 and told == sorted(told)
    assert not made.failed and len(made) == 48
    assert list(made.rows) == list(pt.sweep(slow, grid, seeds=4).rows)
    assert set(before.values()) != set(client.run(os.getpid).values())


def test_a_process_of_a_pool_that_is_killed_costs_its_runs_only(tiny, grid, processes):
    told = []
    before = set(multiprocessing.active_children())

    def kill_one(done, total):
        if not told:
            os.kill(next(iter(processes._processes)), signal.SIGKILL)
        told.append(done)

    slow = tiny.set({"task.service.accesses": 150_000})
    made = pt.sweep(slow, grid, seeds=4, executor=processes, progress=kill_one)
    assert told[-1] == 48 and not made.failed
    assert list(made.rows) == list(pt.sweep(slow, grid, seeds=4).rows)
    assert set(multiprocessing.active_children()) <= before, "the pool in its place is gone"


def _poison(doomed):
    """Makes this process die at some seeds."""
    perform = work._perform_part

    def killed(part, *rest):
        if any(seed in doomed for _, seed in part.runs):
            os._exit(1)
        return perform(part, *rest)

    work._perform_part = killed


@pytest.mark.parametrize("doomed", [(3,), (1, 2, 19), (20,)])
def test_runs_that_kill_their_worker_cost_themselves_only(tiny, doomed):
    context = multiprocessing.get_context("fork")
    with futures.ProcessPoolExecutor(2, context, initializer=_poison, initargs=(doomed,)) as pool:
        with pytest.warns(RuntimeWarning, match="lost 3 times with its worker"):
            made = pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=20, variants="before", executor=pool)
    assert tuple(failure.seed for failure in made.failed) == doomed
    assert len(made) == 20 - len(doomed)


def test_runs_that_kill_a_worker_of_dask_cost_themselves_only(tiny, cluster, monkeypatch):
    import distributed

    # Dask's default of four lost workers takes too long.
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        # Units with many runs before the fatal one.
        runs = tuple(("before", seed) for seed in range(1, 41))
        part = Part(0, pickle.dumps(tiny), tiny.digest, runs)
        told = {"rows": 0, "failed": []}
        for answer in dispatch(_Poisoned(client), [part], len(runs)):
            told["rows"] += len(answer.rows)
            told["failed"] += [seed for _, _, seed, _ in answer.failed]
    assert told == {"rows": 39, "failed": [33]}


def _killed_by_33(unit):
    """In the worker."""
    import os

    if any(seed == 33 for part in unit.parts for _, seed in part.runs):
        os._exit(1)
    from pagetide.work import perform_unit

    return perform_unit(unit)


class _Poisoned(_Dask):
    """A crew with workers that seed 33 kills."""

    def give(self, unit):
        return self.client.submit(_killed_by_33, unit, pure=False)


class _Unlucky(Crew):
    """Loses the first units, and answers the others at once."""

    def __init__(self, losses):
        self.losses = losses

    slots = 2

    def give(self, unit):
        return _Handle(unit)

    def wait(self, handles):
        return set(list(handles)[:1])

    def answer(self, handle):
        if self.losses:
            self.losses -= 1
            raise Lost("no power")
        return perform_unit(handle.unit)

    def cancel(self, handles):
        pass


class _Handle:
    def __init__(self, unit):
        self.unit = unit


@pytest.mark.parametrize("losses", [0, 1, 2, 5, 40])
def test_every_run_is_answered_once_whatever_is_lost(tiny, losses):
    runs = tuple(("before", seed) for seed in range(8))
    part = Part(0, pickle.dumps(tiny), tiny.digest, runs)
    answers = list(dispatch(_Unlucky(losses), [part], 8))
    rows = [row for answer in answers for *_, row in answer.rows]
    failed = [it for answer in answers for it in answer.failed]
    assert len(rows) + len(failed) == 8 and len(set(rows)) == len(rows)
    if losses < 3:
        assert not failed
    assert all("lost 3 times with its worker (no power)" in why for *_, why in failed)


def test_a_run_that_fails_costs_itself_only(tiny):
    class Failing(_Unlucky):
        def answer(self, handle):
            answer = perform_unit(handle.unit)
            failed = [row for row in answer.rows if row[2] == 3]
            answer.rows = [row for row in answer.rows if row not in failed]
            answer.failed = [(at, "before", 3, "it is cursed") for at, *_ in failed]
            return answer

    runs = tuple(("before", seed) for seed in range(1, 9))
    part = Part(0, pickle.dumps(tiny), tiny.digest, runs)
    answers = list(dispatch(Failing(0), [part], 8))
    assert sum(len(answer.rows) for answer in answers) == 7
    assert [it for answer in answers for it in answer.failed] == [(0, "before", 3, "it is cursed")]


def test_executors_that_cannot_be_used_are_refused(tiny, grid, cluster):
    import distributed

    client = distributed.Client(cluster)
    client.close()
    with pytest.raises(pt.ExecutorError, match="the Dask client is closed"):
        pt.sweep(tiny, grid, executor=client)
    pool = futures.ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(pt.ExecutorError, match="accepts no work"):
        pt.sweep(tiny, grid, executor=pool)
    for wrong in (3, "dask", object(), futures.ThreadPoolExecutor):
        with pytest.raises(TypeError, match="executor= accepts"):
            pt.sweep(tiny, grid, executor=wrong)


def test_a_client_that_is_closed_on_the_way_is_said_and_the_store_has_what_was_made(tiny, grid, cluster, tmp_path):
    import distributed

    client = distributed.Client(cluster)
    told = []

    def close(done, total):
        told.append(done)
        client.close()

    with pytest.raises(pt.ExecutorError, match="the Dask client is closed"):
        pt.sweep(tiny, grid, seeds=4, executor=client, store=tmp_path, progress=close)
    begun = []
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path, progress=lambda done, _: begun.append(done))
    assert len(made) == 48 and begun[0] >= told[-1] > 0


def _pretend_to_be_old():
    _pagetide.__version__ = "0.0.9"


def test_a_worker_of_another_version_is_refused(tiny, grid):
    with futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_pretend_to_be_old) as old:
        with pytest.raises(pt.ExecutorError, match=r"it has pagetide 0\.0\.9, not"):
            pt.sweep(tiny, grid, executor=old)


def test_a_worker_says_so_before_it_reads_the_scenario():
    part = Part(0, b"no pickle", "", (("before", 1),))
    assert "not 0.0.9" in (perform_unit(Unit("0.0.9", (part,))).refused or "")


def test_units_grow_with_short_runs(tiny):
    sizes = []

    class Watched(_Unlucky):
        def answer(self, handle):
            sizes.append(handle.unit.count)
            return Answer(rows=[(0, "before", 1, b"")] * handle.unit.count, seconds=0.001 * handle.unit.count)

    part = Part(0, b"", "", tuple(("before", seed) for seed in range(2000)))
    list(dispatch(Watched(0), [part], 2000))
    assert sum(sizes) == 2000 and sizes[0] == 1 and max(sizes) == 64 and sizes[-1] < 8


def test_an_interrupt_keeps_what_was_made_and_leaves_no_thread(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys, threading
        sys.path.insert(0, sys.argv[1])
        from conftest import TINY
        import pagetide as pt

        def stop(done, total):
            if done >= 20:
                os.kill(os.getpid(), signal.SIGINT)

        before = threading.active_count()
        try:
            pt.sweep(pt.load(TINY), {"vm.swappiness": range(40)}, seeds=4, progress=stop)
        except pt.Interrupted as interrupted:
            made = interrupted.result
            assert 20 <= len(made) < 320, len(made)
            assert interrupted.missing == 320 - len(made)
            assert len(list(made.select("batch.walltime"))) == len(made)
            assert threading.active_count() == before
            sys.exit(7)
        """
    )
    here = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", script, here], capture_output=True, text=True, timeout=120)
    assert done.returncode == 7, done.stderr


def test_an_interrupt_of_a_run_by_an_executor_keeps_what_was_made(tiny):
    def stop(done, total):
        if done >= 4:
            raise KeyboardInterrupt

    with futures.ThreadPoolExecutor(2) as pool:
        with pytest.raises(pt.Interrupted) as told:
            tiny.run(seeds=20, executor=pool, progress=stop)
        made = told.value.result
        assert 4 <= len(made) < 40 and told.value.missing == 40 - len(made)
        whole = set(tiny.run(seeds=20).rows)
        assert set(made.rows) <= whole
        with pytest.raises(pt.Interrupted) as told:
            tiny.run(seeds=1, executor=_Interrupting())
        assert len(told.value.result) == 0 and told.value.missing == 2


class _Interrupting(futures.Executor):
    """Raises ^C before any unit ends."""

    def submit(self, perform, unit):
        raise KeyboardInterrupt


def test_threads_and_an_executor_are_not_both_taken(tiny):
    with futures.ThreadPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match="jobs= is the number of threads of this process"):
            pt.find(tiny, "vm.swappiness", "pswpout == 0", executor=pool, jobs=1)
        with pytest.raises(TypeError, match="jobs= is the number of threads of this process"):
            sweeps.run(tiny, [1], executor=pool, jobs=1)


def test_an_interrupt_ends_runs_under_way(tmp_path):
    script = textwrap.dedent(
        """
        import signal, sys, threading, time
        sys.path.insert(0, sys.argv[1])
        from conftest import TINY
        import pagetide as pt

        long = pt.load(TINY).set({"task.service.accesses": 1_000_000_000})
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for ask in (
            lambda: long.run(seeds=2),
            lambda: pt.sweep(long, {"vm.swappiness": [1, 2]}),
            lambda: pt.find(long, "vm.swappiness", "pswpout == 0"),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            began = time.monotonic()
            try:
                ask()
            except pt.Interrupted as interrupted:
                assert interrupted.missing > 0
                assert time.monotonic() - began < 20 and threading.active_count() == 1
                print("interrupted")
        """
    )
    here = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", script, here], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n" * 3, done.stderr


def test_progress_is_told_and_refused(tiny, grid, capsys):
    told = []
    pt.sweep(tiny, grid, seeds=1, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (12, 12)
    pt.sweep(tiny, grid, seeds=1, progress=True)
    assert "12" in capsys.readouterr().err
    with pytest.raises(TypeError, match="progress must be"):
        pt.sweep(tiny, grid, progress=3)
    with pytest.raises(ZeroDivisionError):
        pt.sweep(tiny, grid, progress=lambda done, total: 1 // 0)
    assert not [it for it in threading.enumerate() if it.name.startswith("pagetide")]


def test_errors_come_through_a_pickle():
    for error in (pt.ExecutorError("a", "b"), pt.StoreError("c")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)


@pytest.mark.ray
def test_ray_gives_the_same_bytes(tiny, grid, alone):
    ray = pytest.importorskip("ray")
    with pytest.raises(pt.ExecutorError, match="(?s)call ray.init"):
        pt.sweep(tiny, grid, executor=ray)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert list(pt.sweep(tiny, grid, seeds=4, executor=ray).rows) == list(alone.rows)
        assert tiny.run(seeds=3, executor=ray).rows == tiny.run(seeds=3).rows
        slow = tiny.set({"task.service.accesses": 150_000})
        told = []

        def kill_one(done, total):
            if not told:
                worker = ray.get(ray.remote(lambda: os.getpid()).remote())
                os.kill(worker, signal.SIGKILL)
            told.append(done)

        made = pt.sweep(slow, grid, seeds=4, executor=ray, progress=kill_one)
        assert told[-1] == 48 and not made.failed
        assert list(made.rows) == list(pt.sweep(slow, grid, seeds=4).rows)
    finally:
        ray.shutdown()
