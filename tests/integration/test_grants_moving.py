"""Grants that come from the reference system's repositories, or go there: what means the same, and nothing guessed."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from substrate.checking.fsck import Looked, fsck
from substrate.errors import SubstrateError
from substrate.files.disk import Disk
from substrate.reader import Reader
from substrate.reference.export import export
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import HostError, NotWritable
from waypost.host.keeping.backup import backup
from waypost.host.keeping.importing import Order, carry_out
from waypost.host.keeping.restore import restore
from waypost.host.reading.granted import GrantsWanted, change_alone, show_alone
from waypost.host.reading.granted import export as export_from
from waypost.host.reading.offline import public_key
from waypost.model import reference_grants
from waypost.model.errors import Invalid
from waypost.model.grants import RUN, StepGrants, granted
from waypost.model.ids import Deployment
from waypost.testing import reference as made
from waypost.testing.disks import Died, DyingDisk

GIVEN = {
    RUN: granted(mail=["*@partner.example", "boss@example.com"], secrets=["ledger"]),
    "fetch": granted(secrets=["github"], children=["billing"]),
}
NOTHING_DECLARED = {RUN: granted(mail=[], children=[])}


def theirs(folder: Path) -> Path:
    """A deployment there that has never run anything."""
    source = made.Reference(folder / "theirs.git")
    source.commit("main", {".gitignore": b""})
    source.commit("events", made.queued("a@x", made.BEGAN, made.mail("a@x")))
    return source.path


@pytest.mark.parametrize("given", [GIVEN, NOTHING_DECLARED], ids=["some", "nobody"])
def test_what_is_exported_comes_back_the_same(tmp_path: Path, given: dict[str, StepGrants]) -> None:
    """Out as agent-state repositories, and in again by the import that reads them; what was taken back stays so."""
    repositories = export(given, tmp_path / "out", 1_790_000_000)
    steps = {path.name.removesuffix(".git"): path for path in repositories}
    order = Order(source=theirs(tmp_path), name=Deployment("desk"), address=None, steps=steps)
    done = carry_out(tmp_path / "data", order)
    assert done.grants == tuple(given)
    assert not done.left
    data = DataDir(tmp_path / "data")
    reader = Reader.open(data.repo("desk"), public_key(data))
    assert dict(reader.granted().steps) == given

    again = export_from(data, "desk", tmp_path / "again")
    assert [path.name for path in again] == [f"{step}.git" for step in given]
    with pytest.raises(NotWritable, match="again") as refused:
        export_from(data, "desk", tmp_path / "again")
    assert "nothing there is overwritten" in refused.value.hint


def test_what_the_reference_grants_and_we_have_not_is_named_and_grants_nothing(tmp_path: Path) -> None:
    """A tool, a denial, a condition, a step that would send mail: none of them is widened to what it resembles."""
    records = (
        b'{"resource":"tool:posix","action":"invoke"},{"resource":"secret:github","action":"read","effect":"deny"},'
        b'{"resource":"secret:ledger","action":"read","expires":"2020-01-01"},{"resource":"secret:*","action":"read"},'
        b'{"resource":"mail:boss@example.com","action":"send"},{"resource":7},{"resource":"secret:ok","action":"read"}'
    )
    agent = made.Reference(tmp_path / "agent.git")
    agent.commit("main", {"state/grants.json": b'{"grants":[%s]}' % records})
    order = Order(source=theirs(tmp_path), name=Deployment("desk"), address=None, steps={"fetch": agent.path})
    done = carry_out(tmp_path / "data", order)
    data = DataDir(tmp_path / "data")
    (_, step) = show_alone(data, "desk").steps
    assert (step.step, step.secrets, step.mail) == ("fetch", ("ok",), None)
    assert len(done.left) == 6
    assert all(each.path == "fetch:state/grants.json" for each in done.left)


@pytest.mark.parametrize(
    ("denied", "secrets"),
    [
        (b'"secret:github"', ("ledger",)),
        (b'"SECRET:GitHub"', ("ledger",)),
        (b'"secret:git*"', ()),
        (b'"secret:git?ub"', ()),
        (b'"secret: github"', ()),
        (b'"*"', ()),
        (b'"tool:*"', ("github", "ledger")),
        (b"7", ()),
        (b'"mail:*"', ("github", "ledger")),
    ],
)
def test_what_one_record_denies_no_other_grants(denied: bytes, secrets: tuple[str, ...]) -> None:
    """In whichever order they stand; a denial of many, or one that can't be read, is of all that it may mean."""
    allow = [b'{"resource":"secret:%s","action":"read","effect":"allow"}' % name for name in (b"github", b"ledger")]
    deny = b'{"resource":%s,"action":"read","effect":"deny"}' % denied
    for records in ((deny, *allow), (*allow, deny)):
        found, left = reference_grants.read(b'{"grants":[%s]}' % b",".join(records))
        assert found.secrets == secrets
        assert len(left) == 3 - len(secrets)


@pytest.mark.parametrize("denied", [b'"mail:boss@example.com"', b'"mail:*@example.com"', b'"*"'])
def test_where_mail_is_denied_the_declared_isn_t_granted_by_itself(denied: bytes) -> None:
    """The code may declare the very address; an operator grants what is meant."""
    found, left = reference_grants.read(b'{"grants":[{"resource":%s,"action":"send","effect":"deny"}]}' % denied)
    assert found.mail == ()
    assert len(left) == 1


@pytest.mark.parametrize(
    "denied",
    [
        "boss@partner.example",
        "Boss@PARTNER.example",
        "<boss@partner.example>",
        "boss@partner.example.",
        "b\u00fc@x.example",
    ],
)
def test_everybody_of_a_domain_isn_t_granted_where_one_of_them_is_denied(denied: str) -> None:
    """There is no grant of all but one; nor does another spelling of an address let it through."""
    deny = f'{{"resource":"mail:{denied}","action":"send","effect":"deny"}}'
    allow = '{"resource":"mail:*@partner.example","action":"send","effect":"allow"}'
    found, left = reference_grants.read(f'{{"grants":[{allow},{deny}]}}'.encode())
    assert found.mail == ()
    assert len(left) == 2


@pytest.mark.parametrize(
    "raw",
    [
        *(
            b"",
            b"[]",
            b"{}",
            b'{"grants":{}}',
            b'{"grants":[7]}',
            b'{"grants":[],"more":1}',
            b'{"grants":[],"more":[]}',
        ),
        b'{"grants":[{"resource":"secret:a","action":"read","effect":"deny"}],"grants":[]}',
        b'{"grants":[{"resource":"secret:a","action":"read","effect":"deny","effect":"allow"}]}',
    ],
)
def test_what_is_no_list_of_grants_is_refused(raw: bytes) -> None:
    """Whoever reads it decides what follows."""
    with pytest.raises(Invalid):
        reference_grants.read(raw)


def test_grants_are_changed_without_a_host_and_stand_in_the_history(tmp_path: Path) -> None:
    """An operator needs no running host to take something away."""
    order = Order(source=theirs(tmp_path), name=Deployment("desk"), address=None, steps={})
    carry_out(tmp_path / "data", order)
    data = DataDir(tmp_path / "data")
    done = change_alone(data, "desk", GrantsWanted(step="fetch", give=granted(secrets=["github"])))
    assert done.grants == granted(secrets=["github"])
    taken = change_alone(data, "desk", GrantsWanted(step="fetch", take=granted(secrets=["github"])))
    assert taken.grants == granted()
    assert not Reader.open(data.repo("desk"), public_key(data)).granted().steps


def points(template: Path, folder: Path) -> int:
    """How many points of the disk a revoke passes."""
    disk = Disk()
    shutil.copytree(template, folder)
    revoke(folder, disk)
    return disk.points


def revoke(folder: Path, disk: Disk | None = None) -> None:
    """Take the secret back."""
    change_alone(DataDir(folder), "desk", GrantsWanted(step="fetch", take=granted(secrets=["github"])), disk)


def try_all(tmp_path: Path, step: int) -> None:
    """Revoke, and die at each so many-th point of the disk; then what is there is one of the two, and it goes on."""
    template = tmp_path / "template"
    carry_out(template, Order(source=theirs(tmp_path), name=Deployment("desk"), address=None, steps={}))
    given = change_alone(DataDir(template), "desk", GrantsWanted(step="fetch", give=granted(secrets=["github"])))
    for at in range(points(template, tmp_path / "count"), 0, -step):
        folder = tmp_path / f"{at}"
        shutil.copytree(template, folder)
        with suppress(Died, SubstrateError, HostError):
            revoke(folder, DyingDisk(at, half=True))
        data = DataDir(folder)
        found = Reader.open(data.repo("desk"), public_key(data)).granted().steps
        assert found in ({}, {"fetch": given.grants})
        revoke(folder)
        assert not Reader.open(data.repo("desk"), public_key(data)).granted().steps
        assert list(fsck(data.repo("desk"), Looked(), key=public_key(data))) == []


def test_a_revoke_is_there_or_is_not(tmp_path: Path) -> None:
    """A host that dies over it leaves no third thing; the same command again does it."""
    try_all(tmp_path, 7)


@pytest.mark.torture
def test_a_revoke_is_there_or_is_not_at_any_point(tmp_path: Path) -> None:
    """The same at each of them."""
    try_all(tmp_path, 1)


def test_a_backup_carries_what_is_granted(tmp_path: Path) -> None:
    """Whoever moves house need not remember who was given what."""
    data = DataDir(tmp_path / "data")
    carry_out(data.path, Order(source=theirs(tmp_path), name=Deployment("desk"), address=None, steps={}))
    given = change_alone(data, "desk", GrantsWanted(step="fetch", give=granted(secrets=["github"])))
    box = tmp_path / "box.waypost"
    backup(data, "desk", box, with_keys=False, sealed=lambda _: False)
    restore(tmp_path / "other", file=box, source=None, key=None, allow_network=False)
    other = DataDir(tmp_path / "other")
    assert dict(Reader.open(other.repo("desk"), public_key(other)).granted().steps) == {"fetch": given.grants}
