#!/usr/bin/env python3
"""Records histories of the real systemd-oomd: `record.py PROGRAM HISTORY...`, as root.

Each history (crates/pagetide-watcher/tests/histories/systemd-oomd) is played to the program, and
its lines `expect` are written again from its kills. PROGRAM is the path of systemd-oomd; Debian's
package of that name has it. The program runs in a mount namespace of its own, with files in place
of /proc/meminfo and /sys/fs/cgroup, and with a clock that moves when it waits (clock.c). It gets
its units over the socket of the service manager, which this script plays. It sends no signal.
`--check` compares instead of writing.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).parent
UNITS = {"Ki": 10, "Mi": 20, "Gi": 30}
CGROUPS = "/sys/fs/cgroup"


def amount(text):
    for unit, shift in UNITS.items():
        if text.endswith(unit):
            return int(float(text[: -len(unit)]) * (1 << shift))
    return int(text)


class History:
    """A file of lines of words."""

    def __init__(self, path):
        self.lines = [line.split() for line in path.read_text().splitlines() if line and line[0] != "#"]
        self.groups = {}
        for words in self.of("group"):
            options = dict(word.split("=") for word in words[1:] if "=" in word)
            parent = self.groups[options["parent"]] if "parent" in options else CGROUPS
            self.groups[words[0]] = f"{parent}/g{words[0]}"
        self.end = int(next(self.of("end"))[0])

    def is_below(self, group, other):
        return self.groups[group].startswith(self.groups[other] + "/")

    def of(self, kind):
        return (words[1:] for words in self.lines if words[0] == kind)

    def option(self, name, default):
        words = next(self.of("options"))
        return next((word.split("=")[1] for word in words if word.startswith(name + "=")), default)

    def config(self):
        words = [word for words in self.of("unit") for word in words]
        durations = {word.split("=")[1] for word in words if word.startswith("duration=")}
        assert len(durations) <= 1, "before 257 all units have one duration"
        used = int(self.option("swap_used_limit", 9000))
        return (
            f"[OOM]\nSwapUsedLimit={used // 100}.{used % 100:02}%\n"
            f"DefaultMemoryPressureDurationSec={''.join(durations) or 30}s\n"
        )

    def managed(self):
        """The units, in the words of the service manager."""
        found = []
        for number, *words in self.of("unit"):
            path = self.groups[number].removeprefix(CGROUPS)
            if "swap" in words:
                found.append({"mode": "kill", "path": path, "property": "ManagedOOMSwap"})
            for limit in (int(word[6:]) for word in words if word.startswith("limit=")):
                scale = -(-limit * 0xFFFFFFFF // 10000)
                pressure = {"mode": "kill", "path": path, "property": "ManagedOOMMemoryPressure"}
                found.append(pressure | {"limit": scale})
        return found

    def changes(self):
        """Lines for clock.c: the time, a file, its text."""
        found = []
        for ms, *words in self.of("at"):
            values = dict(word.split("=") for word in words)
            if "available" in values:
                kb = {key: amount(text) >> 10 for key, text in values.items()}
                text = (
                    f"MemTotal: {kb['total']} kB|MemFree: {kb['available']} kB|MemAvailable: {kb['available']} kB|"
                    f"SwapTotal: {kb['swap']} kB|SwapFree: {kb['swap_free']} kB|"
                )
                found.append((ms, "/proc/meminfo", text))
                continue
            group = self.groups[values.pop("group")]
            for key, text in values.items():
                value = amount(text)
                if key == "full":
                    line = f"avg10={value // 100}.{value % 100:02} avg60=0.00 avg300=0.00 total=0|"
                    found.append((ms, f"{group}/memory.pressure", f"some {line}full {line}"))
                elif key == "pgscan":
                    found.append((ms, f"{group}/memory.stat", f"anon 0|pgscan {value}|pgsteal 0|"))
                else:
                    name = {"current": "memory.current", "swapped": "memory.swap.current"}[key]
                    found.append((ms, f"{group}/{name}", f"{value}|"))
        return "".join(f"{ms} {path} {text}\n" for ms, path, text in found)

    def make_tree(self):
        """The groups' files, in the namespace."""
        zero = "avg10=0.00 avg60=0.00 avg300=0.00 total=0"
        files = {
            "cgroup.controllers": "memory pids\n",
            "cgroup.subtree_control": "memory pids\n",
            "cgroup.procs": "",
            "memory.pressure": f"some {zero}\nfull {zero}\n",
            "memory.current": "0\n",
            "memory.min": "0\n",
            "memory.low": "0\n",
            "memory.swap.current": "0\n",
            "memory.stat": "anon 0\npgscan 0\npgsteal 0\n",
            "memory.oom.group": "0\n",
        }
        options = {words[0]: words[1:] for words in self.of("group")}
        for number, path in [("", CGROUPS), *self.groups.items()]:
            os.makedirs(path, exist_ok=True)
            words = options.get(number, [])
            for name, text in files.items():
                pathlib.Path(path, name).write_text(text)
            if "oom_group" in words:
                pathlib.Path(path, "memory.oom.group").write_text("1\n")
            for preference in ("avoid", "omit"):
                if f"preference={preference}" in words:
                    os.setxattr(path, f"user.oomd_{preference}", b"1")
            if number:
                pid = 100_000 + int(number)
                pathlib.Path(path, "cgroup.procs").write_text(f"{pid}\n")
                pathlib.Path(f"/run/pids/{pid}").write_text(path)


def play_manager(history):
    """Answers the program's subscription on the socket of the service manager."""
    server = socket.socket(socket.AF_UNIX)
    server.bind("/run/systemd/io.system.ManagedOOM")
    server.listen(1)

    def answer():
        peer, _ = server.accept()
        while peer.recv(65536):
            reply = {"parameters": {"cgroups": history.managed()}, "continues": True}
            peer.sendall(json.dumps(reply).encode() + b"\0")

    threading.Thread(target=answer, daemon=True).start()


def in_namespace(program, path, shim, log):
    """Runs the program; this process is in its own mount namespace."""
    history = History(pathlib.Path(path))

    def mount(*words):
        subprocess.run(["mount", *words], check=True)

    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "tmpfs", "/run")
    for directory in ("systemd/oom", "pids"):
        os.makedirs(f"/run/{directory}")
    files = pathlib.Path("/run/files")
    os.makedirs(files / "cgroup")
    # Without figures in the history, memory and swap are free.
    names = ("MemTotal", "MemFree", "MemAvailable", "SwapTotal", "SwapFree")
    (files / "meminfo").write_text("".join(f"{name}: 1048576 kB\n" for name in names))
    # The halves are equal, so sd-event shifts its grid by nothing.
    (files / "boot_id").write_text("01234567-89ab-4def-0123-456789ab4def\n")
    (files / "cgroup_of_1").write_text("0::/\n")
    changes = files / "changes"
    changes.write_text(history.changes())
    mount("--bind", str(files / "cgroup"), CGROUPS)
    history.make_tree()
    mount("--bind", str(files / "meminfo"), "/proc/meminfo")
    mount("--bind", str(files / "boot_id"), "/proc/sys/kernel/random/boot_id")
    mount("--bind", str(files / "cgroup_of_1"), "/proc/1/cgroup")
    os.makedirs("/etc/systemd", exist_ok=True)
    (files / "etc").mkdir()
    (files / "etc/oomd.conf").write_text(history.config())
    mount("--bind", str(files / "etc"), "/etc/systemd")
    play_manager(history)
    environment = os.environ | {
        "LD_PRELOAD": shim,
        "OOMD_CHANGES": str(changes),
        "OOMD_LOG": log,
        "OOMD_END": str(history.end),
        "SYSTEMD_LOG_TARGET": "console",
    }
    subprocess.run([program], env=environment, check=True, stdin=subprocess.DEVNULL)


def record(program, path, shim):
    """The lines `expect` of a history. Processes of one group, or of groups below it, die together."""
    history = History(path)
    with tempfile.TemporaryDirectory() as directory:
        log = f"{directory}/log"
        pathlib.Path(log).touch()
        command = ["unshare", "--mount", sys.executable, __file__, "--inside", program, str(path), shim, log]
        subprocess.run(command, check=True)
        lines = [line.split() for line in pathlib.Path(log).read_text().splitlines()]
    by_time = {}
    for ms, pid, _ in lines:
        by_time.setdefault(int(ms), set()).add(str(int(pid) - 100_000))
    found = []
    for ms, killed in by_time.items():
        below = {group for group in killed for other in killed if history.is_below(group, other)}
        found += [f"expect {ms} {group}" for group in sorted(killed - below, key=int)]
    return found


def main():
    if sys.argv[1:2] == ["--inside"]:
        return in_namespace(*sys.argv[2:])
    checks = "--check" in sys.argv
    program, *paths = [word for word in sys.argv[1:] if word != "--check"]
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        shim = f"{directory}/clock.so"
        flags = ["-O1", "-Wall", "-Wextra", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, "-o", shim, HERE / "clock.c", "-ldl"], check=True)
        for path in map(pathlib.Path, paths):
            expect = record(os.path.abspath(program), path.resolve(), shim)
            lines = path.read_text().splitlines()
            kept = [line for line in lines if not line.startswith("expect ")]
            before = [line for line in lines if line.startswith("expect ")]
            wrong += before != expect
            print(path.name, "as before" if before == expect else f"differs: {before} {expect}")
            if not checks:
                path.write_text("\n".join(kept + expect) + "\n")
    return wrong if checks else 0


if __name__ == "__main__":
    sys.exit(main())
