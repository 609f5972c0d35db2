"""A deploy is killed at each of its points, the command or the host beside it: old or new code is in force.

Whole, and the same command again deploys: whatever was in the way of it is said, and is over a moment later.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from substrate.checking.fsck import Looked, fsck
from substrate.reader import Reader
from substrate.signing.keys import PublicKey
from waypost.host.datadir.directory import DataDir
from waypost.host.exits import Exit
from waypost.testing.background import Background
from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.patience import PATIENCE, eventually

pytestmark = pytest.mark.e2e

ADDRESS = "echo@example.com"
FLOW = """
from waypost import Mail, Workflow

echo = Workflow("echo", address="echo@example.com", runs="message")


@echo.run
async def answer(mail: Mail) -> str:
    return "{version}"
"""
DYING = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.testing.dying")
KILLED = -signal.SIGKILL
STRIDE = 23
"""Every so many-th point, but for a soak."""


class Scene:
    """A data directory in which the old code is deployed, and what is to be deployed into it."""

    def __init__(self, place: Path, template: Path) -> None:
        shutil.copytree(template, place, symlinks=True)
        self.place, self.data, self.order = place, place / "data", place / "order"

    @property
    def new(self) -> Path:
        """The new code's file."""
        return self.place / "new" / "echo.py"

    @property
    def dying(self) -> tuple[str, ...]:
        """The command that dies at the point that is ordered."""
        return (*DYING, str(self.order), str(self.data))

    def at(self, point: int) -> None:
        """From now on it dies at this one; at none for 0."""
        self.order.write_text(f"{point}")

    @property
    def passed(self) -> list[str]:
        """The points that were passed."""
        noted = Path(f"{self.order}.passed")
        return noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []

    def deploy(self, *, dying: bool = False) -> int:
        """Deploy the new code; the exit status."""
        command = self.dying if dying else (sys.executable, "-P", "-X", "utf8", "-m", "waypost.cli.main")
        words = (*command, "deploy", str(self.new), "--data", str(self.data))
        return subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode

    def version(self) -> str:
        """Which code is in force, by a repository that is sound: every file of it, by its hash."""
        data = DataDir(self.data)
        key = PublicKey.load(data.public_key)
        reader = Reader.open(data.repo("echo"), key)
        record = reader.deployed()
        assert record is not None
        (code,) = reader.code(record.tree).values()
        assert list(fsck(data.repo("echo"), Looked(), key=key)) == []
        return "new" if b'"new"' in code else "old"

    def lasts(self) -> None:
        """Old or new code is in force, the same command deploys, and what is run is what is deployed then."""
        assert self.version() in {"old", "new"}
        assert self.deploy() == Exit.OK
        assert self.version() == "new"

    def runs(self, version: str = "new") -> None:
        """A host runs this code."""
        self.order.unlink(missing_ok=True)
        with HostProcess(data=self.data, options=("--isolation", "none")) as host:
            answers(host, version, "last")


def answers(host: HostProcess, version: str, id_: str) -> None:
    """A mail is answered by this code."""
    host.send(ADDRESS, mail(sender="ann@example.com", to=ADDRESS, subject="go", message_id=f"<{id_}@x>", text="go"))
    host.wait_for("completed", version)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The old code, deployed; it has had a run."""
    place = tmp_path_factory.mktemp("deploy-killed") / "template"
    for version in ("old", "new"):
        (place / version).mkdir(parents=True)
        (place / version / "echo.py").write_text(FLOW.format(version=version))
    with HostProcess(place / "old" / "echo.py", data=place / "data", options=("--isolation", "none")) as host:
        answers(host, "old", "first")
    return place


def points(count: int, *, every: bool) -> Iterator[int]:
    """Those that are tried: of so many all, or the first, the last and some between."""
    yield from range(1, count + 1) if every else sorted({1, *range(2, count, STRIDE), count})


every = pytest.mark.parametrize(
    "every",
    [
        pytest.param(False, marks=pytest.mark.torture),
        pytest.param(True, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
    ids=["some", "every"],
)


@pytest.mark.usefixtures("unmeasured")
@every
def test_a_deploy_that_is_killed_leaves_the_old_code_or_the_new(tmp_path: Path, template: Path, *, every: bool) -> None:
    """Alone in the data directory: at each change that it makes there."""
    scene = Scene(tmp_path / "count", template)
    scene.at(0)
    assert scene.deploy(dying=True) == Exit.OK
    count = len(scene.passed)
    assert count > 20, scene.passed
    seen = set()
    for point in points(count, every=every):
        scene = Scene(tmp_path / f"{point}", template)
        scene.at(point)
        assert scene.deploy(dying=True) == KILLED
        seen.add(scene.version())
        scene.lasts()
        shutil.rmtree(scene.place)
    assert seen == {"old", "new"}
    scene = Scene(tmp_path / "runs", template)
    scene.at(count // 2)
    scene.deploy(dying=True)
    scene.lasts()
    scene.runs()


@pytest.mark.usefixtures("unmeasured")
@every
def test_a_host_that_is_killed_in_a_deploy_leaves_the_old_code_or_the_new(
    tmp_path: Path, template: Path, *, every: bool
) -> None:
    """It ends the deployment, writes the tree and the commit, and starts it anew: at each change that it makes."""
    count = len(beside(Scene(tmp_path / "count", template), 0))
    assert count > 20
    seen = set()
    for point in points(count, every=every):
        scene = Scene(tmp_path / f"{point}", template)
        passed = beside(scene, point)
        seen.add(scene.version())
        scene.lasts()
        if "rename" in passed[-1]:
            scene.runs()
        shutil.rmtree(scene.place, ignore_errors=True)
    assert seen == {"old", "new"}


def beside(scene: Scene, point: int) -> list[str]:
    """Deploy beside a host that dies at this point; the points that it has passed. It ends, in any case."""
    command = scene.dying
    with HostProcess(data=scene.data, options=("--isolation", "none"), command=command) as host:
        scene.at(point)
        status = scene.deploy()
        passed = scene.passed
        if point == 0:
            assert status == Exit.OK
            answers(host, "new", "counted")
        host.kill()
        # A host that was killed before it had an answer leaves the command without: it says so, or has tried alone.
        assert status in {Exit.OK, Exit.NO_HOST, Exit.WITHHELD, Exit.REFUSED}, status
    return passed


@pytest.mark.torture
@pytest.mark.usefixtures("unmeasured")
def test_a_command_that_is_killed_beside_a_host_is_nothing_to_that(tmp_path: Path, template: Path) -> None:
    """Before it has asked, and in the middle of its question: the host takes all of the code or none."""
    scene = Scene(tmp_path / "scene", template)
    with HostProcess(data=scene.data, options=("--isolation", "none")) as host:
        count = commanded(scene, 0)
        assert count >= 3
        for point in range(1, count + 1):
            new = scene.new
            new.write_text(FLOW.format(version=f"new {point}"))
            commanded(scene, point)
            eventually(lambda: scene.deploy() == Exit.OK, "the same command again deploys")
            answers(host, f"new {point}", f"{point}")


def commanded(scene: Scene, point: int) -> int:
    """Have the command die at this point of what it says to its host; how many there are."""
    Path(f"{scene.order}.passed").unlink(missing_ok=True)
    scene.at(point)
    status = scene.deploy(dying=True)
    assert status == (KILLED if point else Exit.OK)
    return len(scene.passed)


@pytest.mark.torture
@pytest.mark.usefixtures("unmeasured")
def test_a_command_whose_host_is_killed_says_so(tmp_path: Path, template: Path) -> None:
    """It waits for an answer that nobody can give any more; and the next command, or the next host, goes on."""
    scene = Scene(tmp_path / "scene", template)
    with HostProcess(data=scene.data, options=("--isolation", "none")) as host:
        os.kill(host.pid, signal.SIGSTOP)
        words = ("deploy", str(scene.new))
        with Background(*words, data=scene.data, together=True) as command:
            host.kill()
            assert command.wait() in {Exit.NO_HOST, Exit.WITHHELD, Exit.OK, Exit.REFUSED}
    scene.lasts()
    assert "deployed already" in waypost("deploy", str(scene.new), data=scene.data).stdout
