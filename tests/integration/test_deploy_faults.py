"""Deploying dies at every point of the disk, or the disk fails there: next runs the old code or the new, whole."""

import errno
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from actors.messages import DeploymentSpec
from ipc.secret import Secret
from substrate.checking.fsck import Looked, fsck
from substrate.errors import SubstrateError
from substrate.files.disk import Disk
from substrate.reader import Reader
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.host.code.deployed import Known, deployed_here, keep_whole, known
from waypost.host.code.deploying import Means, deploy, deploy_all, deploy_alone
from waypost.host.code.errors import CodeGone, NothingDeployed
from waypost.host.code.materialise import is_whole
from waypost.host.datadir.directory import DataDir, lay_out
from waypost.host.datadir.lock import HostLock
from waypost.host.described import Described
from waypost.host.errors import HostError, HostRuns, NotWritable, Taken
from waypost.host.processes.isolation import Isolation
from waypost.host.reading.deployment_why import sentence_of
from waypost.host.reading.explain import Situation
from waypost.model.code import deployed
from waypost.model.declaration import Declared
from waypost.model.ids import deployment
from waypost.model.times import Now
from waypost.testing import sayings
from waypost.testing.clock import START
from waypost.testing.disks import Died, DyingDisk, FailingDisk
from waypost.testing.stores import fsck as git_fsck

KEY = SigningKey.generate()
OLD = {"echo.py": b"old", "data/two words.txt": b"data"}
NEW = {"echo.py": b"new", "data/two words.txt": b"data"}


def described(files: dict[str, bytes], name: str = "echo", address: str = "echo@example.com") -> Described:
    """These files as a deployment."""
    record = deployed(files, root="", module="echo", declared=Declared(name=name, address=address))
    spec = DeploymentSpec(
        name=deployment(name),
        address=address,
        definition=record.definition,
        code=record.tree,
        file="echo.py",
        steps=(),
        mail_to=(),
        runs="thread",
        env=(),
        python="3",
        waypost="0",
    )
    return Described(spec, record, "thread", files)


def means(folder: Path, disk: Disk | None = None) -> Means:
    """A data directory to deploy into."""
    data = DataDir(folder)
    folder.mkdir(exist_ok=True)
    lay_out(data)
    return Means(data=data, key=KEY, mail_key=Secret(b"k" * 32), disk=disk or Disk(), now=Now(START, 0.0))


def check(folder: Path, *either: Described) -> None:
    """The repository is sound, and has one of these, whole, or nothing yet; the same command again deploys."""
    data = DataDir(folder)
    if data.repo("echo").exists():
        reader = Reader.open(data.repo("echo"), KEY.public)
        record = reader.deployed()
        assert record in [None, *(one.record for one in either)]
        if record is not None:
            assert reader.code(record.tree) in [one.files for one in either]
    wanted = described(NEW)
    deploy(means(folder), wanted)
    assert known(data, KEY.public) == {"echo": Known(wanted.spec.address, wanted.record)}
    assert Reader.open(data.repo("echo"), KEY.public).code(wanted.record.tree) == NEW
    assert list(fsck(data.repo("echo"), Looked(), key=KEY.public)) == []
    Store.open(data.repo("echo"), key=KEY).close()  # what was durable and no more is on the branch now
    assert git_fsck(data.repo("echo")) == ""


def points(folder: Path, template: Path | None) -> int:
    """How many points deploying passes."""
    disk = Disk()
    if template is not None:
        shutil.copytree(template, folder)
    deploy(means(folder, disk), described(NEW))
    return disk.points


@pytest.fixture(name="template", scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deploy") / "data"
    assert deploy(means(folder), described(OLD))
    return folder


Make = Callable[[int], Disk]
FAULTS: dict[str, Make] = {
    "dies": DyingDisk,
    "dies half-way": lambda at: DyingDisk(at, half=True),
    "is full": lambda at: FailingDisk(at, errno.ENOSPC),
    "fails": lambda at: FailingDisk(at, errno.EIO),
}


def try_all(folder: Path, known: Path | None, make: Make, step: int) -> None:
    """Deploy with a fault at each point, or at each so many-th, beginning with the last one."""
    for at in range(points(folder / "count", known), 0, -step):
        place = folder / f"{at}"
        if known is not None:
            shutil.copytree(known, place)
        with suppress(Died, SubstrateError, HostError):
            deploy(means(place, make(at)), described(NEW))
        check(place, described(OLD), described(NEW))


def test_a_deployment_is_there_or_isnt(tmp_path: Path, template: Path) -> None:
    """One commit has the tree and its record: no run ever begins on half of one."""
    try_all(tmp_path, template, FAULTS["dies half-way"], 9)


@pytest.mark.torture
@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_deployment_is_there_or_isnt_at_any_point(tmp_path: Path, template: Path, fault: str, *, again: bool) -> None:
    """The same at each of them, with each fault."""
    try_all(tmp_path, template if again else None, FAULTS[fault], 1)


def test_a_repository_that_cannot_be_opened_is_left_to_its_supervisor(tmp_path: Path, template: Path) -> None:
    """Its neighbours are deployed all the same."""
    folder = tmp_path / "data"
    shutil.copytree(template, folder)
    (folder / "repos/echo.git/refs/heads/log").write_text("0" * 40 + "\n")
    other = described(OLD, "other", "other@example.com")
    used = deploy_all(means(folder), (described(NEW), other))
    assert [one.spec.name for one in used] == ["echo", "other"]
    assert Reader.open(DataDir(folder).repo("other"), KEY.public).deployed() == other.record
    assert all(is_whole(folder / "code" / one.record.tree) for one in used)
    assert not any(one.files for one in used)


def test_a_full_disk_is_told_and_not_taken_for_a_repository_that_is_lost(tmp_path: Path, template: Path) -> None:
    """Else children would run code that is in no history."""
    folder = tmp_path / "data"
    shutil.copytree(template, folder)
    raised: set[type] = set()
    for at in range(1, points(tmp_path / "count", template) + 1, 9):
        try:
            deploy_all(means(folder, FailingDisk(at, errno.ENOSPC)), (described(NEW),))
        except HostError as failure:
            raised.add(type(failure))
    assert NotWritable in raised


@pytest.mark.parametrize("left", [None, "a file", "a link"])
def test_the_folder_of_all_code_is_made_anew_for_the_user_of_a_child(
    tmp_path: Path, template: Path, left: str | None
) -> None:
    """Removed under a live host: a child of another user must come as far as its code, as after the host's start."""
    folder = tmp_path / "data"
    shutil.copytree(template, folder)
    data, tree = DataDir(folder), described(OLD).record.tree
    assert not data.code.exists()
    if left == "a file":
        data.code.touch()
    elif left == "a link":
        data.code.symlink_to(tmp_path / "nowhere")
    keep_whole(data, "echo", tree, KEY.public, Isolation(mode="uid", root=True))
    assert is_whole(data.code / tree)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (data.path, data.code)] == [0o711, 0o711]
    assert stat.S_IMODE((data.code / tree).stat().st_mode) == 0o555


def test_a_tree_is_made_anew_from_the_repository_or_left(tmp_path: Path, template: Path) -> None:
    """What can't be made is said in the log; the child refuses the rest."""
    folder = tmp_path / "data"
    shutil.copytree(template, folder)
    data, tree = DataDir(folder), described(OLD).record.tree
    keep_whole(data, "echo", tree, KEY.public, Isolation())
    assert is_whole(data.code / tree)
    shutil.rmtree(data.repo("echo"))
    shutil.rmtree(data.code)
    keep_whole(data, "echo", tree, KEY.public, Isolation())
    assert not data.code.exists()


def test_deploying_needs_the_data_directory_alone(tmp_path: Path) -> None:
    """A host has the one writer of each repository; an address has one deployment."""
    folder = tmp_path / "data"
    assert deploy_alone(folder, described(OLD), command=("x",))
    assert not deploy_alone(folder, described(OLD), command=("x",))
    with pytest.raises(Taken, match="echo@example"):
        deploy_alone(folder, described(OLD, "other"), command=("x",))
    with HostLock.take(DataDir(folder).lock, command=("x",), since="now"), pytest.raises(HostRuns):
        deploy_alone(folder, described(NEW), command=("x",))


def test_one_that_cannot_be_read_hides_none_of_the_others(tmp_path: Path) -> None:
    """What is wrong with it is said; where it is the only one, it is all that there is to say."""
    folder = tmp_path / "data"
    flow = "from waypost import Workflow\nw = Workflow('echo', address='echo@example.com')\n@w.run\ndef f(): ...\n"
    deploy_alone(folder, described({"echo.py": flow.encode()}), command=("x",))
    deploy_alone(folder, described(OLD, "bad", "bad@example.com"), command=("x",))
    (folder / "repos/bad.git/refs/heads/log").write_text("0" * 40 + "\n")
    assert list(known(DataDir(folder), SigningKey.load(DataDir(folder).signing_key).public)) == ["echo"]
    (found,) = deployed_here(DataDir(folder), timeout=30, environment={}).described
    assert found.spec.name == "echo"
    shutil.rmtree(folder / "repos/echo.git")
    with pytest.raises(SubstrateError):
        deployed_here(DataDir(folder), timeout=30, environment={})


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        ("another one's repository", "waypost fsck zoo"),
        ("code that doesn't load", "waypost deploy FILE"),
        ("an address that is taken", "waypost backup zoo FILE"),
    ],
)
def test_one_that_cannot_be_run_keeps_no_other_from_running(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: str, helps: str
) -> None:
    """A folder that was put in another one's place must not stop all the others; `why` says what helps."""
    folder = tmp_path / "data"
    flow = "from waypost import Workflow\nw = Workflow('{0}', address='{1}@example.com')\n@w.run\ndef f(): ...\n"
    deploy_alone(folder, described({"echo.py": flow.format("echo", "echo").encode()}), command=("x",))
    code = "import nowhere_to_be_found\n" if wrong == "code that doesn't load" else flow.format("zoo", "zoo")
    deploy_alone(folder, described({"echo.py": code.encode()}, "zoo", "zoo@example.com"), command=("x",))
    if wrong == "another one's repository":
        shutil.rmtree(folder / "repos/zoo.git")
        shutil.copytree(folder / "repos/echo.git", folder / "repos/zoo.git")
    elif wrong == "an address that is taken":
        shutil.copytree(folder, tmp_path / "else")
        for gone in ("repos/echo.git", "repos/zoo.git", "heads"):
            shutil.rmtree(tmp_path / "else" / gone)
        taken = flow.format("zoo", "echo").encode()
        deploy_alone(tmp_path / "else", described({"echo.py": taken}, "zoo", "echo@example.com"), command=("x",))
        shutil.rmtree(folder / "repos/zoo.git")
        shutil.copytree(tmp_path / "else/repos/zoo.git", folder / "repos/zoo.git")
    here = deployed_here(DataDir(folder), timeout=30, environment={})
    assert [each.spec.name for each in here.described] == ["echo"]
    assert "zoo isn't run: " in caplog.text
    (left,) = here.left_out
    assert (left.name, left.command) == ("zoo", helps)
    told = sentence_of(Situation(name="zoo", address="zoo@example.com", hosted=False, beside=True, left_out=left))
    sayings.check(told)
    assert (left.why in told.waits_for, told.command) == (True, helps)


def test_what_is_deployed_must_be_what_it_says(tmp_path: Path) -> None:
    """The workflow in it is looked at again, as a file is: another Python may have another answer."""
    folder = tmp_path / "data"
    deploy_alone(folder, described(OLD), command=("x",))
    with pytest.raises(HostError, match="echo"):
        deployed_here(DataDir(folder), timeout=30, environment={})
    flow = "from waypost import Workflow\nw = Workflow('{}', address='echo@example.com')\n@w.run\ndef f(): ...\n"
    deploy_alone(folder, described({"echo.py": flow.format("else").encode()}), command=("x",))
    with pytest.raises(CodeGone, match="it says that it is 'else'"):
        deployed_here(DataDir(folder), timeout=30, environment={})
    deploy_alone(folder, described({"echo.py": flow.format("echo").encode()}), command=("x",))
    (found,) = deployed_here(DataDir(folder), timeout=30, environment={}).described
    assert found.spec.name == "echo"
    deploy_alone(tmp_path / "empty", described(OLD), command=("x",))
    shutil.rmtree(DataDir(tmp_path / "empty").repo("echo"))
    with pytest.raises(NothingDeployed):
        deployed_here(DataDir(tmp_path / "empty"), timeout=30, environment={})
