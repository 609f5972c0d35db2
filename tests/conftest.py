"""What every test may rely on: git without this machine's settings, known seeds, no thread or file left behind."""

import faulthandler
import gc
import os
import re
import resource
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pygit2
import pytest
from hypothesis import HealthCheck, settings

THREAD_GRACE = 30.0
TOLD = 40
"""Lines of a failure that are printed at once; the whole of it comes at the end."""
OPEN_FILES = 512
"""Twice what the hungriest test needs at once; the usual limit is 1,024, so a leak shows here before it does there."""
PYKKA_DAEMON = re.compile(r"Actor-\d+\Z")

HERMETIC = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "A Test",
    "GIT_AUTHOR_EMAIL": "test@example.com",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_NAME": "A Test",
    "GIT_COMMITTER_EMAIL": "test@example.com",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}
FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "WAYPOST_DATA")

faulthandler.enable()

# Hundreds of interpreters are started here: each module is compiled once, whatever the environment says of that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline: a slow machine is no failure. `ci` repeats itself exactly; `soak` is for a night.
settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("soak", settings.get_profile("dev"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


class Teller:
    """Tells of a failed test when it fails: of a run that is cut off, this is all that one has."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The name, what was to be done, and the last lines of why not."""
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(
                f"FAILED {report.nodeid} ({report.when}, after {report.duration:.0f} s)", red=True
            )
            for line in report.longreprtext.splitlines()[-TOLD:]:
                self._terminal.write_line(f"    {line}")
            self._terminal.flush()


@pytest.hookimpl(trylast=True)  # pytest's own plugins are there by then
def pytest_configure(config: pytest.Config) -> None:
    """Whoever has a terminal tells: with -n that is the process that hands out the tests, and no other."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Teller(terminal), "teller")


def _worker(config: pytest.Config) -> str | None:
    """The name of this worker, ``gw0`` and so on; None without -n."""
    given: dict[str, str] = getattr(config, "workerinput", {})
    return given.get("workerid")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every other worker reads the test files from the last one on.

    In a fresh clone pytest has to rewrite the assertions of each, which takes longer than all else that it does with
    them. Workers that begin at the two ends find the other half done when they meet.
    """
    report = yield
    if isinstance(collector, pytest.Dir) and (_worker(collector.config) or "0")[-1] in "13579":
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All workers must have the same tests in the same order."""
    if _worker(config) is not None:
        items.sort(key=lambda item: item.path)


@pytest.fixture(autouse=True, scope="session")
def _hermetic_git() -> Iterator[None]:
    """Neither git nor libgit2 reads a setting of the user or the machine, and commits have a known author and date."""
    with pytest.MonkeyPatch.context() as patch:
        for name in FOREIGN:
            patch.delenv(name, raising=False)
        for name, value in HERMETIC.items():
            patch.setenv(name, value)
        for level in (
            pygit2.enums.ConfigLevel.PROGRAMDATA,
            pygit2.enums.ConfigLevel.SYSTEM,
            pygit2.enums.ConfigLevel.XDG,
            pygit2.enums.ConfigLevel.GLOBAL,
        ):
            pygit2.settings.search_path[level] = ""
        yield


@pytest.fixture
def counting() -> Path:
    """The file of a workflow at counting@example.com that counts the characters of a mail, by a step, and ends."""
    return Path(__file__).parent / "e2e" / "flows" / "counting.py"


@pytest.fixture(autouse=True, scope="session")
def _few_files() -> None:
    """A test that leaves files open in this process, or a child that does, soon has no more of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft > OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))


@pytest.fixture(autouse=True)
def _no_file_of_the_dead() -> Iterator[None]:
    """Who dies at a point of a disk closes nothing: what it had open is garbage, and collected before files run out."""
    yield
    if sum(1 for _ in Path("/proc/self/fd").iterdir()) > OPEN_FILES // 4:
        gc.collect()


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> Iterator[None]:
    """A thread that a test started must have ended within a grace after it: one left over spoils later tests.

    Daemon threads of pykka's are forgiven, but only after the grace.
    """
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + THREAD_GRACE
    started = [thread for thread in threading.enumerate() if thread not in before]
    for thread in started:
        thread.join(max(0.0, until - time.monotonic()))
    left = [t for t in started if t.is_alive() and not (t.daemon and PYKKA_DAEMON.search(t.name))]
    if left:
        pytest.fail(f"threads left behind: {', '.join(sorted(t.name for t in left))}", pytrace=False)
