"""What processes cost: a child from spawn to ``ready``, an idle child, a host with ten idle deployments, ``--help``.

Times are beside a bare interpreter's start in the same loop; memory is the proportional set (PSS) and the resident set
(RSS) of /proc/PID/smaps_rollup, in MB.

    python -m benchmarks.processes [--count N]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all
from waypost.host.processes.isolation import Asked, choose
from waypost.host.processes.isolation_errors import NotIsolated
from waypost.host.reading.live import Live
from waypost.host.reading.offline import Offline
from waypost.model.limits import DEFAULT
from waypost.testing.memory_log import MemoryLog
from waypost.testing.scripted_host import ScriptedHost

TEN = 10
MAIL = b"From: ann@example.com\r\nMessage-ID: <1@example.com>\r\n\r\nhello\r\n"
FLOW = """
from waypost import Mail, Workflow, receive

flow = Workflow("idle-{0}", address="idle-{0}@example.com")


@flow.step
def greet(mail: Mail) -> str:
    return mail.sender


@flow.run
async def main(mail: Mail) -> str:
    return await greet(mail)
"""


def milliseconds(act: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1e3


def memory(pid: int) -> tuple[float, float]:
    """PSS and RSS of a process, in MB."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:] if ":" in line
    )
    pss, rss = (int(fields[name].split()[0]) / 1024 for name in ("Pss", "Rss"))
    return pss, rss


def show(name: str, values: list[float], base: float | None = None) -> None:
    """One line: median, worst, and the ratio to a bare interpreter."""
    ratio = f"   {statistics.median(values) / base:.1f} times a bare interpreter" if base else ""
    print(f"{name:34} p50 {statistics.median(values):6.1f} ms   max {max(values):6.1f} ms{ratio}")


def child(file: Path, *arguments: str, run: bool = False) -> float:
    """From before the spawn to a child's ``ready``, or to the end of a first run, in ms."""
    log = MemoryLog()
    log.start(MAIL)
    begun = time.perf_counter()
    with ScriptedHost(file, log, arguments) as host:
        if run:
            host.drive()
            host.until_ended()
        else:
            host.until(lambda: host.ready is not None)
        return (time.perf_counter() - begun) * 1e3


def two_children(file: Path) -> float:
    """From before the first spawn to the second ``ready``, in ms."""
    begun = time.perf_counter()
    with ScriptedHost(file, MemoryLog()) as one, ScriptedHost(file, MemoryLog()) as two:
        one.until(lambda: one.ready is not None)
        two.until(lambda: two.ready is not None)
        return (time.perf_counter() - begun) * 1e3


def namespace(folder: Path) -> tuple[str, ...]:
    """What puts a child into a namespace; nothing where there can't be one."""
    try:
        isolation = choose(Asked(mode="namespace"), data=str(folder / "data"), environment=os.environ)
    except NotIsolated as failure:
        print(f"no namespace: {failure}")
        return ()
    return isolation.arguments(str(folder))


def starts(file: Path, count: int) -> None:
    """Start-up times, interleaved."""
    waypost = Path(sys.executable).with_name("waypost")
    boxed = namespace(file.parent)
    contestants: dict[str, Callable[[], float]] = {
        "python -c pass": lambda: milliseconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)),
        "child, spawn to ready": lambda: child(file),
        "two at once, spawn to both ready": lambda: two_children(file),
        "child, spawn to a first run's end": lambda: child(file, run=True),
        "waypost --help": lambda: milliseconds(
            lambda: subprocess.run([waypost, "--help"], check=True, stdout=subprocess.DEVNULL)
        ),
    }
    if boxed:
        contestants["child in a namespace, to ready"] = lambda: child(file, *boxed)
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(count):
        for name, act in contestants.items():
            taken[name].append(act())
    base = statistics.median(taken["python -c pass"])
    for name, values in taken.items():
        show(name, values, base)


def ten_idle(folder: Path) -> None:
    """Memory of a host with ten deployments, and of their children."""
    files = [folder / f"idle_{n}.py" for n in range(TEN)]
    for n, file in enumerate(files):
        file.write_text(FLOW.format(n))
    code = (
        "import os, sys, time; from pathlib import Path; from benchmarks.processes import hold; "
        f"hold(Path({str(folder)!r}), {[str(file) for file in files]!r})"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert it.stdin is not None
        pids = [int(pid) for pid in it.stdout.readline().split()]
        pss, rss = memory(it.pid)
        print(f"{'host, ten idle deployments':34} PSS {pss:6.1f} MB   RSS {rss:6.1f} MB")
        each = [memory(pid) for pid in pids]
        pss, rss = max(p for p, _ in each), max(r for _, r in each)
        print(f"{'idle child, the largest of ten':34} PSS {pss:6.1f} MB   RSS {rss:6.1f} MB")
        it.stdin.close()


def hold(folder: Path, files: list[str]) -> None:
    """Host these files, print the children's pids when all run, and go on until standard input ends."""
    environment = dict(os.environ)
    described = describe_all([Path(file) for file in files], timeout=30.0, environment=environment)
    with Host.start(
        Config(data=folder / "data", described=described, command=("benchmark",), environment=environment)
    ) as host:
        live = Live(host.root, DEFAULT, lambda hosted: Offline(host.data, DEFAULT, hosted), host.data.out)
        while True:
            deployed = live.deployed()
            if len(deployed) == len(files) and all(each.description.state == "running" for each in deployed):
                break
            time.sleep(0.05)  # nobody tells a benchmark; the figure is memory, not time
        print(*(each.description.pid for each in deployed), flush=True)
        sys.stdin.read()


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # in a namespace of root's the child is another user
        file = folder / "flow.py"
        file.write_text(FLOW.format("x"))
        starts(file, options.count)
        ten_idle(folder)


if __name__ == "__main__":
    main()
